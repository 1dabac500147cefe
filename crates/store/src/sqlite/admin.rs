//! Operations on the store as a whole.

use herma_core::RunId;
use herma_core::store::{ArtifactRow, StoreCounts, StoreDescription, StoreError};
use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, QueryBuilder, Sqlite};

use super::SqliteEngine;
use super::connection::begin;
use super::error::{failed, unreadable};
use super::rows::{column, count, parse};
use super::runs::ROWS_PER_STATEMENT;
use crate::copy::{CopyPart, CopyReceiver, incomplete};
use crate::location::StoreLocation;
use crate::tables::{Table, TableRow, TableValue};

pub(super) async fn describe(engine: &SqliteEngine) -> Result<StoreDescription, StoreError> {
    let reader = &mut *engine.reader().await?;
    let sql = "SELECT sqlite_version() AS version, (SELECT coalesce(max(version), 0) FROM _sqlx_migrations) AS schema";
    let row = sqlx::query(sql).fetch_one(reader).await.map_err(failed("be described"))?;
    Ok(StoreDescription {
        engine: "sqlite".to_owned(),
        version: column(&row, "version")?,
        schema_version: count(&row, "schema")?,
        location: StoreLocation::file(&engine.file).to_string(),
        other_processes: 0,
    })
}

pub(super) async fn counts(engine: &SqliteEngine) -> Result<StoreCounts, StoreError> {
    let reader = &mut *engine.reader().await?;
    let selects = Table::ALL.map(|table| format!("(SELECT count(*) FROM {0}) AS {0}", table.name()));
    let sql = format!("SELECT {}", selects.join(", "));
    let row = sqlx::query(AssertSqlSafe(sql)).fetch_one(reader).await.map_err(failed("count its rows"))?;
    Ok(StoreCounts {
        runs: count(&row, "runs")?,
        events: count(&row, "events")?,
        artifacts: count(&row, "artifacts")?,
        approvals: count(&row, "approvals")?,
        usage: count(&row, "usage")?,
        leases: count(&row, "leases")?,
    })
}

pub(super) async fn artifacts(engine: &SqliteEngine, run: RunId) -> Result<Vec<ArtifactRow>, StoreError> {
    let reader = &mut *engine.reader().await?;
    let select = sqlx::query("SELECT path, sha256 FROM artifacts WHERE run_id = ? ORDER BY path");
    let rows = select.bind(run.to_string()).fetch_all(reader).await.map_err(failed("list the artifacts"))?;
    let artifact =
        |row| Ok(ArtifactRow { path: column(row, "path")?, sha256: parse(&column(row, "sha256")?)? });
    rows.iter().map(artifact).collect()
}

pub(super) async fn clear_index(engine: &SqliteEngine) -> Result<u64, StoreError> {
    let failed = failed("forget its index");
    let writer = &mut *engine.writer().await;
    let mut tx = begin(writer).await?;
    for table in ["artifacts", "events", "usage", "runs"] {
        let delete = format!("DELETE FROM {table}");
        sqlx::query(AssertSqlSafe(delete)).execute(&mut *tx).await.map_err(&failed)?;
    }
    let expire = "UPDATE approvals SET state = 'expired' WHERE state IN ('requested', 'granted')";
    let expired = sqlx::query(expire).execute(&mut *tx).await.map_err(&failed)?.rows_affected();
    tx.commit().await.map_err(&failed)?;
    Ok(expired)
}

pub(super) async fn read_table(
    engine: &SqliteEngine,
    table: Table,
    after: Option<&TableRow>,
    limit: u32,
) -> Result<Vec<TableRow>, StoreError> {
    let reader = &mut *engine.reader().await?;
    let mut select = sqlx::query(AssertSqlSafe(table.select(after.is_some(), |number| format!("?{number}"))));
    for value in after.into_iter().flatten().take(table.key_columns()) {
        select = match value {
            TableValue::Text(text) => select.bind(text.clone()),
            TableValue::Integer(number) => select.bind(*number),
        };
    }
    let rows = select.bind(i64::from(limit)).fetch_all(reader).await.map_err(failed("read its tables"))?;
    rows.iter().map(|row| table.read(row).map_err(unreadable)).collect()
}

pub(super) async fn import(engine: &SqliteEngine, mut parts: CopyReceiver) -> Result<(), StoreError> {
    let writer = &mut *engine.writer().await;
    let mut tx = begin(writer).await?;
    loop {
        match parts.recv().await {
            Some(CopyPart::Rows(table, rows)) => insert(&mut tx, table, &rows).await?,
            Some(CopyPart::End) => return tx.commit().await.map_err(failed("commit")),
            None => return Err(incomplete()),
        }
    }
}

async fn insert(
    connection: &mut SqliteConnection,
    table: Table,
    rows: &[TableRow],
) -> Result<(), StoreError> {
    for some in rows.chunks(ROWS_PER_STATEMENT) {
        let head = format!("INSERT INTO {} ({}) ", table.name(), table.column_list());
        QueryBuilder::<Sqlite>::new(head)
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
