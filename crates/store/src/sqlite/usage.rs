//! The usage of models by runs.

use herma_core::RunId;
use herma_core::report::{Report, Usage};
use herma_core::store::{StoreError, UsageBy, UsageRow};
use herma_core::units::Usd;
use herma_core::usage::{PROBE_PREFIX, UsageByModel};
use sqlx::AssertSqlSafe;
use sqlx::sqlite::SqliteRow;

use super::SqliteEngine;
use super::connection::begin;
use super::error::failed;
use super::rows::{column, count, number, text};

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

pub(super) async fn sum(
    engine: &SqliteEngine,
    by: UsageBy,
    runs: Option<&[RunId]>,
) -> Result<Vec<UsageRow>, StoreError> {
    let is_probe = format!("model LIKE '{PROBE_PREFIX}%'");
    let key = match by {
        UsageBy::Run => "run_id".to_owned(),
        UsageBy::Engine => "engine".to_owned(),
        UsageBy::Model => {
            format!("CASE WHEN {is_probe} THEN substr(model, {}) ELSE model END", PROBE_PREFIX.len() + 1)
        }
        UsageBy::Day => "day".to_owned(),
    };
    // Names of runs and days sort by time; the newest come first.
    let order = match by {
        UsageBy::Run | UsageBy::Day => "DESC",
        UsageBy::Engine | UsageBy::Model => "ASC",
    };
    let own = COUNTS.map(|count| format!("SUM(CASE WHEN {is_probe} THEN 0 ELSE {count} END) AS {count}"));
    let probes =
        COUNTS.map(|count| format!("SUM(CASE WHEN {is_probe} THEN {count} ELSE 0 END) AS probe_{count}"));
    let unpriced = "SUM(CASE WHEN charged_tokens > 0 AND micro_usd = 0 THEN requests ELSE 0 END) AS unpriced";
    let filter = if runs.is_some() { "WHERE run_id IN (SELECT value FROM json_each(?))" } else { "" };
    let sql = format!(
        "SELECT {key} AS key, {}, {}, {unpriced} FROM usage {filter} GROUP BY 1 ORDER BY 1 {order}",
        own.join(", "),
        probes.join(", ")
    );
    let mut select = sqlx::query(AssertSqlSafe(sql));
    if let Some(runs) = runs {
        let names: Vec<String> = runs.iter().map(ToString::to_string).collect();
        select = select.bind(text(&names)?);
    }
    let reader = &mut *engine.reader().await?;
    let rows = select.fetch_all(reader).await;
    rows.map_err(failed("sum the usage of runs"))?.iter().map(usage_row).collect()
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

fn usage_row(row: &SqliteRow) -> Result<UsageRow, StoreError> {
    let usage = |prefix: &str| -> Result<Usage, StoreError> {
        let column = |name: &str| count(row, &format!("{prefix}{name}"));
        Ok(Usage {
            requests: column("requests")?,
            input_tokens: column("input_tokens")?,
            output_tokens: column("output_tokens")?,
            charged_tokens: column("charged_tokens")?,
            usd: Usd(column("micro_usd")?),
            unsettled: column("unsettled")?,
        })
    };
    let unpriced = count(row, "unpriced")?;
    Ok(UsageRow { key: column(row, "key")?, usage: usage("")?, probes: usage("probe_")?, unpriced })
}
