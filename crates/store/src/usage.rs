//! What runs used of models, on SQLite.

use herma_core::report::{Report, Usage};
use herma_core::store::{StoreError, UsageBy, UsageRow, UsageStore};
use herma_core::units::Usd;
use herma_core::usage::UsageByModel;
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, Connection, Row};

use crate::rows::unreadable;
use crate::sqlite::{Inner, SqliteStore, error};

/// The columns that count, in the order of every statement.
const COUNTS: [&str; 6] =
    ["requests", "input_tokens", "output_tokens", "charged_tokens", "micro_usd", "unsettled"];

impl UsageStore for SqliteStore {
    fn record_usage(&self, report: &Report, used: &UsageByModel) -> Result<(), StoreError> {
        let Inner { connection, runtime } = &mut *self.lock();
        runtime.block_on(async {
            let failed = error("record what a run used");
            let mut tx = connection.begin().await.map_err(&failed)?;
            let run = report.run_id.to_string();
            sqlx::query("DELETE FROM usage WHERE run_id = ?")
                .bind(&run)
                .execute(&mut *tx)
                .await
                .map_err(&failed)?;
            for (day, model, usage) in used.rows() {
                let mut insert = sqlx::query("INSERT INTO usage VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
                    .bind(&run)
                    .bind(report.engine.as_str())
                    .bind(day.to_string())
                    .bind(model);
                for count in counts(&usage) {
                    insert = insert.bind(i64::try_from(count).unwrap_or(i64::MAX));
                }
                insert.execute(&mut *tx).await.map_err(&failed)?;
            }
            tx.commit().await.map_err(&failed)
        })
    }

    fn usage(&self, by: UsageBy) -> Result<Vec<UsageRow>, StoreError> {
        let key = match by {
            UsageBy::Run => "run_id",
            UsageBy::Engine => "engine",
            UsageBy::Model => "model",
            UsageBy::Day => "day",
        };
        // Names of runs and days sort by time; their newest are looked for first.
        let order = match by {
            UsageBy::Run | UsageBy::Day => "DESC",
            UsageBy::Engine | UsageBy::Model => "ASC",
        };
        let sums: Vec<String> = COUNTS.iter().map(|count| format!("SUM({count}) AS {count}")).collect();
        let sql = format!(
            "SELECT {key} AS key, {} FROM usage GROUP BY {key} ORDER BY {key} {order}",
            sums.join(", ")
        );
        let Inner { connection, runtime } = &mut *self.lock();
        let rows = runtime
            .block_on(sqlx::query(AssertSqlSafe(sql)).fetch_all(connection))
            .map_err(error("add up what runs used"))?;
        rows.iter().map(row).collect()
    }
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

fn row(row: &SqliteRow) -> Result<UsageRow, StoreError> {
    let count = |name: &str| {
        let number: i64 = row.try_get(name).map_err(|e| unreadable(&e))?;
        u64::try_from(number).map_err(|e| unreadable(&e))
    };
    Ok(UsageRow {
        key: row.try_get("key").map_err(|e| unreadable(&e))?,
        usage: Usage {
            requests: count("requests")?,
            input_tokens: count("input_tokens")?,
            output_tokens: count("output_tokens")?,
            charged_tokens: count("charged_tokens")?,
            usd: Usd(count("micro_usd")?),
            unsettled: count("unsettled")?,
        },
    })
}
