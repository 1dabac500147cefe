//! Digests over the rules, for approvals: a person's yes was given under the rules as they were.

use std::collections::BTreeSet;

use herma_core::Digest;
use herma_core::contract::{Action, Terms};
use herma_core::name_characters::{REFUSED_IN_NAMES, RefusedCharacters};
use serde_json::{Value, json};

use crate::action_shapes::{HARMLESS, SHAPES, SHELLS, TAKE_A_VALUE, WRAPPERS};
use crate::allowed_paths::MAX_FILE_BYTES;
use crate::bare_repositories::PIECES;
use crate::egress_actions::EGRESS_HOSTS;
use crate::forbidden_paths::{Lift, built_in};
use crate::path_length::{MAX_NAME_BYTES, MAX_PATH_BYTES};
use crate::verification_files::{DECIDING, PYTHON_LIBRARY, PYTHON_ROOTS, PYTHON_RUNNERS, SHADOWS};

/// The version of the rules that are code and not tables. It goes up when one of them judges otherwise than before.
const RULES_VERSION: u32 = 4;

/// Digest over the rules that no contract can change: the tables, and the version of what is no table.
#[must_use]
pub fn policy_digest() -> Digest {
    Digest::of(rules().to_string().as_bytes())
}

/// The hosts that every run of an installation may reach, besides those of its contract.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EgressRules {
    /// The entries of the installation's list.
    pub hosts: BTreeSet<String>,
    /// The digests of the grants that hold.
    pub grants: BTreeSet<Digest>,
}

/// Digest over the hosts that the engine may reach: those of the contract, those of the installation, and those of grants.
/// Their order means nothing.
#[must_use]
pub fn egress_digest(terms: &Terms, rules: &EgressRules) -> Digest {
    let hosts: BTreeSet<&String> = terms.egress.iter().collect();
    let EgressRules { hosts: installation, grants } = rules;
    Digest::of(json!(["herma.egress/v2", hosts, installation, grants]).to_string().as_bytes())
}

/// The rules as lists of texts and numbers in a unique form. The reasons are left out: other reasons are not other
/// rules.
fn rules() -> Value {
    let paths: Vec<_> = built_in()
        .iter()
        .map(|path| match path.lift {
            Lift::ByContract => json!([path.pattern, "lifted by contract"]),
            Lift::Never => json!([path.pattern, "never lifted"]),
        })
        .collect();
    let shapes: Vec<_> =
        SHAPES.iter().map(|shape| json!([shape.action, shape.programs, shape.followed_by])).collect();
    let places: Vec<_> =
        EGRESS_HOSTS.iter().map(|place| json!([place.hosts, place.actions, place.nothing_else])).collect();
    let refused: Vec<_> = REFUSED_IN_NAMES.iter().map(ranges).collect();
    let deciding: Vec<_> = DECIDING.iter().flat_map(|group| group.patterns).collect();
    let shadows: Vec<_> = SHADOWS.iter().flat_map(|(_, ends)| ends.iter()).collect();
    json!([
        "herma.policy/v1",
        RULES_VERSION,
        paths,
        Action::BUILT_IN,
        shapes,
        HARMLESS,
        TAKE_A_VALUE,
        WRAPPERS,
        SHELLS,
        MAX_FILE_BYTES,
        places,
        refused,
        [MAX_PATH_BYTES, MAX_NAME_BYTES],
        PIECES,
        deciding,
        [PYTHON_ROOTS, &[PYTHON_RUNNERS, PYTHON_LIBRARY]],
        shadows
    ])
}

/// The first and the last code point of each range.
fn ranges(class: &RefusedCharacters) -> Vec<[u32; 2]> {
    class.ranges.iter().map(|range| [u32::from(*range.start()), u32::from(*range.end())]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(egress: &str) -> Terms {
        let text = format!(
            "---\nid: a\ntitle: b\ntarget: {{ fixture: c }}\nstage: 4\nallowed_paths: [d]\negress: {egress}\n---\ne\n"
        );
        herma_core::Contract::parse(text.as_bytes()).unwrap().terms
    }

    #[test]
    fn the_rules_are_in_their_canonical_form_and_hold_every_table() {
        let text = rules().to_string();
        assert_eq!(text.as_bytes(), serde_json_canonicalizer::to_vec(&rules()).unwrap());
        assert_eq!(policy_digest(), Digest::of(text.as_bytes()));
        for path in built_in() {
            assert!(text.contains(&json!(path.pattern).to_string()), "{}", path.pattern);
        }
        for pattern in DECIDING.iter().flat_map(|group| group.patterns) {
            assert!(text.contains(&json!(pattern).to_string()), "{pattern}");
        }
        for shape in SHAPES {
            assert!(text.contains(shape.programs), "{}", shape.programs);
        }
        for list in [WRAPPERS, SHELLS, HARMLESS[0].2, TAKE_A_VALUE[0].1] {
            assert!(text.contains(list), "{list}");
        }
    }

    #[test]
    fn other_hosts_are_another_digest_and_another_order_is_not() {
        let none = EgressRules::default();
        let one = egress_digest(&terms("[a.example, b.example]"), &none);
        assert_eq!(one, egress_digest(&terms("[b.example, a.example, a.example]"), &none));
        for other in ["[]", "[a.example]", "[a.example, c.example]", "[\"a.example,b.example\"]"] {
            assert_ne!(one, egress_digest(&terms(other), &none), "{other}");
        }
    }

    #[test]
    fn the_installations_hosts_are_part_of_the_digest_apart_from_the_contracts() {
        let hosts = BTreeSet::from(["a.example".to_owned()]);
        let grants = BTreeSet::from([Digest::of(b"a grant")]);
        let all = [
            EgressRules::default(),
            EgressRules { hosts: hosts.clone(), grants: BTreeSet::new() },
            EgressRules { hosts: BTreeSet::new(), grants: grants.clone() },
            EgressRules { hosts, grants },
        ];
        let digests: BTreeSet<Digest> = all.iter().map(|rules| egress_digest(&terms("[]"), rules)).collect();
        assert_eq!(digests.len(), all.len());
        assert!(!digests.contains(&egress_digest(&terms("[a.example]"), &all[0])));
    }
}
