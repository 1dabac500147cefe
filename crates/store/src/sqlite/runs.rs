//! The index of runs.

use herma_core::event::Event;
use herma_core::report::Report;
use herma_core::store::{EventRow, RunQuery, RunSummary, StoreError};
use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, QueryBuilder, Sqlite};

use super::connection::begin as begin_transaction;
use super::error::{failed, unwritable};
use super::rows::{RUN_COLUMNS, number, summary, text};
use super::{SqliteEngine, events};
use crate::summary_of::summary_of;

/// How many rows one statement writes: each statement is a message to the connection's thread and back.
pub(super) const ROWS_PER_STATEMENT: usize = 256;

pub(super) async fn begin(engine: &SqliteEngine, run: &RunSummary) -> Result<(), StoreError> {
    insert(&mut *engine.writer().await, run).await
}

pub(super) async fn finish(
    engine: &SqliteEngine,
    report: &Report,
    events: &[Event],
) -> Result<(), StoreError> {
    let events: Vec<_> = events.iter().map(EventRow::of).collect::<Result<_, _>>().map_err(unwritable)?;
    let writer = &mut *engine.writer().await;
    let mut tx = begin_transaction(writer).await?;
    let run = summary_of(report);
    // The run may be unknown: killed before it was recorded, or the store was lost.
    insert(&mut tx, &run).await?;
    sqlx::query("UPDATE runs SET finished_at = ?, status = ?, blockers = ? WHERE run_id = ?")
        .bind(report.run_finished_at.to_string())
        .bind(report.status.as_str())
        .bind(text(&run.blockers)?)
        .bind(report.run_id.to_string())
        .execute(&mut *tx)
        .await
        .map_err(failed("record the verdict"))?;
    events::replace(&mut tx, report.run_id, &events).await?;
    insert_artifacts(&mut tx, report).await?;
    tx.commit().await.map_err(failed("commit"))
}

pub(super) async fn list(engine: &SqliteEngine, query: &RunQuery) -> Result<Vec<RunSummary>, StoreError> {
    let before = if query.before.is_some() { "seq < (SELECT seq FROM runs WHERE run_id = ?)" } else { "1" };
    let mut sql = format!("SELECT {RUN_COLUMNS} FROM runs WHERE {before}");
    if query.status.is_some() {
        sql.push_str(" AND status = ?");
    }
    sql.push_str(" ORDER BY seq DESC LIMIT ?");
    let mut select = sqlx::query(AssertSqlSafe(sql));
    if let Some(before) = query.before {
        select = select.bind(before.to_string());
    }
    if let Some(status) = query.status {
        select = select.bind(status.as_str());
    }
    let reader = &mut *engine.reader().await?;
    let rows = select.bind(i64::from(query.limit)).fetch_all(reader).await;
    rows.map_err(failed("list the runs"))?.iter().map(summary).collect()
}

pub(super) async fn find(engine: &SqliteEngine, part: &str) -> Result<Vec<RunSummary>, StoreError> {
    let sql = format!(
        "SELECT {RUN_COLUMNS} FROM runs WHERE (run_id >= ?1 AND run_id < ?1 || '~') OR short = ?1 LIMIT 2"
    );
    let reader = &mut *engine.reader().await?;
    let rows = sqlx::query(AssertSqlSafe(sql)).bind(part).fetch_all(reader).await;
    rows.map_err(failed("find a run"))?.iter().map(summary).collect()
}

async fn insert(connection: &mut SqliteConnection, run: &RunSummary) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT OR IGNORE INTO runs (run_id, short, contract_id, contract_digest, engine, destination, stage, \
         started_at, seq) VALUES (?, ?, ?, ?, ?, ?, ?, ?, (SELECT coalesce(max(seq), 0) + 1 FROM runs))",
    )
    .bind(run.run_id.to_string())
    .bind(run.run_id.short())
    .bind(run.contract_id.as_str())
    .bind(run.contract_digest.to_string())
    .bind(run.engine.as_str())
    .bind(run.destination.as_str())
    .bind(i64::from(u8::from(run.stage)))
    .bind(run.started_at.to_string())
    .execute(connection)
    .await
    .map(drop)
    .map_err(failed("record a run"))
}

async fn insert_artifacts(connection: &mut SqliteConnection, report: &Report) -> Result<(), StoreError> {
    let artifacts: Vec<_> = report.artifacts.iter().collect();
    for some in artifacts.chunks(ROWS_PER_STATEMENT) {
        QueryBuilder::<Sqlite>::new("INSERT OR REPLACE INTO artifacts ")
            .push_values(some, |mut row, (path, artifact)| {
                row.push_bind(report.run_id.to_string())
                    .push_bind(path.as_str())
                    .push_bind(artifact.sha256.to_string())
                    .push_bind(number(artifact.size))
                    .push_bind(artifact.written_at.to_string());
            })
            .build()
            .execute(&mut *connection)
            .await
            .map_err(failed("record the artifacts"))?;
    }
    Ok(())
}
