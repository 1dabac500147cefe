//! References to evidence and records: `bundle:RUN/FILE` and `record:KIND/ID`. They name no path of a machine.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::admission::{AdmissionId, AdmissionKind};
use crate::approval::ApprovalId;
use crate::approver::ApproverName;
use crate::comparison::ComparisonId;
use crate::engine::EngineName;
use crate::id::RunId;
use crate::path::RepoPath;
use crate::stage::Stage;

/// The start of a reference to a file of a bundle.
const BUNDLE: &str = "bundle:";
/// The start of a reference to a record.
const RECORD: &str = "record:";

/// A file of a bundle, or a record of the installation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", extend("pattern" = "^(bundle|record):"))]
pub enum Reference {
    /// A file of the bundle of a run.
    Bundle {
        /// The run.
        run: RunId,
        /// The file, relative to the bundle.
        file: RepoPath,
    },
    /// The proof of a stage: `record:proof/ENGINE/STAGE`.
    Proof(EngineName, Stage),
    /// A comparison: `record:comparison/ID`.
    Comparison(ComparisonId),
    /// An admission: `record:admission/KIND/NAME`.
    Admission(AdmissionId),
    /// An approval: `record:approval/ID`.
    Approval(ApprovalId),
    /// An approver: `record:approver/NAME`.
    Approver(ApproverName),
    /// A run of the failure matrix: `record:matrix/ID`.
    Matrix(RunId),
    /// A health check: `record:health/ID`.
    Health(RunId),
}

impl Reference {
    /// The file of a bundle; none where the name is not one that a file there can have.
    #[must_use]
    pub fn bundle(run: RunId, file: &str) -> Option<Self> {
        let file = RepoPath::new(file).filter(RepoPath::is_printable)?;
        Some(Self::Bundle { run, file })
    }

    /// Whether the text starts like a reference, so that it is one or a mistyped one.
    #[must_use]
    pub fn looks_like_one(text: &str) -> bool {
        text.starts_with(BUNDLE) || text.starts_with(RECORD)
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bundle { run, file } => write!(f, "{BUNDLE}{run}/{file}"),
            Self::Proof(engine, stage) => write!(f, "{RECORD}proof/{engine}/{stage}"),
            Self::Comparison(id) => write!(f, "{RECORD}comparison/{id}"),
            Self::Admission(id) => write!(f, "{RECORD}admission/{}/{}", id.kind(), id.name()),
            Self::Approval(id) => write!(f, "{RECORD}approval/{id}"),
            Self::Approver(name) => write!(f, "{RECORD}approver/{name}"),
            Self::Matrix(id) => write!(f, "{RECORD}matrix/{id}"),
            Self::Health(id) => write!(f, "{RECORD}health/{id}"),
        }
    }
}

impl FromStr for Reference {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || {
            let shown: String = text.chars().take(120).flat_map(char::escape_debug).collect();
            format!(
                "`{shown}` is not a reference: expected bundle:RUN/FILE, or record:KIND/ID with KIND one of proof, \
                 comparison, admission, approval, approver, matrix, health"
            )
        };
        let parsed = if let Some(rest) = text.strip_prefix(BUNDLE) {
            let (run, file) = rest.split_once('/').ok_or_else(bad)?;
            run.parse().ok().and_then(|run| Self::bundle(run, file))
        } else {
            text.strip_prefix(RECORD)
                .and_then(|rest| rest.split_once('/'))
                .and_then(|(kind, id)| record(kind, id))
        };
        // Only herma's own spelling is accepted: another would be a second name for the same.
        parsed.filter(|parsed| parsed.to_string() == text).ok_or_else(bad)
    }
}

fn record(kind: &str, id: &str) -> Option<Reference> {
    match kind {
        "proof" => {
            let (engine, stage) = id.split_once('/')?;
            let stage = Stage::try_from(stage.parse::<u8>().ok()?).ok()?;
            Some(Reference::Proof(engine.parse().ok()?, stage))
        }
        "comparison" => id.parse().ok().map(Reference::Comparison),
        "admission" => {
            let (kind, name) = id.split_once('/')?;
            let kind: AdmissionKind = kind.parse().ok()?;
            AdmissionId::parse(kind, name).ok().map(Reference::Admission)
        }
        "approval" => id.parse().ok().map(Reference::Approval),
        "approver" => id.parse().ok().map(Reference::Approver),
        "matrix" => id.parse().ok().map(Reference::Matrix),
        "health" => id.parse().ok().map(Reference::Health),
        _ => None,
    }
}

impl TryFrom<String> for Reference {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Reference> for String {
    fn from(reference: Reference) -> Self {
        reference.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "01a1f5d6-b81d-7ef7-8602-dd83cbabb102";

    #[test]
    fn every_kind_is_read_back_as_it_is_written() {
        for text in [
            format!("bundle:{ID}/report.json"),
            format!("bundle:{ID}/engine/stdout.log"),
            "record:proof/fake/4".to_owned(),
            format!("record:comparison/{ID}"),
            "record:admission/engine/codex".to_owned(),
            "record:admission/model/anthropic/claude-sonnet-4-5".to_owned(),
            "record:admission/target/my-repo".to_owned(),
            format!("record:approval/{ID}"),
            "record:approver/alice".to_owned(),
            format!("record:matrix/{ID}"),
            format!("record:health/{ID}"),
        ] {
            assert_eq!(text.parse::<Reference>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn nothing_else_is_a_reference() {
        for text in [
            String::new(),
            "report.json".to_owned(),
            format!("bundle:{ID}"),
            format!("bundle:{ID}/"),
            format!("bundle:{ID}/../../keys/installation.key"),
            format!("bundle:{ID}//etc/passwd"),
            format!("bundle:{ID}/a\nb"),
            "bundle:last/report.json".to_owned(),
            "record:proof/fake".to_owned(),
            "record:proof/fake/7".to_owned(),
            "record:proof/fake/04".to_owned(),
            "record:admission/engine/../keys".to_owned(),
            "record:key/installation".to_owned(),
            format!("record:matrix/{}", ID.to_uppercase()),
        ] {
            assert!(text.parse::<Reference>().is_err(), "{text}");
        }
    }
}
