//! Comparisons: the same contracts under the same gates on several lanes, and what herma measured of each.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::blocker::Blocker;
use crate::contract::ContractId;
use crate::digest::Digest;
use crate::engine::EngineName;
use crate::id::RunId;
use crate::proof::{Compared, Criterion, Standing};
use crate::report::NeverActivated;
use crate::signed::Signable;
use crate::units::Usd;
use crate::verdict::Status;

/// A comparison's name: a version 7 UUID like a run's, with its own type so that the two are never mixed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ComparisonId(RunId);

impl ComparisonId {
    /// A name for a comparison that is made `at` that time; `entropy` makes it unlike any other.
    #[must_use]
    pub fn new(at: Timestamp, entropy: [u8; 10]) -> Self {
        Self(RunId::new(at, entropy))
    }
}

impl fmt::Display for ComparisonId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for ComparisonId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Self).map_err(|_| {
            let shown: String = text.chars().take(80).collect();
            format!("`{shown}` is not the name of a comparison: expected a version 7 UUID in lower case")
        })
    }
}

/// The record of one comparison; it is what `herma compare --json` prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// `herma.comparison/v1`.
    pub schema: ComparisonSchema,
    /// The comparison's name.
    pub id: ComparisonId,
    /// The version of herma.
    pub herma_version: String,
    /// When the comparison was made: when its last run had ended.
    pub made_at: Timestamp,
    /// The contracts that every lane was given.
    pub contracts: Vec<ComparedContract>,
    /// How often each contract was run on each lane that could run.
    pub repetitions: u32,
    /// The lanes in the order in which they were named.
    pub lanes: Vec<Lane>,
    /// Each lane against each other one, criterion by criterion.
    pub table: Vec<TableRow>,
    /// Always false: nothing in herma switches a default.
    pub runtime_default_activation: NeverActivated,
}

impl Signable for Comparison {
    const KIND: &'static str = "herma.comparison/v1";
}

/// The version of the comparison's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ComparisonSchema {
    /// The first version.
    #[serde(rename = "herma.comparison/v1")]
    V1,
}

/// A contract that every lane was given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ComparedContract {
    /// Its name.
    pub id: ContractId,
    /// Its digest.
    pub digest: Digest,
}

/// One engine in a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lane {
    /// Which engine.
    pub engine: EngineName,
    /// The digest of everything that it runs; none where that could not be taken.
    pub engine_digest: Option<Digest>,
    /// Why the lane could not run; none if it could. Then it has no measures, and no rank.
    pub blocked: Option<String>,
    /// Its runs, in the order in which they were made.
    pub runs: Vec<LaneRun>,
    /// The measures of herma, one for each criterion.
    pub measures: Vec<Measure>,
}

/// One run of a lane. Its bundle is the evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LaneRun {
    /// The run.
    pub run_id: RunId,
    /// The contract that it was a run of.
    pub contract_id: ContractId,
    /// The verdict's status.
    pub status: Status,
    /// Why it is not a pass.
    pub blockers: Vec<Blocker>,
    /// The digest of its `attestation.json`, which names every other file.
    pub attestation: Digest,
    /// The tree that the engine left; none if the run did not get that far.
    pub result_tree: Option<String>,
    /// How long it took from start to end.
    pub duration_ms: u64,
}

/// The measure of a lane on one criterion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// Which criterion.
    pub criterion: Criterion,
    /// The value; none where there was nothing to measure.
    pub value: Option<Measured>,
}

/// A measured value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Measured {
    /// In how many runs the criterion holds, or for repeatability of how many contracts.
    Share(Share),
    /// The median of the runs, in milliseconds.
    Milliseconds(u64),
    /// All runs together.
    Tokens(u64),
    /// All runs together, in US dollars.
    Usd(Usd),
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Share(share) => share.fmt(f),
            Self::Milliseconds(ms) => write!(f, "{ms} ms"),
            Self::Tokens(tokens) => tokens.fmt(f),
            Self::Usd(usd) => write!(f, "{usd} USD"),
        }
    }
}

/// Of how many out of how many something holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// Of so many it holds.
    pub held: u32,
    /// So many there are.
    pub of: u32,
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.held, self.of)
    }
}

/// The rank of one lane against one other on one criterion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TableRow {
    /// The lane.
    pub lane: EngineName,
    /// The one that it is compared with.
    pub other: EngineName,
    /// Which criterion.
    pub criterion: Criterion,
    /// The rank of the lane against the other one.
    pub standing: Standing,
    /// The reason, as text.
    pub detail: String,
}

impl TableRow {
    /// The row for two lanes that were compared.
    #[must_use]
    pub fn new(lane: &EngineName, other: &EngineName, compared: Compared) -> Self {
        let Compared { criterion, standing, detail } = compared;
        Self { lane: lane.clone(), other: other.clone(), criterion, standing, detail }
    }
}

impl Comparison {
    /// The rank of a lane on a criterion against all others together: behind if it is behind any that ran, ahead if
    /// it is ahead of one; none where no other lane ran.
    #[must_use]
    pub fn standing(&self, lane: &EngineName, criterion: Criterion) -> Option<Standing> {
        let rows = self.table.iter().filter(|row| row.lane == *lane && row.criterion == criterion);
        let against: Vec<Standing> = rows.map(|row| row.standing).collect();
        [Standing::FallsBehind, Standing::Beats, Standing::Matches, Standing::Blocked]
            .into_iter()
            .find(|standing| against.contains(standing))
    }

    /// Whether the lane ran, and matches or beats every other lane that ran on the five deciding criteria.
    #[must_use]
    pub fn holds_its_own(&self, lane: &EngineName) -> bool {
        let keeps_up = |other: &EngineName, criterion| {
            let mut rows = self.table.iter();
            let row = rows.find(|row| (&row.lane, &row.other, row.criterion) == (lane, other, criterion));
            row.is_some_and(|row| matches!(row.standing, Standing::Matches | Standing::Beats))
        };
        let keeps_up_with = |other: &Lane| {
            other.engine == *lane || Criterion::DECIDING.into_iter().all(|c| keeps_up(&other.engine, c))
        };
        self.ran().any(|ran| ran.engine == *lane) && self.ran().all(keeps_up_with)
    }

    /// The lanes that ran.
    pub fn ran(&self) -> impl Iterator<Item = &Lane> {
        self.lanes.iter().filter(|lane| lane.blocked.is_none())
    }
}
