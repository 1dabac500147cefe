-- An event is appended while its run goes on, before or after the row of the run, and keeps the line of `events.jsonl` byte
-- for byte. The rows of earlier versions lacked a part of the line, and nothing read them; the bundles have those events.
DROP TABLE events;
CREATE TABLE events (
    run_id TEXT NOT NULL,
    seq    INTEGER NOT NULL,
    type   TEXT NOT NULL,
    line   TEXT NOT NULL,
    PRIMARY KEY (run_id, seq)
) WITHOUT ROWID;
