//! The events of runs, line by line.

use herma_core::RunId;
use herma_core::store::{EventRow, StoreError};
use sqlx::sqlite::SqliteConnection;
use sqlx::{QueryBuilder, Sqlite};

use super::SqliteEngine;
use super::connection::begin;
use super::error::failed;
use super::rows::{column, count, number};
use super::runs::ROWS_PER_STATEMENT;

pub(super) async fn append(engine: &SqliteEngine, events: &[EventRow]) -> Result<(), StoreError> {
    let writer = &mut *engine.event_writer().await?;
    let mut tx = begin(writer).await?;
    insert(&mut tx, events, "DO NOTHING").await?;
    tx.commit().await.map_err(failed("commit"))
}

/// Makes these the events of the run.
pub(super) async fn replace(
    connection: &mut SqliteConnection,
    run: RunId,
    events: &[EventRow],
) -> Result<(), StoreError> {
    // A power cut can take the last lines of the file, and recovery appends others.
    sqlx::query("DELETE FROM events WHERE run_id = ? AND seq >= ?")
        .bind(run.to_string())
        .bind(number(events.len() as u64))
        .execute(&mut *connection)
        .await
        .map_err(failed("record the events"))?;
    let update = "DO UPDATE SET type = excluded.type, line = excluded.line WHERE line <> excluded.line";
    insert(connection, events, update).await
}

pub(super) async fn after(
    engine: &SqliteEngine,
    run: RunId,
    after: Option<u64>,
    limit: u32,
) -> Result<Vec<EventRow>, StoreError> {
    let select =
        sqlx::query("SELECT seq, type, line FROM events WHERE run_id = ? AND seq > ? ORDER BY seq LIMIT ?");
    let reader = &mut *engine.reader().await?;
    let select = select.bind(run.to_string()).bind(after.map_or(-1, number)).bind(i64::from(limit));
    let rows = select.fetch_all(reader).await.map_err(failed("read the events"))?;
    let event = |row| {
        Ok(EventRow {
            run_id: run,
            seq: count(row, "seq")?,
            kind: column(row, "type")?,
            line: column(row, "line")?,
        })
    };
    rows.iter().map(event).collect()
}

async fn insert(
    connection: &mut SqliteConnection,
    events: &[EventRow],
    on_conflict: &'static str,
) -> Result<(), StoreError> {
    for some in events.chunks(ROWS_PER_STATEMENT) {
        let mut insert = QueryBuilder::<Sqlite>::new("INSERT INTO events (run_id, seq, type, line) ");
        insert.push_values(some, |mut row, event| {
            row.push_bind(event.run_id.to_string())
                .push_bind(number(event.seq))
                .push_bind(event.kind.as_str())
                .push_bind(event.line.as_str());
        });
        insert.push(" ON CONFLICT (run_id, seq) ").push(on_conflict);
        insert.build().execute(&mut *connection).await.map_err(failed("record the events"))?;
    }
    Ok(())
}
