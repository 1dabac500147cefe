//! From a draft to a record that can be signed: everything must be there, and nothing be said that admits nothing.

use std::fmt;

use super::review::ReviewTrigger;

/// The fields that a draft lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Incomplete {
    /// Fields that are empty.
    pub missing: Vec<&'static str>,
    /// Fields that say something by which nothing can be admitted.
    pub refused: Vec<Refusal>,
}

/// A field that says something by which nothing can be admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Which field.
    pub field: &'static str,
    /// Why not.
    pub why: String,
}

impl Incomplete {
    /// The field's value, or a note that it is missing.
    pub(super) fn need<T: Clone>(&mut self, field: &'static str, value: Option<&T>) -> Option<T> {
        if value.is_none() {
            self.missing.push(field);
        }
        value.cloned()
    }

    pub(super) fn refuse(&mut self, field: &'static str, why: impl Into<String>) {
        self.refused.push(Refusal { field, why: why.into() });
    }

    /// Only an engine has a program that could change.
    pub(super) fn refuse_digest_change(&mut self, trigger: Option<&ReviewTrigger>) {
        if trigger == Some(&ReviewTrigger::DigestChange) {
            self.refuse("review_trigger", "`digest_change` is for engines: nothing else has a program");
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.missing.is_empty() && self.refused.is_empty()
    }
}

impl fmt::Display for Incomplete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if !self.missing.is_empty() {
            let fields: Vec<_> = self.missing.iter().map(|field| format!("`{field}`")).collect();
            parts.push(format!("missing: {}", fields.join(", ")));
        }
        parts.extend(self.refused.iter().map(|Refusal { field, why }| format!("`{field}`: {why}")));
        f.write_str(&parts.join("; "))
    }
}
