-- What somebody believes about the world, what was seen when they said so, and how the last look ended.

CREATE TABLE claim (
  id TEXT PRIMARY KEY,
  task TEXT,                       -- the task's key, or
  run TEXT,                        -- the run it belongs to
  kind TEXT NOT NULL,              -- port | file | pid | command | session
  spec TEXT NOT NULL,              -- JSON: what is claimed
  seen TEXT NOT NULL,              -- JSON: what was true then
  host TEXT,                       -- where: another host's kernel cannot be asked from here
  by_whom TEXT,
  at {int} NOT NULL,
  request TEXT NOT NULL UNIQUE,
  state TEXT NOT NULL,             -- holds | drifted | unknown, at the last look
  evidence TEXT NOT NULL,          -- JSON, of that look
  checked_at {int},
  checked_by TEXT
){strict};
CREATE INDEX claim_task ON claim (task, at) WHERE task IS NOT NULL;
CREATE INDEX claim_run ON claim (run, at) WHERE run IS NOT NULL;
