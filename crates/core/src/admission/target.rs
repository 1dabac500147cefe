//! The admission of a target: a repository, whose it is, and what may happen in it. Only this record holds the path.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::complete::Incomplete;
use super::field::Field;
use super::name::TargetName;
use super::review::{Review, ReviewTrigger};
use super::text::{AbsolutePath, Line};
use crate::contract::{Action, Pattern, Patterns};

/// `kind: target`, the first key of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    /// A target.
    Target,
}

/// How much is at stake in a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RiskClass {
    /// A mistake costs little, and nothing critical depends on it. The only class that can be admitted.
    LowRiskNoncritical,
    /// A mistake costs time or money.
    Moderate,
    /// Something critical depends on it.
    Critical,
}

/// The file of a target admission, as far as it is filled in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TargetDraft {
    /// `target`.
    pub kind: TargetKind,
    /// The name that contracts and reports call it by.
    pub name: TargetName,
    /// The repository's directory. It is in no other record.
    #[serde(default)]
    pub path: Option<AbsolutePath>,
    /// Its owner.
    #[serde(default)]
    pub owner: Option<Line>,
    /// How one knows.
    #[serde(default)]
    pub ownership_evidence: Option<Line>,
    /// How much is at stake.
    #[serde(default)]
    pub risk_class: Option<RiskClass>,
    /// The reason of the admission.
    #[serde(default)]
    pub rationale: Option<Line>,
    /// The paths that may change, whatever a contract allows: at least one pattern.
    #[serde(default)]
    pub allowed_paths: Option<Patterns>,
    /// The paths that may not change, whatever a contract allows; an empty list adds nothing to the built-in one.
    #[serde(default)]
    pub forbidden_paths: Option<Vec<Pattern>>,
    /// The actions that are forbidden, whatever a contract allows; an empty list adds nothing to the built-in one.
    #[serde(default)]
    pub forbidden_actions: Option<Vec<Action>>,
    /// The conditions that make a review due.
    #[serde(default)]
    pub review_trigger: Option<ReviewTrigger>,
    /// When the admission ends, beside the trigger.
    #[serde(default)]
    pub expires_at: Option<Timestamp>,
    /// Whether an operator has to accept or reject each result: only `true` can be admitted.
    #[serde(default)]
    pub operator_outcome_required: Option<bool>,
}

/// An operator has to accept or reject each result. There is no other value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutcomeRequired;

/// The admission of a target with everything that it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetAdmission {
    /// The name that contracts and reports call it by.
    pub name: TargetName,
    /// The repository's directory. Reports, bundles and messages never hold it.
    pub path: AbsolutePath,
    /// Its owner.
    pub owner: Line,
    /// How one knows.
    pub ownership_evidence: Line,
    /// Always `low_risk_noncritical`: a draft of another class is never complete.
    pub risk_class: RiskClass,
    /// The reason of the admission.
    pub rationale: Line,
    /// The paths that may change, whatever a contract allows.
    pub allowed_paths: Patterns,
    /// The paths that may not change, whatever a contract allows.
    pub forbidden_paths: Vec<Pattern>,
    /// The actions that are forbidden, whatever a contract allows.
    pub forbidden_actions: Vec<Action>,
    /// When it has to be looked at again.
    pub review: Review,
    /// Always.
    pub operator_outcome_required: OutcomeRequired,
}

impl RiskClass {
    /// The name as it is written in files and on the screen.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::LowRiskNoncritical => "low_risk_noncritical",
            Self::Moderate => "moderate",
            Self::Critical => "critical",
        }
    }
}

impl TargetDraft {
    /// An empty draft.
    #[must_use]
    pub fn new(name: TargetName) -> Self {
        Self {
            kind: TargetKind::Target,
            name,
            path: None,
            owner: None,
            ownership_evidence: None,
            risk_class: None,
            rationale: None,
            allowed_paths: None,
            forbidden_paths: None,
            forbidden_actions: None,
            review_trigger: None,
            expires_at: None,
            operator_outcome_required: None,
        }
    }

    /// The record, if it is complete and of the one class that can be admitted.
    pub fn complete(&self) -> Result<TargetAdmission, Incomplete> {
        let mut lacks = Incomplete::default();
        let path = lacks.need("path", self.path.as_ref());
        let owner = lacks.need("owner", self.owner.as_ref());
        let ownership_evidence = lacks.need("ownership_evidence", self.ownership_evidence.as_ref());
        let risk_class = lacks.need("risk_class", self.risk_class.as_ref());
        let rationale = lacks.need("rationale", self.rationale.as_ref());
        let allowed_paths = lacks.need("allowed_paths", self.allowed_paths.as_ref());
        let forbidden_paths = lacks.need("forbidden_paths", self.forbidden_paths.as_ref());
        let forbidden_actions = lacks.need("forbidden_actions", self.forbidden_actions.as_ref());
        let trigger = lacks.need("review_trigger", self.review_trigger.as_ref());
        let outcome = lacks.need("operator_outcome_required", self.operator_outcome_required.as_ref());
        if let Some(class @ (RiskClass::Moderate | RiskClass::Critical)) = risk_class {
            let class = class.as_str();
            lacks.refuse("risk_class", format!("only `low_risk_noncritical` is let in, not `{class}`"));
        }
        if outcome == Some(false) {
            lacks.refuse("operator_outcome_required", "only `true` is let in: a pass is not an acceptance");
        }
        lacks.refuse_digest_change(trigger.as_ref());
        if !lacks.is_empty() {
            return Err(lacks);
        }
        let record = (|| {
            Some(TargetAdmission {
                name: self.name.clone(),
                path: path?,
                owner: owner?,
                ownership_evidence: ownership_evidence?,
                risk_class: risk_class?,
                rationale: rationale?,
                allowed_paths: allowed_paths?,
                forbidden_paths: forbidden_paths?,
                forbidden_actions: forbidden_actions?,
                review: Review::new(trigger, self.expires_at)?,
                operator_outcome_required: OutcomeRequired,
            })
        })();
        record.ok_or(lacks)
    }

    /// The fields as they are written.
    #[must_use]
    pub fn fields(&self) -> Vec<Field> {
        let patterns = |list: &[Pattern]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        let actions = |list: &Vec<Action>| list.iter().map(|action| action.as_str().to_owned()).collect();
        vec![
            Field::word("kind", Some("target")),
            Field::text("name", Some(&self.name)),
            Field::text("path", self.path.as_ref()),
            Field::text("owner", self.owner.as_ref()),
            Field::text("ownership_evidence", self.ownership_evidence.as_ref()),
            Field::word("risk_class", self.risk_class.map(RiskClass::as_str)),
            Field::text("rationale", self.rationale.as_ref()),
            Field::list("allowed_paths", self.allowed_paths.as_ref().map(|list| patterns(list.as_slice()))),
            Field::list("forbidden_paths", self.forbidden_paths.as_deref().map(patterns)),
            Field::list("forbidden_actions", self.forbidden_actions.as_ref().map(actions)),
            Field::word("review_trigger", self.review_trigger.as_ref()),
            Field::word("expires_at", self.expires_at),
            Field::word("operator_outcome_required", self.operator_outcome_required),
        ]
    }
}
