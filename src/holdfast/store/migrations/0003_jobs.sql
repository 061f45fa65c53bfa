-- Runs that workers find by themselves: what is to be done (`job`), and the step whose settlement it waits for.

ALTER TABLE run ADD COLUMN job TEXT;
ALTER TABLE run ADD COLUMN waits_for TEXT;
CREATE INDEX run_job ON run (job, created_at) WHERE state = 'active' AND job IS NOT NULL;
