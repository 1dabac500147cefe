//! The admission of an engine: which program, where it came from, what it is.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::complete::Incomplete;
use super::field::Field;
use super::review::{Review, ReviewTrigger};
use super::text::{AbsolutePath, Line};
use crate::digest::Digest;
use crate::engine::EngineName;

/// `kind: engine`, the first key of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EngineKind {
    /// An engine.
    Engine,
}

/// The file of an engine admission, as far as it is filled in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EngineDraft {
    /// `engine`.
    pub kind: EngineKind,
    /// The engine.
    pub engine: EngineName,
    /// The program, at a durable path.
    #[serde(default)]
    pub program: Option<AbsolutePath>,
    /// Where it comes from: a URL, or the name of a package.
    #[serde(default)]
    pub source: Option<Line>,
    /// The exact commit or version.
    #[serde(default)]
    pub pin: Option<Line>,
    /// The command that gets and builds it.
    #[serde(default)]
    pub retrieval: Option<Line>,
    /// Its license.
    #[serde(default)]
    pub license: Option<Line>,
    /// Whether the license question is settled. If not, the engine is admitted to stages 1 and 2 only.
    #[serde(default)]
    pub license_resolved: Option<bool>,
    /// The digest of everything that runs.
    #[serde(default)]
    pub digest: Option<Digest>,
    /// The identity that the program reports.
    #[serde(default)]
    pub identity: Option<Line>,
    /// The conditions that make a review due.
    #[serde(default)]
    pub review_trigger: Option<ReviewTrigger>,
    /// When the admission ends.
    #[serde(default)]
    pub expires_at: Option<Timestamp>,
}

/// The admission of an engine with everything that it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineAdmission {
    /// The engine.
    pub engine: EngineName,
    /// The program.
    pub program: AbsolutePath,
    /// Where it comes from.
    pub source: Line,
    /// The exact commit or version.
    pub pin: Line,
    /// The command that gets and builds it.
    pub retrieval: Line,
    /// Its license.
    pub license: Line,
    /// Whether the license question is settled.
    pub license_resolved: bool,
    /// The digest of everything that runs.
    pub digest: Digest,
    /// The identity that the program reports.
    pub identity: String,
    /// When it has to be looked at again.
    pub review: Review,
}

impl EngineDraft {
    /// An empty draft.
    #[must_use]
    pub fn new(engine: EngineName) -> Self {
        Self {
            kind: EngineKind::Engine,
            engine,
            program: None,
            source: None,
            pin: None,
            retrieval: None,
            license: None,
            license_resolved: None,
            digest: None,
            identity: None,
            review_trigger: None,
            expires_at: None,
        }
    }

    /// The record, if everything is there.
    pub fn complete(&self) -> Result<EngineAdmission, Incomplete> {
        let mut lacks = Incomplete::default();
        let program = lacks.need("program", self.program.as_ref());
        let source = lacks.need("source", self.source.as_ref());
        let pin = lacks.need("pin", self.pin.as_ref());
        let retrieval = lacks.need("retrieval", self.retrieval.as_ref());
        let license = lacks.need("license", self.license.as_ref());
        let license_resolved = lacks.need("license_resolved", self.license_resolved.as_ref());
        let digest = lacks.need("digest", self.digest.as_ref());
        let identity = lacks.need("identity", self.identity.as_ref());
        let review = Review::new(self.review_trigger.clone(), self.expires_at);
        let review = lacks.need("review_trigger or expires_at", review.as_ref());
        let record = (|| {
            Some(EngineAdmission {
                engine: self.engine.clone(),
                program: program?,
                source: source?,
                pin: pin?,
                retrieval: retrieval?,
                license: license?,
                license_resolved: license_resolved?,
                digest: digest?,
                identity: identity?.into(),
                review: review?,
            })
        })();
        record.ok_or(lacks)
    }

    /// The fields as they are written.
    #[must_use]
    pub fn fields(&self) -> Vec<Field> {
        vec![
            Field::word("kind", Some("engine")),
            Field::text("engine", Some(&self.engine)),
            Field::text("program", self.program.as_ref()),
            Field::text("source", self.source.as_ref()),
            Field::text("pin", self.pin.as_ref()),
            Field::text("retrieval", self.retrieval.as_ref()),
            Field::text("license", self.license.as_ref()),
            Field::word("license_resolved", self.license_resolved),
            Field::word("digest", self.digest),
            Field::text("identity", self.identity.as_ref()),
            Field::word("review_trigger", self.review_trigger.as_ref()),
            Field::word("expires_at", self.expires_at),
        ]
    }
}
