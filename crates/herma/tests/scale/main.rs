//! The cost of many runs in one home. Not part of the normal tests: `scripts/long` runs it, with a release build.

#![allow(clippy::disallowed_types, reason = "the test starts herma itself, from outside")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on must fail"
)]

mod large_target;

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use herma_core::store::RunSummary;
use herma_core::{Event, Report, RunId, Timestamp};
use herma_evidence::{chain, report};
use herma_store::{BlockingStore, StoreLocation};

/// How many runs one home sees, and how many of the first and of the last are compared.
const RUNS: usize = 1_000;
const COMPARED: usize = 100;
/// How many stored runs a short and a long list have, and how often each is read.
const FEW: u32 = 100;
const MANY: u32 = 10_000;
const READS: usize = 61;

#[test]
fn the_last_of_a_thousand_runs_take_as_long_as_the_first() {
    let home = new_home();
    let first = in_turns_with_a_young_home(home.path());
    for _ in COMPARED..RUNS - COMPARED {
        a_run(home.path());
    }
    let last = in_turns_with_a_young_home(home.path());
    let ratio = |a: Duration, b: Duration| a.as_secs_f64() / b.as_secs_f64();
    let (raw, machine) = (ratio(last.own, first.own), ratio(last.young, first.young));
    say(&format!("{COMPARED} runs, first and last: {first:?}, {last:?}"));
    say(&format!("{raw:.3}x, of which the machine itself {machine:.3}x: {:.3}x", raw / machine));
    assert!(raw / machine <= 1.2, "{raw} / {machine}");
}

/// The memory of herma and its git on any target.
const MAX_BYTES: u64 = 512 << 20;

#[test]
fn a_target_of_200_000_files_takes_512_mib_and_hardly_longer_than_a_clone() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("target");
    large_target::make(&target, 200_000, &[]);
    let (mut cloned, mut prepared) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        cloned.push(large_target::clone(&target, &dir.path().join("clone")));
        let watched = watch_large(dir.path());
        say(&format!(
            "clone {:?}, preparation {:?}, {} MiB",
            cloned.last(),
            watched.preparation,
            watched.peak_bytes >> 20
        ));
        assert!(watched.peak_bytes <= MAX_BYTES, "{} bytes", watched.peak_bytes);
        assert!(watched.said.contains(" of 200,001 files"), "{}", watched.said);
        prepared.push(watched.preparation);
    }
    let ratio = median(prepared).as_secs_f64() / median(cloned).as_secs_f64();
    say(&format!("preparation of 200,000 files: {ratio:.2}x a clone"));
    assert!(ratio <= 1.5, "{ratio}");
}

#[test]
fn a_target_of_five_gigabytes_takes_512_mib() {
    let dir = tempfile::tempdir().unwrap();
    large_target::make(&dir.path().join("target"), 0, &[1_300, 1_300, 1_300, 600, 600]);
    let watched = watch_large(dir.path());
    say(&format!("five gigabytes in five files: {} MiB", watched.peak_bytes >> 20));
    assert!(watched.peak_bytes <= MAX_BYTES, "{} bytes", watched.peak_bytes);
}

fn watch_large(dir: &Path) -> large_target::Watched {
    let home = new_home();
    let (contract, script) = large_target::contract(dir, "target");
    let mut herma = Command::new(env!("CARGO_BIN_EXE_herma"));
    herma.env("HERMA_HOME", home.path()).arg("run").arg(contract).arg("--script").arg(script);
    large_target::watch(herma)
}

/// A directory that herma takes as its home: empty, and its owner's alone.
fn new_home() -> tempfile::TempDir {
    tempfile::Builder::new().permissions(fs::Permissions::from_mode(0o700)).tempdir().unwrap()
}

/// How long some runs took in a home, and as many in a home that has seen few.
#[derive(Debug, Default)]
struct Times {
    own: Duration,
    young: Duration,
}

/// In turns, so that a machine that becomes slower or faster meets both.
fn in_turns_with_a_young_home(home: &Path) -> Times {
    let young = new_home();
    let mut times = Times::default();
    for _ in 0..COMPARED {
        times.own += a_run(home);
        times.young += a_run(young.path());
    }
    times
}

#[test]
fn listing_the_newest_runs_does_not_depend_on_how_many_there_are() {
    let (few, many) = (home_with(FEW), home_with(MANY));
    let (mut short, mut long) = (Vec::new(), Vec::new());
    // In turns, so that what else the machine does meets both.
    for _ in 0..READS {
        short.push(herma(few.path(), &["runs", "--all", "--limit", "20"]));
        long.push(herma(many.path(), &["runs", "--all", "--limit", "20"]));
    }
    let (short, long) = (median(short), median(long));
    let ratio = long.as_secs_f64() / short.as_secs_f64();
    say(&format!("20 of {FEW} runs {short:?}, 20 of {MANY} runs {long:?}: {ratio:.3}x"));
    assert!(ratio <= 1.5, "{ratio}");
}

fn a_run(home: &Path) -> Duration {
    herma(home, &["run", "fixture:string-slugify", "--destination", "host", "--json"])
}

/// A home in whose store are this many runs, all like one that really was.
fn home_with(runs: u32) -> tempfile::TempDir {
    let home = new_home();
    a_run(home.path());
    let run = fs::read_dir(home.path().join("runs")).unwrap().next().unwrap().unwrap();
    let bundle = run.path().join("bundle");
    let report = report::parse(&fs::read(bundle.join("report.json")).unwrap()).unwrap();
    let events = fs::read(bundle.join("events.jsonl")).unwrap();
    let lines = events.split(|b| *b == b'\n').filter(|line| !line.is_empty());
    let events: Vec<Event> = lines.map(|line| chain::parse_line(line).unwrap()).collect();
    let store = BlockingStore::open(&StoreLocation::file(home.path().join("store.db"))).unwrap();
    for number in 1..runs {
        store_copy(&store, &report, &events, number);
    }
    home
}

fn store_copy(store: &BlockingStore, report: &Report, events: &[Event], number: u32) {
    let before = report.run_started_at.as_millisecond() - i64::from(number) * 1_000;
    let started_at = Timestamp::from_millisecond(before).unwrap();
    let mut entropy = [0; 10];
    entropy[6..].copy_from_slice(&number.to_be_bytes());
    let run_id = RunId::new(started_at, entropy);
    let report = Report { run_id, run_started_at: started_at, run_finished_at: started_at, ..report.clone() };
    let begun = RunSummary {
        run_id,
        contract_id: report.contract_id.clone(),
        contract_digest: report.contract_digest,
        engine: report.engine.clone(),
        destination: report.destination,
        stage: report.stage,
        started_at,
        finished_at: None,
        status: None,
        blockers: Vec::new(),
    };
    store.call(|store| store.begin_run(&begun)).unwrap();
    let events: Vec<Event> = events.iter().map(|event| Event { run_id, ..event.clone() }).collect();
    store.call(|store| store.finish_run(&report, &events)).unwrap();
}

fn herma(home: &Path, args: &[&str]) -> Duration {
    let start = Instant::now();
    let output =
        Command::new(env!("CARGO_BIN_EXE_herma")).args(args).env("HERMA_HOME", home).output().unwrap();
    let took = start.elapsed();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    took
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Shown while the test runs; `println!` would be kept back until its end.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
