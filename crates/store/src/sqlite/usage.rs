//! The usage of models by runs.

use herma_core::report::{Report, Usage};
use herma_core::store::{StoreError, UsageBy, UsageRow};
use herma_core::units::Usd;
use herma_core::usage::UsageByModel;
use sqlx::AssertSqlSafe;
use sqlx::sqlite::SqliteRow;

use super::SqliteEngine;
use super::connection::begin;
use super::error::failed;
use super::rows::{column, count, number};

/// The columns with counts, in the order of every statement.
const COUNTS: [&str; 6] =
    ["requests", "input_tokens", "output_tokens", "charged_tokens", "micro_usd", "unsettled"];

pub(super) async fn record(
    engine: &SqliteEngine,
    report: &Report,
    used: &UsageByModel,
) -> Result<(), StoreError> {
    let failed = failed("record the usage of a run");
    let writer = &mut *engine.writer().await;
    let mut tx = begin(writer).await?;
    let run = report.run_id.to_string();
    sqlx::query("DELETE FROM usage WHERE run_id = ?").bind(&run).execute(&mut *tx).await.map_err(&failed)?;
    for (day, model, usage) in used.rows() {
        let mut insert = sqlx::query("INSERT INTO usage VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
            .bind(&run)
            .bind(report.engine.as_str())
            .bind(day.to_string())
            .bind(model);
        for count in counts(&usage) {
            insert = insert.bind(number(count));
        }
        insert.execute(&mut *tx).await.map_err(&failed)?;
    }
    tx.commit().await.map_err(&failed)
}

pub(super) async fn sum(engine: &SqliteEngine, by: UsageBy) -> Result<Vec<UsageRow>, StoreError> {
    let key = match by {
        UsageBy::Run => "run_id",
        UsageBy::Engine => "engine",
        UsageBy::Model => "model",
        UsageBy::Day => "day",
    };
    // Names of runs and days sort by time; the newest come first.
    let order = match by {
        UsageBy::Run | UsageBy::Day => "DESC",
        UsageBy::Engine | UsageBy::Model => "ASC",
    };
    let sums: Vec<String> = COUNTS.iter().map(|count| format!("SUM({count}) AS {count}")).collect();
    let sql =
        format!("SELECT {key} AS key, {} FROM usage GROUP BY {key} ORDER BY {key} {order}", sums.join(", "));
    let reader = &mut *engine.reader().await?;
    let rows = sqlx::query(AssertSqlSafe(sql)).fetch_all(reader).await;
    rows.map_err(failed("sum the usage of runs"))?.iter().map(usage).collect()
}

fn counts(usage: &Usage) -> [u64; 6] {
    [
        usage.requests,
        usage.input_tokens,
        usage.output_tokens,
        usage.charged_tokens,
        usage.usd.0,
        usage.unsettled,
    ]
}

fn usage(row: &SqliteRow) -> Result<UsageRow, StoreError> {
    Ok(UsageRow {
        key: column(row, "key")?,
        usage: Usage {
            requests: count(row, "requests")?,
            input_tokens: count(row, "input_tokens")?,
            output_tokens: count(row, "output_tokens")?,
            charged_tokens: count(row, "charged_tokens")?,
            usd: Usd(count(row, "micro_usd")?),
            unsettled: count(row, "unsettled")?,
        },
    })
}
