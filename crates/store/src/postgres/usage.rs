//! The usage of models by runs.

use herma_core::report::{Report, Usage};
use herma_core::store::{StoreError, UsageBy, UsageRow};
use herma_core::units::Usd;
use herma_core::usage::UsageByModel;
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

pub(super) async fn sum(caller: &Caller, by: UsageBy) -> Result<Vec<UsageRow>, StoreError> {
    let call = Call::read("sum the usage of runs", |by: &UsageBy, connection, _| {
        Box::pin(async move {
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
            let sums = COUNTS.map(|count| format!("SUM({count})::BIGINT AS {count}")).join(", ");
            let sql = format!("SELECT {key} AS key, {sums} FROM usage GROUP BY {key} ORDER BY {key} {order}");
            let rows = sqlx::query(AssertSqlSafe(sql)).fetch_all(connection).await;
            let rows = rows.map_err(failed("sum the usage of runs"))?;
            Ok(rows.iter().map(usage).collect::<Result<_, _>>()?)
        })
    });
    caller.call(call, by).await
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

fn usage(row: &PgRow) -> Result<UsageRow, StoreError> {
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
