//! Terms and facts for the tests.

use std::str::FromStr;

use herma_core::RepoPath;
use herma_core::contract::{Contract, Pattern, Patterns, Terms};
use herma_core::report::{ChangedFile, Entry, Mode, PathRule};
use herma_rules::{PathRules, TreeFacts};

pub(crate) fn terms(allowed: &[&str], forbidden: &[&str], lifted: &[&str]) -> Terms {
    let text = b"---\nid: a\ntitle: b\ntarget: { fixture: c }\nstage: 2\nallowed_paths: [d]\n---\ne\n";
    let patterns =
        |texts: &[&str]| texts.iter().map(|text| Pattern::from_str(text).unwrap()).collect::<Vec<_>>();
    let mut terms = Contract::parse(text).unwrap().terms;
    terms.allowed_paths = Patterns::try_from(patterns(allowed)).unwrap();
    terms.forbidden_paths = patterns(forbidden);
    terms.lift_paths = patterns(lifted);
    terms
}

pub(crate) fn path(bytes: impl AsRef<[u8]>) -> RepoPath {
    RepoPath::new(bytes.as_ref()).unwrap()
}

/// A tree under construction.
#[derive(Default)]
pub(crate) struct Tree(pub(crate) TreeFacts);

impl Tree {
    pub(crate) fn change(mut self, at: impl AsRef<[u8]>, old: Option<Mode>, new: Option<Mode>) -> Self {
        let path = path(at);
        let entry = |mode| Entry { mode, id: "0".repeat(40) };
        if new.is_some() {
            self.0.paths.push(path.clone());
            self.0.sizes.insert(path.clone(), 1);
        }
        self.0.changes.push(ChangedFile { path, old: old.map(entry), new: new.map(entry) });
        self
    }

    pub(crate) fn add(self, at: impl AsRef<[u8]>) -> Self {
        self.change(at, None, Some(Mode::File))
    }

    pub(crate) fn edit(self, at: impl AsRef<[u8]>) -> Self {
        self.change(at, Some(Mode::File), Some(Mode::File))
    }

    pub(crate) fn delete(self, at: impl AsRef<[u8]>) -> Self {
        self.change(at, Some(Mode::File), None)
    }

    pub(crate) fn link(mut self, at: &str, target: &str) -> Self {
        self.0.links.insert(path(at), target.as_bytes().to_vec());
        self.change(at, None, Some(Mode::Symlink))
    }

    pub(crate) fn keep(mut self, at: &str) -> Self {
        self.0.paths.push(path(at));
        self
    }

    /// The paths and rules that are broken.
    pub(crate) fn broken(&self, terms: &Terms) -> Vec<(String, PathRule)> {
        let violations = PathRules::compile(terms).unwrap().judge(&self.0);
        assert!(violations.is_sorted());
        assert!(violations.iter().all(|v| !v.detail.is_empty()));
        violations.iter().map(|v| (v.path.to_string(), v.rule)).collect()
    }
}
