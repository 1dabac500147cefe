//! Conversion between values and columns.

use herma_core::store::{RunSummary, StoreError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::error::{unreadable, unwritable};

/// The columns of `runs` that make a summary.
pub(super) const RUN_COLUMNS: &str = "run_id, contract_id, contract_digest, engine, destination, stage, started_at, \
     finished_at, status, blockers";

/// The text of a value: of one that serialises as a string, that string; of any other, its JSON.
pub(super) fn text(value: &impl Serialize) -> Result<String, StoreError> {
    match serde_json::to_value(value).map_err(unwritable)? {
        serde_json::Value::String(text) => Ok(text),
        other => Ok(other.to_string()),
    }
}

/// The run of a row.
pub(super) fn summary(row: &PgRow) -> Result<RunSummary, StoreError> {
    let stage = u8::try_from(integer(row, "stage")?).map_err(unreadable)?;
    Ok(RunSummary {
        run_id: parse(&column(row, "run_id")?)?,
        contract_id: parse(&column(row, "contract_id")?)?,
        contract_digest: parse(&column(row, "contract_digest")?)?,
        engine: parse(&column(row, "engine")?)?,
        destination: parse(&column(row, "destination")?)?,
        stage: stage.try_into().map_err(unreadable)?,
        started_at: parse(&column(row, "started_at")?)?,
        finished_at: optional(row, "finished_at")?.map(|t| parse(&t)).transpose()?,
        status: optional(row, "status")?.map(|s| parse(&s)).transpose()?,
        blockers: from_json(&column(row, "blockers")?)?,
    })
}

/// A column of text.
pub(super) fn column(row: &PgRow, name: &str) -> Result<String, StoreError> {
    row.try_get(name).map_err(unreadable)
}

/// A column of text, or NULL.
pub(super) fn optional(row: &PgRow, name: &str) -> Result<Option<String>, StoreError> {
    row.try_get(name).map_err(unreadable)
}

/// A column with a number.
pub(super) fn integer(row: &PgRow, name: &str) -> Result<i64, StoreError> {
    row.try_get(name).map_err(unreadable)
}

/// A column with a number that is not negative.
pub(super) fn count(row: &PgRow, name: &str) -> Result<u64, StoreError> {
    u64::try_from(integer(row, name)?).map_err(unreadable)
}

/// A number for a column, which holds up to 2^63 - 1.
pub(super) fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The value of a text that [`text`] made of a string.
pub(super) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, StoreError> {
    serde_json::from_value(serde_json::Value::String(text.to_owned())).map_err(unreadable)
}

/// The value of a JSON text.
pub(super) fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(unreadable)
}
