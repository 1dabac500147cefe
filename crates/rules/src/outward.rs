//! The program calls that reach the outside, for the PATH shims.
//!
//! Calls that change only the workspace, such as a merge, are not included: test suites make them too.

use std::collections::{BTreeMap, BTreeSet};

use herma_core::contract::Action;

use crate::action_shapes::SHAPES;
use crate::actions::classify_words;

/// The actions that reach outside.
const OUTWARD: [Action; 6] = [
    Action::Push,
    Action::PrOpen,
    Action::Close,
    Action::IssueClose,
    Action::PublicPublication,
    Action::Deploy,
];

/// The words of a program of which one is in every call that reaches out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Telltale {
    /// Whether every call reaches out, with any words or none.
    pub always: bool,
    /// The words.
    pub words: BTreeSet<&'static str>,
}

/// Every program that can reach out.
#[must_use]
pub fn programs() -> BTreeMap<&'static str, Telltale> {
    let mut all: BTreeMap<&str, Telltale> = BTreeMap::new();
    for shape in SHAPES.iter().filter(|shape| OUTWARD.contains(&shape.action)) {
        for program in shape.programs.split_whitespace() {
            let telltale = all.entry(program).or_default();
            for words in shape.followed_by {
                // The last one says most.
                match words.split_whitespace().rfind(|word| *word != "*") {
                    Some(word) => drop(telltale.words.insert(word)),
                    None => telltale.always = true,
                }
            }
        }
    }
    all
}

/// The actions outside that a call takes: the program's name and its arguments, as they were.
#[must_use]
pub fn reaches_out(call: &[String]) -> Vec<Action> {
    classify_words(call).into_iter().filter(|action| OUTWARD.contains(action)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn out(call: &str) -> Vec<Action> {
        reaches_out(&call.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn outward_calls_are_told_from_local_ones() {
        assert_eq!(out("git -C sub push origin main"), [Action::Push]);
        assert_eq!(out("gh pr create --fill"), [Action::PrOpen]);
        assert_eq!(out("npm publish"), [Action::PublicPublication]);
        assert_eq!(out("cargo publish --token x"), [Action::PublicPublication]);
        for inside in
            ["git merge main", "git tag v1", "git log", "cargo vendor", "ssh-keygen", "cargo test", "ls push"]
        {
            assert_eq!(out(inside), [], "{inside}");
        }
        // The words of a call are no script, whatever they contain.
        assert_eq!(reaches_out(&["git".into(), "commit".into(), "-m".into(), "x; git push".into()]), []);
    }

    #[test]
    fn every_shape_has_its_telltale() {
        let programs = programs();
        let git = &programs["git"];
        assert!(git.words.contains("push") && !git.words.contains("merge") && !git.always, "{git:?}");
        assert!(programs["ansible-playbook"].always);
        assert!(programs["gh"].words.contains("create"));
        assert!(!programs.contains_key("ssh-keygen"));
        // They go into a pattern of a shell: nothing in them means anything there.
        for (program, telltale) in &programs {
            for word in telltale.words.iter().chain([program]) {
                assert!(word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'), "{word}");
            }
        }
    }
}
