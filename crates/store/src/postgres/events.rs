//! The events of runs, line by line.

use herma_core::RunId;
use herma_core::store::{EventRow, StoreError};
use sqlx::postgres::PgConnection;
use sqlx::{Postgres, QueryBuilder};

use super::call::{Call, Caller};
use super::error::{CallError, failed};
use super::rows::{column, count, number};
use super::runs::ROWS_PER_STATEMENT;

pub(super) async fn append(caller: &Caller, events: &[EventRow]) -> Result<(), StoreError> {
    if events.is_empty() {
        return Ok(());
    }
    let call = Call::change("record the events", |events: &Vec<EventRow>, connection, _| {
        Box::pin(async move {
            // The file is durable; the end of the run records all of them again.
            let setting = sqlx::query("SET LOCAL synchronous_commit = off").execute(&mut *connection).await;
            setting.map_err(failed("record the events"))?;
            insert(connection, events, "DO NOTHING").await
        })
    });
    caller.call(call.impatient(), events.to_vec()).await
}

/// Makes these the events of the run.
pub(super) async fn replace(
    connection: &mut PgConnection,
    run: RunId,
    events: &[EventRow],
) -> Result<(), CallError> {
    // A power cut can take the last lines of the file, and recovery appends others.
    sqlx::query("DELETE FROM events WHERE run_id = $1 AND seq >= $2")
        .bind(run.to_string())
        .bind(number(events.len() as u64))
        .execute(&mut *connection)
        .await
        .map_err(failed("record the events"))?;
    let update =
        "DO UPDATE SET type = excluded.type, line = excluded.line WHERE events.line <> excluded.line";
    insert(connection, events, update).await
}

pub(super) async fn after(
    caller: &Caller,
    run: RunId,
    after: Option<u64>,
    limit: u32,
) -> Result<Vec<EventRow>, StoreError> {
    let call = Call::read("read the events", |(run, after, limit): &(RunId, i64, i64), connection, _| {
        Box::pin(async move {
            let select = sqlx::query(
                "SELECT seq, type, line FROM events WHERE run_id = $1 AND seq > $2 ORDER BY seq LIMIT $3",
            );
            let select = select.bind(run.to_string()).bind(after).bind(limit);
            let rows = select.fetch_all(connection).await.map_err(failed("read the events"))?;
            let event = |row| {
                Ok::<_, StoreError>(EventRow {
                    run_id: *run,
                    seq: count(row, "seq")?,
                    kind: column(row, "type")?,
                    line: column(row, "line")?,
                })
            };
            Ok(rows.iter().map(event).collect::<Result<_, _>>()?)
        })
    });
    caller.call(call, (run, after.map_or(-1, number), i64::from(limit))).await
}

async fn insert(
    connection: &mut PgConnection,
    events: &[EventRow],
    on_conflict: &'static str,
) -> Result<(), CallError> {
    for some in events.chunks(ROWS_PER_STATEMENT) {
        let mut insert = QueryBuilder::<Postgres>::new("INSERT INTO events (run_id, seq, type, line) ");
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
