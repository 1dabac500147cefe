//! Replays the fuzz corpora: every input that was ever worth keeping still leads to no panic.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on must fail"
)]

use std::collections::BTreeSet;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use herma_testkit::fuzz::TARGETS;

/// Fewer seeds say too little about what a target reads.
const FEWEST_SEEDS: usize = 5;
/// More would make the replay slow and the repository large.
const MOST_SEEDS: usize = 400;
/// A seed is small, so that a person can read it.
const LARGEST_SEED: u64 = 16 << 10;

fn fuzz_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

fn seeds(target: &str) -> Vec<PathBuf> {
    let dir = fuzz_dir().join("corpus").join(target);
    let entries = fs::read_dir(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let mut seeds: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    seeds.sort();
    seeds
}

#[test]
fn every_seed_is_read_without_a_panic() {
    let mut failed = Vec::new();
    for (name, target) in TARGETS {
        for seed in seeds(name) {
            let input = fs::read(&seed).unwrap();
            if catch_unwind(|| target(&input)).is_err() {
                failed.push(seed);
            }
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn every_target_has_seeds_that_a_person_can_read() {
    let mut all = 0;
    for (name, _) in TARGETS {
        let seeds = seeds(name);
        assert!(seeds.len() >= FEWEST_SEEDS, "{name} has {} seeds", seeds.len());
        all += seeds.len();
        for seed in seeds {
            assert!(fs::metadata(&seed).unwrap().len() <= LARGEST_SEED, "{} is large", seed.display());
        }
    }
    assert!(all < MOST_SEEDS, "{all} seeds");
}

#[test]
fn every_corpus_and_every_fuzz_target_is_known() {
    let known: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let listed = |dir: &str| -> BTreeSet<String> {
        let entries = fs::read_dir(fuzz_dir().join(dir)).unwrap();
        let name = |path: PathBuf| path.file_stem().unwrap().to_string_lossy().into_owned();
        entries.map(|entry| name(entry.unwrap().path())).collect()
    };
    assert_eq!(listed("corpus"), known);
    assert_eq!(listed("fuzz_targets"), known);
    let manifest = fs::read_to_string(fuzz_dir().join("Cargo.toml")).unwrap();
    for name in &known {
        assert!(manifest.contains(&format!("name = \"{name}\"\n")), "{name} is not in fuzz/Cargo.toml");
    }
}
