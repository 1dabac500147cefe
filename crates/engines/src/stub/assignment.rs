//! The stdin of `stub`: the contract, and how it should behave.

use std::io;

use herma_core::contract::Terms;
use herma_core::{Contract, Digest};
use serde::{Deserialize, Serialize};

use crate::engine::Assignment;

/// The largest assignment: a contract and a script of the largest size, every byte of them escaped.
pub const MAX_BYTES: usize = 64 << 20;

/// The assignment of one run, as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StubAssignment {
    /// Which form this is.
    pub schema: AssignmentSchema,
    /// The contract's front matter, defaults filled in.
    pub contract: Terms,
    /// The contract's digest; the result must name it.
    pub contract_digest: Digest,
    /// The contract's body: the task of the program.
    pub brief: String,
    /// The steps, in the script language of `fake`; none means that it does nothing.
    pub script: Option<String>,
}

/// The form of an assignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AssignmentSchema {
    /// The first one.
    #[serde(rename = "herma.stub-assignment/v1")]
    V1,
}

/// Why bytes are not an assignment.
#[derive(Debug, thiserror::Error)]
pub enum BadAssignment {
    /// There are too many of them.
    #[error("it has more than {MAX_BYTES} bytes")]
    TooLarge,
    /// They are not JSON of this form.
    #[error("{}", shortened(.0))]
    Form(#[from] serde_json::Error),
    /// They contradict themselves.
    #[error("`contract_digest` is {named}, and contract and brief give {found}")]
    Digest {
        /// The stated digest.
        named: Digest,
        /// The computed digest.
        found: Digest,
    },
}

impl StubAssignment {
    /// The assignment for the program.
    pub fn of(assignment: &Assignment<'_>) -> io::Result<Self> {
        Ok(Self {
            schema: AssignmentSchema::V1,
            contract: assignment.contract.terms.clone(),
            contract_digest: assignment.contract.digest()?,
            brief: assignment.contract.brief.clone(),
            script: assignment.script_to_play().map(str::to_owned),
        })
    }

    /// Parses an assignment and checks its digest.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadAssignment> {
        if bytes.len() > MAX_BYTES {
            return Err(BadAssignment::TooLarge);
        }
        let read: Self = serde_json::from_slice(bytes)?;
        let contract = Contract { terms: read.contract, brief: read.brief };
        let found = contract.digest()?;
        if found != read.contract_digest {
            return Err(BadAssignment::Digest { named: read.contract_digest, found });
        }
        Ok(Self { contract: contract.terms, brief: contract.brief, ..read })
    }
}

/// Shortens an error, which may repeat any amount of its input.
fn shortened(error: &serde_json::Error) -> String {
    error.to_string().chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn contract(fixture: &str) -> Contract {
        Contract::parse(herma_fixtures::find(fixture).unwrap().contract.as_bytes()).unwrap()
    }

    fn written() -> Vec<u8> {
        let contract = contract("string-slugify");
        let assignment = Assignment { contract: &contract, script: None, resume: None, note: None };
        serde_json::to_vec(&StubAssignment::of(&assignment).unwrap()).unwrap()
    }

    #[test]
    fn assignments_survive_a_round_trip_for_every_fixture() {
        for fixture in herma_fixtures::all() {
            let contract = contract(fixture.name);
            let written = StubAssignment::of(&Assignment {
                contract: &contract,
                script: None,
                resume: None,
                note: None,
            })
            .unwrap();
            assert_eq!(written.script.as_deref(), fixture.script("fix"), "{}", fixture.name);
            assert_eq!(written.contract_digest, contract.digest().unwrap());
            let read = StubAssignment::parse(&serde_json::to_vec(&written).unwrap()).unwrap();
            assert_eq!(read, written, "{}", fixture.name);
        }
    }

    #[test]
    fn every_term_of_a_contract_is_read_back() {
        let text = "---\nid: full\ntitle: all of it\ntarget: { repo: ../r, base: main }\nstage: 3\nallowed_paths: [a]\n\
                    forbidden_paths: [b]\nlift_paths: [Cargo.lock]\nforbidden_actions: [tag]\nverify: ['true']\n\
                    tests_may_change: true\nsuccess: [it works]\nrequire_diff: false\nrisk: low\nauthority: me\n\
                    rollback: none\nlimits: { total: 90s, startup: 1500ms, idle: 2m, memory: 4GiB, tokens: 200k, usd: 2.50 }\n\
                    model: { provider: p, model: m, fallback: [f], auxiliary: [x] }\ndestination: sandbox\n\
                    egress: [example.org]\ntoolchains: [python]\nneeds: [resume]\n---\nDo it, with \u{1} and ü.\n";
        let contract = Contract::parse(text.as_bytes()).unwrap();
        let written =
            StubAssignment::of(&Assignment { contract: &contract, script: None, resume: None, note: None })
                .unwrap();
        assert_eq!(written.script, None);
        let read = StubAssignment::parse(&serde_json::to_vec(&written).unwrap()).unwrap();
        assert_eq!((read.contract, read.brief), (contract.terms, contract.brief));
    }

    #[test]
    fn contradictory_or_malformed_values_are_refused() {
        let error = |change: fn(&mut serde_json::Value)| {
            let mut value = serde_json::from_slice(&written()).unwrap();
            change(&mut value);
            let bytes = serde_json::to_vec(&value).unwrap();
            StubAssignment::parse(&bytes).unwrap_err()
        };
        assert!(matches!(error(|v| v["brief"] = "another".into()), BadAssignment::Digest { .. }));
        assert!(matches!(error(|v| v["contract"]["stage"] = 3.into()), BadAssignment::Digest { .. }));
        assert!(matches!(error(|v| v["extra"] = 1.into()), BadAssignment::Form(_)));
        assert!(matches!(error(|v| v["schema"] = "herma.stub-assignment/v2".into()), BadAssignment::Form(_)));
        assert!(matches!(
            error(|v| drop(v.as_object_mut().unwrap().remove("brief"))),
            BadAssignment::Form(_)
        ));
        assert!(StubAssignment::parse(&vec![b' '; MAX_BYTES + 1]).is_err());
        assert!(StubAssignment::parse("[".repeat(1 << 20).as_bytes()).is_err());
        let long = error(|v| v[&"x".repeat(1 << 20)] = 1.into()).to_string();
        assert!(long.len() < 1000, "{} bytes", long.len());
    }

    proptest! {
        #[test]
        fn damaged_bytes_are_refused_or_still_agree_with_their_digest(
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
            cut in any::<bool>(),
        ) {
            let mut bytes = written();
            let at = at.index(bytes.len());
            if cut { bytes.truncate(at) } else { bytes[at] = byte }
            if let Ok(read) = StubAssignment::parse(&bytes) {
                let contract = Contract { terms: read.contract, brief: read.brief };
                prop_assert_eq!(contract.digest().unwrap(), read.contract_digest);
            }
        }
    }
}
