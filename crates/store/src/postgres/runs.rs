//! The index of runs.

use herma_core::event::Event;
use herma_core::report::Report;
use herma_core::store::{EventRow, RunQuery, RunSummary, StoreError};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Postgres, QueryBuilder};

use super::call::{Call, Caller};
use super::error::{CallError, failed, unwritable};
use super::events;
use super::rows::{RUN_COLUMNS, number, summary, text};
use crate::summary_of::summary_of;

/// How many rows one statement writes: each statement is a message to the server and back.
pub(super) const ROWS_PER_STATEMENT: usize = 256;

pub(super) async fn begin(caller: &Caller, run: &RunSummary) -> Result<(), StoreError> {
    let call =
        Call::change("record a run", |run: &RunSummary, connection, _| Box::pin(insert(connection, run)));
    caller.call(call, run.clone()).await
}

/// The end of a run.
struct End {
    run: RunSummary,
    report: Report,
    events: Vec<EventRow>,
}

pub(super) async fn finish(caller: &Caller, report: &Report, events: &[Event]) -> Result<(), StoreError> {
    let events: Vec<_> = events.iter().map(EventRow::of).collect::<Result<_, _>>().map_err(unwritable)?;
    let end = End { run: summary_of(report), report: report.clone(), events };
    let call = Call::change("record the end of a run", |end: &End, connection, _| {
        Box::pin(async move {
            // The run may be unknown: killed before it was recorded, or the store was lost.
            insert(connection, &end.run).await?;
            let update = "UPDATE runs SET finished_at = $1, status = $2, blockers = $3 WHERE run_id = $4";
            sqlx::query(update)
                .bind(end.report.run_finished_at.to_string())
                .bind(end.report.status.as_str())
                .bind(text(&end.run.blockers)?)
                .bind(end.run.run_id.to_string())
                .execute(&mut *connection)
                .await
                .map_err(failed("record the verdict"))?;
            events::replace(connection, end.run.run_id, &end.events).await?;
            insert_artifacts(connection, &end.report).await
        })
    });
    caller.call(call, end).await
}

pub(super) async fn list(caller: &Caller, query: &RunQuery) -> Result<Vec<RunSummary>, StoreError> {
    let call = Call::read("list the runs", |query: &RunQuery, connection, _| {
        Box::pin(async move {
            let sql = format!(
                "SELECT {RUN_COLUMNS} FROM runs \
                 WHERE ($1::text IS NULL OR seq < (SELECT seq FROM runs WHERE run_id = $1)) \
                 AND ($2::text IS NULL OR status = $2) ORDER BY seq DESC LIMIT $3"
            );
            let select = sqlx::query(AssertSqlSafe(sql))
                .bind(query.before.map(|run| run.to_string()))
                .bind(query.status.map(herma_core::Status::as_str))
                .bind(i64::from(query.limit));
            let rows = select.fetch_all(connection).await.map_err(failed("list the runs"))?;
            Ok(rows.iter().map(summary).collect::<Result<_, _>>()?)
        })
    });
    caller.call(call, query.clone()).await
}

pub(super) async fn find(caller: &Caller, part: &str) -> Result<Vec<RunSummary>, StoreError> {
    if part.contains('\0') {
        // No name has it, and PostgreSQL takes no such text.
        return Ok(Vec::new());
    }
    let call = Call::read("find a run", |part: &String, connection, _| {
        Box::pin(async move {
            let sql = format!(
                "SELECT {RUN_COLUMNS} FROM runs WHERE (run_id >= $1 AND run_id < $1 || '~') OR short = $1 LIMIT 2"
            );
            let rows = sqlx::query(AssertSqlSafe(sql)).bind(part).fetch_all(connection).await;
            Ok(rows.map_err(failed("find a run"))?.iter().map(summary).collect::<Result<_, _>>()?)
        })
    });
    caller.call(call, part.to_owned()).await
}

async fn insert(connection: &mut PgConnection, run: &RunSummary) -> Result<(), CallError> {
    sqlx::query(
        "INSERT INTO runs (run_id, short, contract_id, contract_digest, engine, destination, stage, started_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (run_id) DO NOTHING",
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

async fn insert_artifacts(connection: &mut PgConnection, report: &Report) -> Result<(), CallError> {
    let artifacts: Vec<_> = report.artifacts.iter().collect();
    for some in artifacts.chunks(ROWS_PER_STATEMENT) {
        QueryBuilder::<Postgres>::new("INSERT INTO artifacts (run_id, path, sha256, size, written_at) ")
            .push_values(some, |mut row, (path, artifact)| {
                row.push_bind(report.run_id.to_string())
                    .push_bind(path.as_str())
                    .push_bind(artifact.sha256.to_string())
                    .push_bind(number(artifact.size))
                    .push_bind(artifact.written_at.to_string());
            })
            .push(
                " ON CONFLICT (run_id, path) DO UPDATE SET sha256 = excluded.sha256, size = excluded.size, \
                 written_at = excluded.written_at",
            )
            .build()
            .execute(&mut *connection)
            .await
            .map_err(failed("record the artifacts"))?;
    }
    Ok(())
}
