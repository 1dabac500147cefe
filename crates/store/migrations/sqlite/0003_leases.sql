-- What processes took out of the budgets that they share. What a holder took is charged until it says what it spent;
-- what it spent stays.
CREATE TABLE leases (
    scope     TEXT NOT NULL,
    holder    TEXT NOT NULL,
    requests  INTEGER NOT NULL CHECK (requests >= 0),
    tokens    INTEGER NOT NULL CHECK (tokens >= 0),
    micro_usd INTEGER NOT NULL CHECK (micro_usd >= 0),
    PRIMARY KEY (scope, holder)
) WITHOUT ROWID;

-- The sum over all holders. It is kept by the triggers alone, so that it cannot differ.
CREATE TABLE leased (
    scope     TEXT PRIMARY KEY NOT NULL,
    requests  INTEGER NOT NULL DEFAULT 0,
    tokens    INTEGER NOT NULL DEFAULT 0,
    micro_usd INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

CREATE TRIGGER leases_added AFTER INSERT ON leases
BEGIN
    INSERT OR IGNORE INTO leased (scope) VALUES (NEW.scope);
    UPDATE leased SET
        requests = requests + NEW.requests,
        tokens = tokens + NEW.tokens,
        micro_usd = micro_usd + NEW.micro_usd
    WHERE scope = NEW.scope;
END;

CREATE TRIGGER leases_changed AFTER UPDATE ON leases
BEGIN
    UPDATE leased SET
        requests = requests + NEW.requests - OLD.requests,
        tokens = tokens + NEW.tokens - OLD.tokens,
        micro_usd = micro_usd + NEW.micro_usd - OLD.micro_usd
    WHERE scope = NEW.scope;
END;

-- What was spent was spent, whoever asks.
CREATE TRIGGER leases_stay BEFORE DELETE ON leases
BEGIN
    SELECT RAISE(ABORT, 'what was leased is not forgotten');
END;
