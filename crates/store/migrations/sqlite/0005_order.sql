-- Runs and approvals are listed in the order in which they were recorded: a name sorts by the clock of who made it, and
-- one that was made with a clock ahead would stay the newest for as long.
ALTER TABLE runs ADD COLUMN seq INTEGER NOT NULL DEFAULT 0;
UPDATE runs SET seq = numbered.n
FROM (SELECT run_id AS id, row_number() OVER (ORDER BY run_id) AS n FROM runs) AS numbered
WHERE run_id = numbered.id;
CREATE INDEX runs_by_seq ON runs (seq);
DROP INDEX runs_by_status;
CREATE INDEX runs_by_status ON runs (status, seq);

-- The order may be added to those that are at their end; nothing else of them may change.
DROP TRIGGER approvals_final;
ALTER TABLE approvals ADD COLUMN seq INTEGER NOT NULL DEFAULT 0;
UPDATE approvals SET seq = numbered.n
FROM (SELECT approval_id AS id, row_number() OVER (ORDER BY approval_id) AS n FROM approvals) AS numbered
WHERE approval_id = numbered.id;
CREATE INDEX approvals_by_seq ON approvals (seq);
DROP INDEX approvals_by_contract;
CREATE INDEX approvals_by_contract ON approvals (contract_id, seq);
CREATE TRIGGER approvals_final BEFORE UPDATE ON approvals
WHEN OLD.state IN ('denied', 'expired', 'consumed')
BEGIN
    SELECT RAISE(ABORT, 'this approval is at its end');
END;
