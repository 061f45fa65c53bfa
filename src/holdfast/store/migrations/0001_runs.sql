-- Runs, leases, steps, the log and artifacts. {int} and {bytes} are types, {strict} ends a table.
-- A migration is never changed once released: a later one changes what it made.

CREATE TABLE attempt (
  id TEXT PRIMARY KEY,
  task TEXT,                      -- the task's id; a run without a task has an attempt of its own
  n {int} NOT NULL,              -- 1, 2, … within the task
  worker TEXT,
  epoch {int} NOT NULL,          -- counts the holders of the lease; never goes back
  lease_until {int} NOT NULL,    -- 0: free
  request TEXT NOT NULL,          -- the request that gave the lease last, so that its retry finds it given
  backend TEXT,
  outcome TEXT,
  classification TEXT,
  verification TEXT,
  changes TEXT,
  created_at {int} NOT NULL,
  ended_at {int}
){strict};
CREATE UNIQUE INDEX attempt_task ON attempt (task, n);

CREATE TABLE run (
  id TEXT PRIMARY KEY,
  attempt TEXT NOT NULL REFERENCES attempt (id),
  state TEXT NOT NULL,
  params TEXT NOT NULL,
  items TEXT,
  parent TEXT,
  forked_from TEXT,
  request TEXT NOT NULL UNIQUE,
  created_at {int} NOT NULL,
  ended_at {int},
  outcome TEXT
){strict};
CREATE INDEX run_attempt ON run (attempt);

CREATE TABLE step (
  run TEXT NOT NULL REFERENCES run (id),
  key TEXT NOT NULL,
  state TEXT NOT NULL,
  effect TEXT NOT NULL,
  action TEXT,
  args_hash TEXT NOT NULL,
  args TEXT,
  idem_key TEXT NOT NULL,
  epoch {int} NOT NULL,
  tries {int} NOT NULL,
  begin_request TEXT NOT NULL,
  end_request TEXT,
  begun_at {int} NOT NULL,
  ended_at {int},
  result TEXT,
  error TEXT,
  session TEXT,
  exec_id TEXT,
  doubt_since {int},
  doubt_until {int},
  doubt_owner TEXT,
  settled_by TEXT,
  evidence TEXT,
  outcome TEXT,
  PRIMARY KEY (run, key)
){strict};
CREATE INDEX step_unfinished ON step (run) WHERE state IN ('open', 'in_doubt');

CREATE TABLE log (
  run TEXT NOT NULL REFERENCES run (id),
  seq {int} NOT NULL,
  kind TEXT NOT NULL,
  at {int} NOT NULL,
  by_whom TEXT,
  epoch {int} NOT NULL,
  step TEXT,
  request TEXT,
  body TEXT NOT NULL,
  PRIMARY KEY (run, seq)
){strict};
CREATE UNIQUE INDEX log_request ON log (run, request) WHERE request IS NOT NULL;

CREATE TABLE run_session (
  run TEXT NOT NULL REFERENCES run (id),
  session TEXT NOT NULL,
  generation {int} NOT NULL,
  from_offset {int} NOT NULL,
  at {int} NOT NULL,
  PRIMARY KEY (run, session, generation)
){strict};

-- Content by its hash, in pieces. A blob without a reference, and a piece without a blob, are collected.
CREATE TABLE blob (
  sha256 TEXT PRIMARY KEY,
  size {int} NOT NULL,
  at {int} NOT NULL
){strict};
CREATE TABLE piece (
  sha256 TEXT NOT NULL,           -- of the whole
  n {int} NOT NULL,
  at {int} NOT NULL,
  data {bytes} NOT NULL,
  PRIMARY KEY (sha256, n)
){strict};
CREATE TABLE ref (
  owner TEXT NOT NULL,
  name TEXT NOT NULL,
  sha256 TEXT NOT NULL REFERENCES blob (sha256),
  media TEXT,
  made_by TEXT,
  sources TEXT NOT NULL,
  at {int} NOT NULL,
  PRIMARY KEY (owner, name)
){strict};
CREATE INDEX ref_sha256 ON ref (sha256);

-- Row locks for what has no row of its own: naming content, collecting it and sending pieces of it exclude each other.
CREATE TABLE guard (name TEXT PRIMARY KEY){strict};
INSERT INTO guard (name) VALUES ('blobs');
