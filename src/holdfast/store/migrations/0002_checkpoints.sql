-- Checkpoints of runs, threads of agent frameworks, and conversations. A state is kept as a record: the change against
-- the record that `base` names, or, without one, the whole. `hash` is that of the whole state, always.

CREATE TABLE checkpoint (
  run TEXT NOT NULL REFERENCES run (id),
  seq {int} NOT NULL,
  log_upto {int} NOT NULL,       -- the log entry up to which the state is true
  at {int} NOT NULL,
  by_whom TEXT,
  epoch {int} NOT NULL,
  kind TEXT NOT NULL,             -- milestone: somebody saved it; periodic: made from the log by policy; fork
  label TEXT,
  request TEXT,
  base {int},
  hash TEXT NOT NULL,
  size {int} NOT NULL,           -- of the state
  record {bytes} NOT NULL,
  PRIMARY KEY (run, seq)
){strict};
CREATE UNIQUE INDEX checkpoint_request ON checkpoint (run, request) WHERE request IS NOT NULL;
CREATE INDEX checkpoint_place ON checkpoint (run, log_upto, seq);

CREATE TABLE checkpoint_policy (
  run TEXT PRIMARY KEY REFERENCES run (id),
  every_entries {int} NOT NULL,  -- 0: not by entries
  every_bytes {int} NOT NULL
){strict};

CREATE TABLE thread_checkpoint (
  thread TEXT NOT NULL,
  ns TEXT NOT NULL,
  id TEXT NOT NULL,
  parent TEXT,
  graph_run TEXT,                 -- the framework's own run id, by which it deletes
  meta {bytes} NOT NULL,
  base TEXT,
  hash TEXT NOT NULL,
  record {bytes} NOT NULL,
  PRIMARY KEY (thread, ns, id)
){strict};
CREATE INDEX thread_checkpoint_run ON thread_checkpoint (graph_run) WHERE graph_run IS NOT NULL;

CREATE TABLE thread_write (
  thread TEXT NOT NULL,
  ns TEXT NOT NULL,
  id TEXT NOT NULL,               -- the checkpoint's
  task TEXT NOT NULL,
  n {int} NOT NULL,
  path TEXT NOT NULL,
  channel TEXT NOT NULL,
  kind TEXT NOT NULL,
  data {bytes} NOT NULL,
  PRIMARY KEY (thread, ns, id, task, n)
){strict};

CREATE TABLE conversation (id TEXT PRIMARY KEY){strict};
CREATE TABLE conversation_item (
  conversation TEXT NOT NULL REFERENCES conversation (id),
  seq {int} NOT NULL,
  request TEXT NOT NULL,
  data {bytes} NOT NULL,
  PRIMARY KEY (conversation, seq)
){strict};
