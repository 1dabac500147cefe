//! From the file's bytes to a draft, or to an error that points at the line and names the field.

use super::endpoint::{bad_url_in, endpoint_in};
use super::engine::EngineDraft;
use super::field::{Field, to_yaml};
use super::model::ModelDraft;
use super::name::AdmissionId;
use super::target::TargetDraft;
use super::text::check_line;
use super::{AdmissionKind, Incomplete};
pub use crate::yaml::BadYaml as BadAdmission;
use crate::yaml::{self, Page};

/// An admission is a page of text; what is larger is not one.
pub const MAX_BYTES: u64 = 64 << 10;

const PAGE: Page = Page { part: "the file", docs: "docs/admissions.md" };

/// The file of an admission, as far as it is filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdmissionDraft {
    /// Of an engine.
    Engine(EngineDraft),
    /// Of a model.
    Model(ModelDraft),
    /// Of a target.
    Target(TargetDraft),
}

impl AdmissionDraft {
    /// An empty draft.
    #[must_use]
    pub fn new(id: AdmissionId) -> Self {
        match id {
            AdmissionId::Engine(engine) => Self::Engine(EngineDraft::new(engine)),
            AdmissionId::Model(model) => Self::Model(ModelDraft::new(model)),
            AdmissionId::Target(name) => Self::Target(TargetDraft::new(name)),
        }
    }

    /// Reads a file's bytes. Unknown keys, hidden characters and endpoints are errors.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadAdmission> {
        let text = yaml::text(bytes, "an admission", MAX_BYTES)?;
        let draft = match kind_of(text)? {
            AdmissionKind::Engine => Self::Engine(yaml::read(text, PAGE)?),
            AdmissionKind::Model => Self::Model(yaml::read(text, PAGE)?),
            AdmissionKind::Target => Self::Target(yaml::read(text, PAGE)?),
        };
        draft.check().map_err(|bad| bad.in_file(text))?;
        check_comments(text)?;
        Ok(draft)
    }

    /// The file's text. Comments of an earlier text are not in it.
    #[must_use]
    pub fn to_yaml(&self) -> String {
        to_yaml(&self.fields())
    }

    /// The name of the thing that it admits.
    #[must_use]
    pub fn id(&self) -> AdmissionId {
        match self {
            Self::Engine(draft) => AdmissionId::Engine(draft.engine.clone()),
            Self::Model(draft) => AdmissionId::Model(draft.model_ref()),
            Self::Target(draft) => AdmissionId::Target(draft.name.clone()),
        }
    }

    /// The fields that it lacks before it can be signed; none if it is complete.
    #[must_use]
    pub fn lacks(&self) -> Option<Incomplete> {
        match self {
            Self::Engine(draft) => draft.complete().err(),
            Self::Model(draft) => draft.complete().err(),
            Self::Target(draft) => draft.complete().err(),
        }
    }

    /// The fields as they are written.
    #[must_use]
    pub fn fields(&self) -> Vec<Field> {
        match self {
            Self::Engine(draft) => draft.fields(),
            Self::Model(draft) => draft.fields(),
            Self::Target(draft) => draft.fields(),
        }
    }

    /// Whether every text shows what it holds, and none says where something is reached.
    pub fn check(&self) -> Result<(), BadField> {
        for field in self.fields() {
            for text in field.texts() {
                check_line(text).map_err(|why| BadField { field: field.key, why })?;
                let may_hold_urls =
                    matches!(self, Self::Engine(_)) && matches!(field.key, "source" | "retrieval");
                let (found, expected) = if may_hold_urls {
                    (bad_url_in(text), "a URL stands here without user, query and address")
                } else {
                    (endpoint_in(text), "an admission says what is let in, not where it is reached")
                };
                if let Some(what) = found {
                    return Err(BadField { field: field.key, why: format!("it holds {what}; {expected}") });
                }
            }
        }
        Ok(())
    }
}

/// A field that holds what an admission must not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{field}`: {why}")]
pub struct BadField {
    /// Which field.
    pub field: &'static str,
    /// The problem.
    pub why: String,
}

impl BadField {
    fn in_file(self, text: &str) -> BadAdmission {
        let is_it =
            |line: &str| line.strip_prefix(self.field).is_some_and(|rest| rest.trim_start().starts_with(':'));
        let line = text.lines().position(is_it);
        let bad = BadAdmission::new(self.to_string(), "");
        line.map_or_else(|| bad.clone(), |line| bad.clone().at(line as u64 + 1, 1))
    }
}

/// The kind: the first key of the file.
fn kind_of(text: &str) -> Result<AdmissionKind, BadAdmission> {
    let is_content =
        |line: &str| !line.trim().is_empty() && !line.starts_with('#') && line.trim_end() != "---";
    let (at, line) = text.lines().enumerate().find(|(_, line)| is_content(line)).unwrap_or((0, ""));
    let place = at as u64 + 1;
    let Some(value) = line.strip_prefix("kind:") else {
        return Err(BadAdmission::new(
            "the first key is not `kind`",
            "expected `kind: engine`, `kind: model` or `kind: target`; `herma admit` writes a draft to start from",
        )
        .at(place, 1));
    };
    let value = value.split(" #").next().unwrap_or_default().trim().trim_matches(['"', '\'']);
    value.parse().map_err(|why: String| BadAdmission::new(why, "").at(place, 7))
}

/// Checks comments too: the same people read them.
fn check_comments(text: &str) -> Result<(), BadAdmission> {
    for (at, line) in text.lines().enumerate() {
        let begins = line
            .char_indices()
            .find(|(i, c)| *c == '#' && (*i == 0 || line[..*i].ends_with(char::is_whitespace)));
        let Some((column, _)) = begins else { continue };
        let comment = &line[column + 1..];
        let place = |bad: BadAdmission| Err(bad.at(at as u64 + 1, line[..column].chars().count() as u64 + 1));
        if let Some(what) = endpoint_in(comment) {
            let expected = "an admission says what is let in, not where it is reached";
            return place(BadAdmission::new(format!("a comment holds {what}"), expected));
        }
        if !comment.trim().is_empty()
            && let Err(why) = check_line(comment.trim())
        {
            return place(BadAdmission::new(format!("a comment: {why}"), ""));
        }
    }
    Ok(())
}
