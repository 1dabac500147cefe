//! The usage of models by runs.

use herma_core::RunId;
use herma_core::report::{Report, Usage};
use herma_core::store::{StoreError, UsageBy, UsageRow};
use herma_core::units::Usd;
use herma_core::usage::{PROBE_PREFIX, UsageByModel};
use sqlx::AssertSqlSafe;
use sqlx::postgres::PgRow;

use super::call::{Call, Caller};
use super::error::failed;
use super::rows::{column, count, number};

/// The columns with counts, in the order of every statement.
const COUNTS: [&str; 6] =
    ["requests", "input_tokens", "output_tokens", "charged_tokens", "micro_usd", "unsettled"];

/// The rows of one run.
struct Used {
    run: String,
    engine: String,
    rows: Vec<(String, String, [i64; 6])>,
}

pub(super) async fn record(caller: &Caller, report: &Report, used: &UsageByModel) -> Result<(), StoreError> {
    let rows = used
        .rows()
        .map(|(day, model, usage)| (day.to_string(), model.to_owned(), counts(&usage).map(number)));
    let used =
        Used { run: report.run_id.to_string(), engine: report.engine.to_string(), rows: rows.collect() };
    let call = Call::change("record the usage of a run", |used: &Used, connection, _| {
        Box::pin(async move {
            let failed = failed("record the usage of a run");
            let delete = sqlx::query("DELETE FROM usage WHERE run_id = $1").bind(&used.run);
            delete.execute(&mut *connection).await.map_err(failed)?;
            for (day, model, counts) in &used.rows {
                let mut insert =
                    sqlx::query("INSERT INTO usage VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)")
                        .bind(&used.run)
                        .bind(&used.engine)
                        .bind(day)
                        .bind(model);
                for count in counts {
                    insert = insert.bind(count);
                }
                insert.execute(&mut *connection).await.map_err(failed)?;
            }
            Ok(())
        })
    });
    caller.call(call, used).await
}

/// The sum to make: of these runs, or of all.
struct UsageQuery {
    by: UsageBy,
    runs: Option<Vec<String>>,
}

pub(super) async fn sum(
    caller: &Caller,
    by: UsageBy,
    runs: Option<&[RunId]>,
) -> Result<Vec<UsageRow>, StoreError> {
    let asked = UsageQuery { by, runs: runs.map(|runs| runs.iter().map(ToString::to_string).collect()) };
    let call = Call::read("sum the usage of runs", |asked: &UsageQuery, connection, _| {
        Box::pin(async move {
            let sql = statement(asked.by, asked.runs.is_some());
            let mut select = sqlx::query(AssertSqlSafe(sql));
            if let Some(runs) = &asked.runs {
                select = select.bind(runs);
            }
            let rows = select.fetch_all(connection).await.map_err(failed("sum the usage of runs"))?;
            Ok(rows.iter().map(usage_row).collect::<Result<_, _>>()?)
        })
    });
    caller.call(call, asked).await
}

fn statement(by: UsageBy, of_some: bool) -> String {
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
    let own =
        COUNTS.map(|count| format!("SUM(CASE WHEN {is_probe} THEN 0 ELSE {count} END)::BIGINT AS {count}"));
    let probes = COUNTS
        .map(|count| format!("SUM(CASE WHEN {is_probe} THEN {count} ELSE 0 END)::BIGINT AS probe_{count}"));
    let unpriced =
        "SUM(CASE WHEN charged_tokens > 0 AND micro_usd = 0 THEN requests ELSE 0 END)::BIGINT AS unpriced";
    let filter = if of_some { "WHERE run_id = ANY($1)" } else { "" };
    format!(
        "SELECT {key} AS key, {}, {}, {unpriced} FROM usage {filter} GROUP BY 1 ORDER BY 1 {order}",
        own.join(", "),
        probes.join(", ")
    )
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

fn usage_row(row: &PgRow) -> Result<UsageRow, StoreError> {
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
