-- Several hosts on one database: which of them gave a lease, and until when it is known to be there.

CREATE TABLE host (
  id TEXT PRIMARY KEY,             -- of the home
  generation {int} NOT NULL,      -- one more with each daemon that opens this store
  name TEXT NOT NULL,              -- of the machine, for people
  version TEXT NOT NULL,
  beat_until {int}                -- it is late after this; NULL: it holds no lease here, and is never late
){strict};

ALTER TABLE attempt ADD COLUMN host TEXT;  -- that gave the lease
CREATE INDEX attempt_host ON attempt (host) WHERE host IS NOT NULL AND ended_at IS NULL;
