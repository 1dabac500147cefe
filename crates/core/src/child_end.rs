//! The payload of `child.ended`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::budget::Amount;
use crate::id::RunId;
use crate::verdict::Status;

/// The data of `child.ended`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChildEnd {
    /// Which run.
    pub child: RunId,
    /// Its status; none if it is unknown.
    pub status: Option<Status>,
    /// The charges of it and all below it; none if they are unknown.
    pub charged: Option<Amount>,
}

impl ChildEnd {
    /// As an event's data.
    #[must_use]
    pub fn to_data(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(data)) => data,
            _ => Map::new(),
        }
    }
}
