-- For the writes of a step. {server} begins a statement that is for PostgreSQL alone.

-- Whoever writes a step or an entry of the log has locked the run's attempt, and so has whoever forgets the run. Looking
-- the run up once more, and locking it as well, was a sixth of the server's time for a step.
{server}ALTER TABLE step DROP CONSTRAINT IF EXISTS step_run_fkey;
{server}ALTER TABLE log DROP CONSTRAINT IF EXISTS log_run_fkey;
