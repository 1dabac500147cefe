-- What runs used of models, by day and model: an index over the model calls in their bundles, as `runs` is one over the
-- reports. Money is in millionths of a dollar.
CREATE TABLE usage (
    run_id         TEXT NOT NULL,
    engine         TEXT NOT NULL,
    day            TEXT NOT NULL,
    model          TEXT NOT NULL,
    requests       INTEGER NOT NULL,
    input_tokens   INTEGER NOT NULL,
    output_tokens  INTEGER NOT NULL,
    charged_tokens INTEGER NOT NULL,
    micro_usd      INTEGER NOT NULL,
    unsettled      INTEGER NOT NULL,
    PRIMARY KEY (run_id, day, model)
) WITHOUT ROWID;
