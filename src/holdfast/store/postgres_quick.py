"""The commonest writes as one statement each: lock, check of the lease, write and commit in one round trip.

Only what goes as expected is done here. Anything else returns no row, or breaks a unique key, and has changed nothing;
then the transaction itself is run, statement by statement, and says what is the matter.

PostgreSQL shows a statement what was there when it began, and only the locked row as it is now. That is enough: the
lease is in the locked row; a step that exists by now breaks its key or is found changed by its own row lock; and a log
entry that came in between breaks the number's.
"""

from __future__ import annotations

# $1 is the run, $2 the step's key, $3 the epoch. The clock is read once the lock is held, and once.
_OURS = """
WITH held AS MATERIALIZED (
  SELECT epoch, lease_until, ended_at FROM attempt WHERE id = (SELECT attempt FROM run WHERE id = $1) FOR UPDATE
), timed AS MATERIALIZED (
  SELECT held.*, {now} AS now FROM held
), ours AS MATERIALIZED (
  SELECT now FROM timed WHERE epoch = $3 AND ended_at IS NULL AND now < lease_until
), """

_NOTED = """
), noted AS (
  INSERT INTO log (run, seq, kind, at, by_whom, epoch, step, body)
  SELECT $1, COALESCE((SELECT MAX(seq) FROM log WHERE run = $1), 0) + 1, '{kind}', changed.at, $4, $3, $2, $5
  FROM changed RETURNING seq
)
SELECT seq FROM noted"""

_INSERT = """changed AS (
  INSERT INTO step (run, key, state, effect, action, args_hash, args, idem_key, epoch, tries, begin_request, session,
    exec_id, result, end_request, begun_at, ended_at)
  SELECT $1, $2, '{state}', $6, $7, $8, $9, $10, $3, 1, $11, $12, $13, $14, $15, now, {ended} FROM ours
  ON CONFLICT DO NOTHING RETURNING begun_at AS at"""

_UPDATE = """changed AS (
  UPDATE step SET state = 'done', result = $6, error = NULL, ended_at = ours.now, end_request = $7, epoch = $3
  FROM ours WHERE step.run = $1 AND step.key = $2 AND step.state = 'open' RETURNING step.ended_at AS at"""

# Two at once: if the second is there already, its key breaks, and with it the first is undone.
_FOLLOWING = """ended AS (
  UPDATE step SET state = 'done', result = $17, error = NULL, ended_at = ours.now, end_request = $18, epoch = $3
  FROM ours WHERE step.run = $1 AND step.key = $16 AND step.state = 'open' RETURNING step.ended_at AS now
), """ + _INSERT.replace("FROM ours\n  ON CONFLICT DO NOTHING", "FROM ended")

_NOTED_BOTH = """
), noted AS (
  INSERT INTO log (run, seq, kind, at, by_whom, epoch, step, body)
  SELECT $1, COALESCE((SELECT MAX(seq) FROM log WHERE run = $1), 0) + entry.n, entry.kind, changed.at, $4, $3,
    entry.step, entry.body
  FROM changed, (VALUES (1, 'observation', $16, $19), (2, 'action', $2, $5)) AS entry (n, kind, step, body)
  RETURNING seq
)
SELECT seq FROM noted"""

TEXTS = {
    "step_following": _OURS + _FOLLOWING.replace("{state}", "open").replace("{ended}", "NULL::bigint") + _NOTED_BOTH,
    "step_begun": _OURS
    + _INSERT.replace("{state}", "open").replace("{ended}", "NULL::bigint")
    + _NOTED.replace("{kind}", "action"),
    "step_done": _OURS
    + _INSERT.replace("{state}", "done").replace("{ended}", "now")
    + _NOTED.replace("{kind}", "observation"),
    "step_ended": _OURS + _UPDATE + _NOTED.replace("{kind}", "observation"),
}
