//! The record of one run of the failure matrix: every row, brought about on `fake`, and the cases that must pass.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::blocker::Blocker;
use crate::digest::Digest;
use crate::engine::EngineName;
use crate::event::EventType;
use crate::id::RunId;
use crate::signed::Signable;
use crate::verdict::Status;

/// The record of one run of the failure matrix; it is what `herma matrix --json` prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MatrixReport {
    /// `herma.matrix/v1`.
    pub schema: MatrixSchema,
    /// The record's name: a version 7 UUID, so that names sort by time.
    pub id: RunId,
    /// The version of herma.
    pub herma_version: String,
    /// The digest of the herma program that ran the rows.
    pub herma_digest: Digest,
    /// The engine whose runs these were.
    pub engine: EngineName,
    /// When the last row had ended.
    pub made_at: Timestamp,
    /// Whether every row of the table was run and held, and every case passed.
    pub held: bool,
    /// Whether only some rows were asked for. Such a record proves nothing about the others.
    pub partial: bool,
    /// One for each blocker, in the order of the table.
    pub rows: Vec<MatrixRow>,
    /// The cases that look like a failure and are none.
    pub cases: Vec<MatrixCase>,
}

impl Signable for MatrixReport {
    const KIND: &'static str = "herma.matrix/v1";
}

/// The version of the record's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MatrixSchema {
    /// The first version.
    #[serde(rename = "herma.matrix/v1")]
    V1,
}

/// One row: a failure that was brought about, and how it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MatrixRow {
    /// The blocker.
    pub blocker: Blocker,
    /// The trigger, for people.
    pub trigger: String,
    /// The event that shows it.
    pub event: EventType,
    /// The verdict that the run must have.
    pub expected_status: Status,
    /// The verdict of the run; none where there is no report.
    pub status: Option<Status>,
    /// The exit code of `herma run`; none where it was killed, which one row does on purpose.
    pub exit_code: Option<i32>,
    /// Whether the row ended exactly as the table has it.
    pub held: bool,
    /// The differences from the table, each in a sentence.
    pub problems: Vec<String>,
}

/// A case that must pass: something slow or indirect that herma has to allow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MatrixCase {
    /// Which one.
    pub name: MatrixCaseName,
    /// Whether the run passed.
    pub held: bool,
    /// The differences, each in a sentence.
    pub problems: Vec<String>,
}

/// The cases that must pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MatrixCaseName {
    /// The run of the table without a fault.
    NoFault,
    /// An engine whose content arrives late, within its limits.
    DelayedContent,
    /// A model that is served by an admitted bridge.
    Bridge,
}

impl MatrixCaseName {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::NoFault, Self::DelayedContent, Self::Bridge];

    /// The name as it is written in files and on the screen.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoFault => "no_fault",
            Self::DelayedContent => "delayed_content",
            Self::Bridge => "bridge",
        }
    }
}

impl MatrixReport {
    /// The names of the rows and cases that did not hold.
    pub fn failed(&self) -> impl Iterator<Item = &'static str> {
        let rows = self.rows.iter().filter(|row| !row.held).map(|row| row.blocker.as_str());
        rows.chain(self.cases.iter().filter(|case| !case.held).map(|case| case.name.as_str()))
    }
}
