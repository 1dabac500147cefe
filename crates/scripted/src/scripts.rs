//! Several scripts, of which one answers a request.

use std::collections::{BTreeMap, BTreeSet};

use herma_core::Digest;

use crate::scripted::Scripted;
use herma_dialect::ModelRequest;

/// The most requests that attempts are counted for.
const MOST_COUNTED: usize = 10_000;

/// The scripts of an upstream, in the order in which they are tried.
#[derive(Clone, Debug, Default)]
pub struct Scripts(Vec<Scripted>);

/// Two scripts have the same name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("two scripts have the name `{0}`; give one of them another")]
pub struct SameName(String);

impl Scripts {
    /// These, each with a name of its own.
    pub fn new(scripts: Vec<Scripted>) -> Result<Self, SameName> {
        let mut names = BTreeSet::new();
        match scripts.iter().find(|scripted| !names.insert(scripted.name())) {
            Some(twice) => Err(SameName(twice.name().to_owned())),
            None => Ok(Self(scripts)),
        }
    }

    /// The first that answers this request of this run.
    #[must_use]
    pub fn choose(&self, run: Option<&str>, request: &ModelRequest) -> Option<&Scripted> {
        self.0.iter().find(|scripted| scripted.matches(run, request))
    }

    /// The models of all scripts, each once, in order.
    #[must_use]
    pub fn models(&self) -> Vec<&str> {
        let mut seen = BTreeSet::new();
        self.0
            .iter()
            .flat_map(Scripted::models)
            .map(String::as_str)
            .filter(|model| seen.insert(*model))
            .collect()
    }
}

/// How often the same request was made, for turns that go wrong only so many `times`. All else of a script needs no
/// memory.
#[derive(Clone, Debug, Default)]
pub struct Attempts(BTreeMap<Digest, u32>);

impl Attempts {
    /// How often this request was made before. Counts it.
    pub fn count(&mut self, scripted: &Scripted, run: Option<&str>, request: &ModelRequest) -> u32 {
        let Some(key) = scripted.attempt_key(run, request) else { return 0 };
        if self.0.len() >= MOST_COUNTED && !self.0.contains_key(&key) {
            self.0.pop_first();
        }
        let count = self.0.entry(key).or_default();
        let before = *count;
        *count = count.saturating_add(1);
        before
    }
}
