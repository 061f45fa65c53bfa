-- Which process holds a lease, and what becomes of runs whose workers die. A worker's name is for people: two processes
-- may have the same.

ALTER TABLE attempt ADD COLUMN instance TEXT;             -- a number that the holding process made up
ALTER TABLE run ADD COLUMN crashes {int} NOT NULL DEFAULT 0;  -- workers that died at it, since somebody last retried it
ALTER TABLE run ADD COLUMN parked TEXT;                   -- JSON: why no worker takes it until somebody retries it

-- Processes at work on a run of a job, of whom it is not known yet how they left it. Gone with their clean end.
CREATE TABLE holding (
  run TEXT NOT NULL,
  epoch {int} NOT NULL,
  worker TEXT NOT NULL,
  instance TEXT NOT NULL,          -- of the process
  place TEXT NOT NULL,             -- the boot and the process numbers that `pid` is one of
  pid {int} NOT NULL,
  started {int} NOT NULL,          -- ticks after the boot
  PRIMARY KEY (run, epoch)
){strict};
CREATE INDEX holding_place ON holding (place);
