-- Names of runs sort by time of creation, so the primary key is also the order of every list.
CREATE TABLE runs (
    run_id          TEXT PRIMARY KEY NOT NULL,
    short           TEXT NOT NULL,
    contract_id     TEXT NOT NULL,
    contract_digest TEXT NOT NULL,
    engine          TEXT NOT NULL,
    destination     TEXT NOT NULL,
    stage           INTEGER NOT NULL,
    started_at      TEXT NOT NULL,
    finished_at     TEXT,
    status          TEXT,
    blockers        TEXT NOT NULL DEFAULT '[]'
) WITHOUT ROWID;
CREATE INDEX runs_by_short ON runs (short);
CREATE INDEX runs_by_status ON runs (status, run_id);

CREATE TABLE events (
    run_id TEXT NOT NULL REFERENCES runs (run_id),
    seq    INTEGER NOT NULL,
    ts     TEXT NOT NULL,
    source TEXT NOT NULL,
    type   TEXT NOT NULL,
    data   TEXT NOT NULL,
    PRIMARY KEY (run_id, seq)
) WITHOUT ROWID;

CREATE TABLE artifacts (
    run_id     TEXT NOT NULL REFERENCES runs (run_id),
    path       TEXT NOT NULL,
    sha256     TEXT NOT NULL,
    size       INTEGER NOT NULL,
    written_at TEXT NOT NULL,
    PRIMARY KEY (run_id, path)
) WITHOUT ROWID;
