//! Operations on the store as a whole.

use herma_core::RunId;
use herma_core::store::{ArtifactRow, StoreCounts, StoreDescription, StoreError};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Postgres, QueryBuilder};
use tokio::sync::Mutex;

use super::PostgresEngine;
use super::call::{Call, Caller};
use super::connection::PRESENCE;
use super::error::{CallError, failed, unreadable};
use super::rows::{column, count, parse};
use super::runs::ROWS_PER_STATEMENT;
use crate::copy::{CopyPart, CopyReceiver, incomplete};
use crate::tables::{Table, TableRow, TableValue};

pub(super) async fn describe(engine: &PostgresEngine) -> Result<StoreDescription, StoreError> {
    let call = Call::read("be described", |instance: &i32, connection, _| {
        Box::pin(async move {
            // Every session holds a shared advisory lock with the number of its process.
            let select = sqlx::query(
                "SELECT (SELECT coalesce(max(version), 0) FROM _sqlx_migrations) AS schema, \
                 (SELECT count(DISTINCT objid) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND granted \
                 AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) \
                 AND classid::bigint = $1 AND objid::bigint <> $2) AS others",
            );
            let select = select.bind(unsigned(PRESENCE)).bind(unsigned(*instance));
            let row = select.fetch_one(connection).await.map_err(failed("be described"))?;
            Ok((count(&row, "schema")?, count(&row, "others")?))
        })
    });
    let (schema_version, other_processes) = engine.caller.call(call, engine.instance).await?;
    Ok(StoreDescription {
        engine: "postgresql".to_owned(),
        version: engine.server.version.clone(),
        schema_version,
        location: engine.caller.place().to_owned(),
        other_processes,
    })
}

/// A key of an advisory lock as `pg_locks` shows it.
fn unsigned(key: i32) -> i64 {
    i64::from(key.cast_unsigned())
}

pub(super) async fn counts(caller: &Caller) -> Result<StoreCounts, StoreError> {
    let call = Call::read("count its rows", |(): &(), connection, _| {
        Box::pin(async move {
            let selects = Table::ALL.map(|table| format!("(SELECT count(*) FROM {0}) AS {0}", table.name()));
            let sql = format!("SELECT {}", selects.join(", "));
            let row = sqlx::query(AssertSqlSafe(sql)).fetch_one(connection).await;
            let row = row.map_err(failed("count its rows"))?;
            Ok(StoreCounts {
                runs: count(&row, "runs")?,
                events: count(&row, "events")?,
                artifacts: count(&row, "artifacts")?,
                approvals: count(&row, "approvals")?,
                usage: count(&row, "usage")?,
                leases: count(&row, "leases")?,
            })
        })
    });
    caller.call(call, ()).await
}

pub(super) async fn artifacts(caller: &Caller, run: RunId) -> Result<Vec<ArtifactRow>, StoreError> {
    let call = Call::read("list the artifacts", |run: &RunId, connection, _| {
        Box::pin(async move {
            let select = sqlx::query("SELECT path, sha256 FROM artifacts WHERE run_id = $1 ORDER BY path");
            let rows = select.bind(run.to_string()).fetch_all(connection).await;
            let artifact = |row| {
                Ok::<_, StoreError>(ArtifactRow {
                    path: column(row, "path")?,
                    sha256: parse(&column(row, "sha256")?)?,
                })
            };
            Ok(rows.map_err(failed("list the artifacts"))?.iter().map(artifact).collect::<Result<_, _>>()?)
        })
    });
    caller.call(call, run).await
}

pub(super) async fn clear_index(caller: &Caller) -> Result<u64, StoreError> {
    let call = Call::change("forget its index", |(): &(), connection, _| {
        Box::pin(async move {
            let failed = failed("forget its index");
            for table in ["artifacts", "events", "usage", "runs"] {
                let delete = format!("DELETE FROM {table}");
                sqlx::query(AssertSqlSafe(delete)).execute(&mut *connection).await.map_err(failed)?;
            }
            let expire = "UPDATE approvals SET state = 'expired' WHERE state IN ('requested', 'granted')";
            Ok(sqlx::query(expire).execute(connection).await.map_err(failed)?.rows_affected())
        })
    });
    caller.call(call, ()).await
}

/// The rows that are wanted.
struct Wanted {
    table: Table,
    after: Option<TableRow>,
    limit: i64,
}

pub(super) async fn read_table(
    caller: &Caller,
    table: Table,
    after: Option<&TableRow>,
    limit: u32,
) -> Result<Vec<TableRow>, StoreError> {
    let call = Call::read("read its tables", |wanted: &Wanted, connection, _| {
        Box::pin(async move {
            let sql = wanted.table.select(wanted.after.is_some(), |number| format!("${number}"));
            let mut select = sqlx::query(AssertSqlSafe(sql));
            for value in wanted.after.iter().flatten().take(wanted.table.key_columns()) {
                select = match value {
                    TableValue::Text(text) => select.bind(text.clone()),
                    TableValue::Integer(number) => select.bind(*number),
                };
            }
            let rows =
                select.bind(wanted.limit).fetch_all(connection).await.map_err(failed("read its tables"))?;
            let values = |row| wanted.table.read(row).map_err(unreadable);
            Ok(rows.iter().map(values).collect::<Result<_, _>>()?)
        })
    });
    caller.call(call, Wanted { table, after: after.cloned(), limit: i64::from(limit) }).await
}

pub(super) async fn import(caller: &Caller, parts: CopyReceiver) -> Result<(), StoreError> {
    let call = Call::change("insert the rows of a copy", |parts: &Mutex<CopyReceiver>, connection, _| {
        Box::pin(async move {
            let mut parts = parts.lock().await;
            loop {
                match parts.recv().await {
                    Some(CopyPart::Rows(table, rows)) => insert(connection, table, &rows).await?,
                    Some(CopyPart::End) => break,
                    None => return Err(incomplete().into()),
                }
            }
            for table in Table::ALL.into_iter().filter(|table| table.is_numbered()) {
                let name = table.name();
                let next = format!(
                    "SELECT setval(pg_get_serial_sequence('{name}', 'seq'), \
                     (SELECT coalesce(max(seq), 0) + 1 FROM {name}), false)"
                );
                let set = sqlx::query(AssertSqlSafe(next)).execute(&mut *connection).await;
                set.map_err(failed("insert the rows of a copy"))?;
            }
            Ok(())
        })
    });
    caller.call(call.without_repetition(), Mutex::new(parts)).await
}

async fn insert(connection: &mut PgConnection, table: Table, rows: &[TableRow]) -> Result<(), CallError> {
    for some in rows.chunks(ROWS_PER_STATEMENT) {
        let head = format!("INSERT INTO {} ({}) ", table.name(), table.column_list());
        QueryBuilder::<Postgres>::new(head)
            .push_values(some, |mut into, row| {
                for value in row {
                    match value {
                        TableValue::Text(text) => into.push_bind(text.as_deref()),
                        TableValue::Integer(number) => into.push_bind(*number),
                    };
                }
            })
            .build()
            .execute(&mut *connection)
            .await
            .map_err(failed("insert the rows of a copy"))?;
    }
    Ok(())
}
