-- Names of approvals sort by time of request, so the primary key is also the order of every list. What a move is
-- guarded by stands in columns of its own; times are nanoseconds since 1970, so that they compare as numbers.
CREATE TABLE approvals (
    approval_id    TEXT PRIMARY KEY NOT NULL,
    short          TEXT NOT NULL,
    contract_id    TEXT NOT NULL,
    state          TEXT NOT NULL CHECK (state IN ('requested', 'granted', 'denied', 'expired', 'consumed')),
    expires_at     INTEGER NOT NULL,
    request        TEXT NOT NULL,
    signed_request TEXT,
    ruling         TEXT,
    consumed_by    TEXT,
    CHECK ((state = 'consumed') = (consumed_by IS NOT NULL)),
    CHECK (state NOT IN ('granted', 'denied', 'consumed') OR ruling IS NOT NULL)
) WITHOUT ROWID;
CREATE INDEX approvals_by_short ON approvals (short);
CREATE INDEX approvals_by_contract ON approvals (contract_id, approval_id);
CREATE INDEX approvals_that_can_expire ON approvals (expires_at) WHERE state IN ('requested', 'granted');

-- Denied, expired and consumed are final, whoever asks.
CREATE TRIGGER approvals_final BEFORE UPDATE ON approvals
WHEN OLD.state IN ('denied', 'expired', 'consumed')
BEGIN
    SELECT RAISE(ABORT, 'this approval is at its end');
END;
