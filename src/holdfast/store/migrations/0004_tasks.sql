-- Projects, their tasks with contracts and dependencies, policies and backends. An attempt's `task` is a task's key.

CREATE TABLE project (
  name TEXT PRIMARY KEY,
  root TEXT NOT NULL,              -- the folder it lives in; a scope's paths are relative to it
  phases TEXT NOT NULL,            -- JSON list, in order
  active_phase TEXT,               -- null: all of them are completed
  policy {int} NOT NULL,          -- the version in force; 0: what holds without any
  tasks {int} NOT NULL,           -- how many were ever added; the next one's place in the order
  given {int} NOT NULL,           -- the last id that was given rather than chosen
  by_whom TEXT,
  created_at {int} NOT NULL
){strict};

CREATE TABLE task (
  key TEXT PRIMARY KEY,            -- PROJECT/ID
  project TEXT NOT NULL REFERENCES project (name),
  id TEXT NOT NULL,
  n {int} NOT NULL,               -- the order in which they were added
  title TEXT NOT NULL,
  phase TEXT NOT NULL,
  status TEXT NOT NULL,
  contract {int} NOT NULL,        -- the version in force
  waiting {int} NOT NULL,         -- dependencies that are not done; 0: nothing is in the way
  attempts {int} NOT NULL,        -- how many were begun
  spent {int} NOT NULL,           -- of these, before somebody last gave it a fresh budget
  retry_at {int} NOT NULL,        -- failed: not again before this
  attempt TEXT,                    -- the latest
  run TEXT,                        -- its run
  backend TEXT,                    -- of the latest attempt; before any, what the contract asks for
  taken_by TEXT,                   -- active without a lease: the operator who works at it by hand
  report TEXT,                     -- JSON, blocked: why, a question, the classification, by whom, when
  by_whom TEXT,
  created_at {int} NOT NULL,
  changed_at {int} NOT NULL,
  ended_at {int}
){strict};
CREATE UNIQUE INDEX task_order ON task (project, n);
CREATE INDEX task_phase ON task (project, phase, n);
CREATE INDEX task_status ON task (project, status, n);
CREATE INDEX task_ready ON task (project, phase, n) WHERE waiting = 0 AND status IN ('pending', 'failed');
CREATE INDEX task_unfinished ON task (project, phase) WHERE status NOT IN ('done', 'cancelled');

CREATE TABLE dependency (
  task TEXT NOT NULL REFERENCES task (key),
  needs TEXT NOT NULL REFERENCES task (key),
  PRIMARY KEY (task, needs)
){strict};
CREATE INDEX dependency_needs ON dependency (needs);

CREATE TABLE contract (
  task TEXT NOT NULL REFERENCES task (key),
  version {int} NOT NULL,
  at {int} NOT NULL,
  by_whom TEXT,
  why TEXT,
  body TEXT NOT NULL,
  PRIMARY KEY (task, version)
){strict};

-- What happened to a task, in order; a request that comes twice finds itself here.
CREATE TABLE task_event (
  task TEXT NOT NULL REFERENCES task (key),
  seq {int} NOT NULL,
  at {int} NOT NULL,
  by_whom TEXT,
  event TEXT NOT NULL,
  status TEXT NOT NULL,            -- afterwards
  run TEXT,
  why TEXT,
  request TEXT NOT NULL,
  body TEXT,
  PRIMARY KEY (task, seq)
){strict};
CREATE UNIQUE INDEX task_event_request ON task_event (request);
CREATE INDEX task_event_at ON task_event (at);

CREATE TABLE policy (
  project TEXT NOT NULL REFERENCES project (name),
  version {int} NOT NULL,
  at {int} NOT NULL,
  by_whom TEXT,
  why TEXT,
  request TEXT NOT NULL UNIQUE,
  body TEXT NOT NULL,
  PRIMARY KEY (project, version)
){strict};

CREATE TABLE backend (
  name TEXT PRIMARY KEY,
  at {int} NOT NULL,
  by_whom TEXT,
  why TEXT,
  body TEXT NOT NULL
){strict};

ALTER TABLE attempt ADD COLUMN policy_version {int};
ALTER TABLE attempt ADD COLUMN contract_version {int};
