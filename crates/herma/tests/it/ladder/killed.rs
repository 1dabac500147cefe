//! A proof that is killed leaves nothing behind, and an earlier one stands.

use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, RandomState};
use std::thread::sleep;
use std::time::Duration;

use super::{assert_all_closed, assert_no_ground, kept, proof, states};
use crate::kit::{Herma, Started, processes_of, until};

/// How often a proof is killed.
const ROUNDS: u64 = 4;

/// Up to this long after its start.
const WITHIN: u64 = 4_000;

#[test]
fn a_killed_proof_is_closed_and_removed_and_the_previous_one_stays() {
    let herma = Herma::stub_proven(5);
    let all = ["proven", "proven", "proven", "proven", "proven", "unproven"];
    for round in 0..ROUNDS {
        let stage = [5, 2, 4, 5, 3][usize::try_from(round % 5).unwrap()];
        // Spread over the whole proof, and never at the same places twice.
        let random = RandomState::new().hash_one(round) % (WITHIN / ROUNDS);
        let after = Duration::from_millis(round * WITHIN / ROUNDS + random);
        let before = herma.runs();
        let text = stage.to_string();
        let proving = herma.start(&["prove", "--engine", "stub", "--stage", &text, "--json"]);
        sleep(after);
        let ended = proving.kill();
        assert!(ended.was_killed() || ended.code == Some(0), "stage {stage} after {after:?}: {ended:#?}");

        // The next command closes what was under way.
        herma.json(&["runs", "--all", "--json"]);
        let runs: Vec<_> = herma.runs().into_iter().filter(|run| !before.contains(run)).collect();
        assert_all_closed(&herma, &runs);
        for run in runs {
            until("nothing of the run is alive", || processes_of(run).is_empty());
        }
        assert_eq!(states(&herma), all, "stage {stage} after {after:?}");
    }
    let before = kept(&herma, 5);
    let proven = herma.prove(5, &[]);
    assert_eq!(proven.code, Some(0), "{proven:#?}");
    assert_eq!(kept(&herma, 5), proof(&proven));
    assert!(kept(&herma, 5).proven_at > before.proven_at);
    assert_no_ground(&herma);
    assert_eq!(states(&herma), all);
}

/// A cut-off attempt does not prove an engine that was never proven.
#[test]
fn a_killed_first_attempt_proves_nothing() {
    let herma = Herma::stub_proven(1);
    let proven = herma.runs();
    for millis in [50, 400, 1_200] {
        let proving = herma.start(&["prove", "--engine", "stub", "--stage", "2", "--json"]);
        sleep(Duration::from_millis(millis));
        let ended = proving.kill();
        assert!(ended.was_killed(), "{ended:#?}");
        assert_eq!(states(&herma)[..3], ["proven", "unproven", "unproven"], "after {millis} ms");
        let runs: Vec<_> = herma.runs().into_iter().filter(|run| !proven.contains(run)).collect();
        assert_all_closed(&herma, &runs);
    }
    let proven = herma.prove(2, &[]);
    assert_eq!(proven.code, Some(0), "{proven:#?}");
    assert_no_ground(&herma);
}

/// Two proofs at once: the second waits, and neither takes the other's ground away.
#[test]
fn proofs_at_once_wait_for_each_other() {
    let herma = Herma::stub_proven(2);
    let prove = |stage: &str| herma.start(&["prove", "--engine", "stub", "--stage", stage, "--json"]);
    let all = [prove("1"), prove("2"), prove("1")].map(Started::end);
    for ended in &all {
        assert_eq!(ended.code, Some(0), "{ended:#?}");
    }
    let runs: Vec<_> =
        all.iter().flat_map(|ended| proof(ended).bundles).map(|bundle| bundle.run_id).collect();
    let distinct: BTreeSet<_> = runs.iter().collect();
    assert_eq!(distinct.len(), runs.len(), "two proofs lean on one run");
    assert_eq!(states(&herma)[..2], ["proven", "proven"]);
    assert_no_ground(&herma);
}
