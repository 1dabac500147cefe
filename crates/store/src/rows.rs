//! How values are written to and read from rows.

use herma_core::store::{RunSummary, StoreError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

/// The columns of `runs` that make a summary, in the order of every query.
pub(crate) const COLUMNS: &str = "run_id, contract_id, contract_digest, engine, destination, stage, started_at, \
     finished_at, status, blockers";

/// The text of a value that serialises as a string: one spelling for files, API and store.
pub(crate) fn text(value: &impl Serialize) -> Result<String, StoreError> {
    match serde_json::to_value(value).map_err(|e| unreadable(&e))? {
        serde_json::Value::String(text) => Ok(text),
        other => Ok(other.to_string()),
    }
}

/// Reads a summary back. A row that cannot be read is an error: the bundles can rebuild it.
pub(crate) fn summary(row: &SqliteRow) -> Result<RunSummary, StoreError> {
    let column = |name: &str| row.try_get::<String, _>(name).map_err(|e| unreadable(&e));
    let optional = |name: &str| row.try_get::<Option<String>, _>(name).map_err(|e| unreadable(&e));
    let stage: i64 = row.try_get("stage").map_err(|e| unreadable(&e))?;
    Ok(RunSummary {
        run_id: parse(&column("run_id")?)?,
        contract_id: parse(&column("contract_id")?)?,
        contract_digest: parse(&column("contract_digest")?)?,
        engine: parse(&column("engine")?)?,
        destination: parse(&column("destination")?)?,
        stage: u8::try_from(stage)
            .map_err(|e| e.to_string())
            .and_then(TryInto::try_into)
            .map_err(|e| unreadable(&e))?,
        started_at: parse(&column("started_at")?)?,
        finished_at: optional("finished_at")?.map(|t| parse(&t)).transpose()?,
        status: optional("status")?.map(|s| parse(&s)).transpose()?,
        blockers: serde_json::from_str(&column("blockers")?).map_err(|e| unreadable(&e))?,
    })
}

/// A value from its text.
pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, StoreError> {
    serde_json::from_value(serde_json::Value::String(text.to_owned())).map_err(|e| unreadable(&e))
}

pub(crate) fn unreadable(cause: &impl ToString) -> StoreError {
    StoreError { doing: "read a row", cause: cause.to_string() }
}
