//! A process that makes calls is killed again and again, and another has its disk full: the audit has all its calls, and
//! those of unknown cost are charged at the most.

#![allow(clippy::disallowed_types, reason = "the test starts the processes that it kills")]
#![allow(clippy::panic, reason = "the helpers of tests are tests too")]

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use herma_core::budget::{Amount, LARGEST, Limits, Scope};
use herma_core::model_call::{Ended, ModelCall};
use herma_router::audit::{Audit, CALLS_BEGUN, MODEL_CALLS, read};
use herma_router::budget::Budgets;
use herma_store::{Store, StoreLocation};
use tempfile::TempDir;

/// Fresh files so often.
const ROUNDS: u32 = 5;

/// And so many kills over them.
const KILLS: u32 = 10;

const DAY: &str = "1970-01-01";

/// The most that one attempt of the writer can cost.
const MOST: u64 = 1_000;

fn writer() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let writer = test.parent().unwrap().parent().unwrap().join("examples/audit-writer");
    assert!(writer.is_file(), "{} is missing: cargo builds it with the tests", writer.display());
    writer
}

/// The output of a writer: for each call, the number of attempts and the tokens that it used.
#[derive(Debug, Default)]
struct Said {
    calls: BTreeMap<u64, (u64, Option<u64>)>,
    refused: Vec<String>,
}

impl Said {
    fn read(said: &str) -> Self {
        let mut this = Self::default();
        // Text after the last newline was cut off.
        for line in said.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
            match line.split(' ').collect::<Vec<_>>()[..] {
                ["began", call] => assert!(this.calls.insert(call.parse().unwrap(), (1, None)).is_none()),
                ["more", call] => this.calls.get_mut(&call.parse().unwrap()).unwrap().0 += 1,
                ["ended", call, tokens] => {
                    this.calls.get_mut(&call.parse().unwrap()).unwrap().1 = Some(tokens.parse().unwrap());
                }
                ["refused", ..] => this.refused.push(line.to_owned()),
                _ => panic!("{line}"),
            }
        }
        this
    }
}

/// Starts a writer, lets it begin a call, and kills it after a while.
fn write_and_kill(arguments: &[&OsStr], after: Duration) -> Said {
    let mut child = Command::new(writer())
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut said = String::new();
    out.read_line(&mut said).unwrap();
    let reader = std::thread::spawn(move || {
        out.read_to_string(&mut said).unwrap();
        said
    });
    std::thread::sleep(after);
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().code(), None, "it ended by itself");
    Said::read(&reader.join().unwrap())
}

fn records(dir: &Path) -> Vec<ModelCall> {
    let mut calls = Vec::new();
    let file = BufReader::new(File::open(dir.join(MODEL_CALLS)).unwrap());
    read(file, "run", |call| calls.push(call.clone())).unwrap().unwrap();
    calls
}

fn sum<'a>(calls: impl IntoIterator<Item = &'a ModelCall>) -> Amount {
    calls.into_iter().fold(Amount::default(), |sum, call| sum.plus(call.charged))
}

/// Compares what the writer said with what is recorded.
fn judge(said: &Said, calls: &[ModelCall]) {
    let by_number: BTreeMap<u64, &ModelCall> = calls.iter().map(|call| (call.call.unwrap(), call)).collect();
    for (number, (times, ended)) in &said.calls {
        let call = by_number.get(number).unwrap_or_else(|| panic!("call {number} was lost"));
        match (ended, call.ended) {
            (Some(tokens), Ended::Answered) => {
                assert_eq!(
                    call.charged,
                    Amount { requests: *times, tokens: *tokens, micro_usd: 0 },
                    "{call:?}"
                );
                assert_eq!(call.settled, *times == 1, "{call:?}");
            }
            // It was killed before it could say the last that it had written.
            (None, Ended::Answered) => {}
            (None, Ended::Interrupted) => {
                let requests = call.charged.requests;
                assert!(requests == *times || requests == times + 1, "{call:?}");
                assert_eq!(
                    call.charged,
                    Amount { requests, tokens: requests * MOST, micro_usd: 0 },
                    "{call:?}"
                );
                assert!(!call.settled, "{call:?}");
            }
            _ => panic!("said {ended:?}, recorded {call:?}"),
        }
    }
}

#[test]
fn after_a_kill_at_any_moment_the_ledger_is_the_audit_and_the_unsettled_calls_are_listed() {
    let seed = std::hash::RandomState::new().build_hasher().finish();
    let mut tally = Tally::default();
    for round in 0..ROUNDS {
        let mut killed = Killed::new();
        for kill in 0..KILLS {
            let after = Duration::from_micros(seed.rotate_left(round * KILLS + kill) % 20_000);
            killed.once_more(
                after,
                &mut tally,
                &format!("seed {seed}, round {round}, kill {kill} after {after:?}"),
            );
        }
    }
    assert!(tally.interrupted > 0 && tally.ended > 0 && tally.leased_more > 0, "{tally:?}, seed {seed}");
}

/// How often each event occurred.
#[derive(Debug, Default)]
struct Tally {
    interrupted: usize,
    ended: usize,
    /// A process died with more leased than it had spent.
    leased_more: usize,
}

/// An audit and a store whose writer is killed again and again.
struct Killed {
    _home: TempDir,
    dir: PathBuf,
    store: PathBuf,
    runtime: tokio::runtime::Runtime,
    known: usize,
}

impl Killed {
    fn new() -> Self {
        let home = TempDir::new().unwrap();
        let (dir, store) = (home.path().join("audit"), home.path().join("store.db"));
        fs::create_dir(&dir).unwrap();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        Self { _home: home, dir, store, runtime, known: 0 }
    }

    fn once_more(&mut self, after: Duration, tally: &mut Tally, context: &str) {
        let said = write_and_kill(&[self.dir.as_os_str(), self.store.as_os_str(), DAY.as_ref()], after);
        let (audit, opened) = Audit::open(&self.dir, "run").unwrap_or_else(|e| panic!("{e}; {context}"));
        let calls = records(&self.dir);
        judge(&said, &calls[self.known..]);
        assert_eq!((opened.records, opened.charged), (calls.len() as u64, sum(&calls)), "{context}");
        let (listed, ended): (Vec<_>, Vec<_>) =
            calls[self.known..].iter().cloned().partition(|call| call.ended == Ended::Interrupted);
        assert_eq!(opened.interrupted, listed, "{context}");
        let numbers: BTreeSet<u64> = calls.iter().map(|call| call.call.unwrap()).collect();
        assert!(numbers.iter().copied().eq(0..calls.len() as u64), "each call once; {context}");
        let notes = fs::metadata(self.dir.join(CALLS_BEGUN)).unwrap().len();
        assert_eq!(notes, 0, "what was closed is not closed again; {context}");
        self.known = calls.len();
        tally.interrupted += listed.len();
        tally.ended += ended.len();
        tally.leased_more += usize::from(self.recover(&audit, opened.charged, context));
    }

    /// The durable ledger had at least what the audit says, and is exactly that as soon as the audit was heard. Says
    /// whether it had more.
    fn recover(&self, audit: &Audit, charged: Amount, context: &str) -> bool {
        let day = Scope::Day(DAY.into());
        self.runtime.block_on(async {
            let leases = Store::open(&StoreLocation::file(&self.store)).await.unwrap().leases();
            let before = leases.taken(&day).await.unwrap();
            assert_eq!(before.max(charged), before, "{context}");
            let by_day: Vec<_> =
                audit.sums().by_day.into_iter().map(|(day, sum)| (Scope::from(day), sum)).collect();
            assert_eq!(by_day, [(day.clone(), charged)], "{context}");
            let budgets = Budgets::new(leases.clone(), "writer");
            let limits = Limits { tokens: Some(LARGEST), ..Limits::default() };
            budgets.recover(day.clone(), limits, charged).await.unwrap();
            assert_eq!(leases.taken(&day).await.unwrap(), charged, "{context}");
            assert_eq!(budgets.taken(&day), charged, "{context}");
            before != charged
        })
    }
}

/// How many threads of the writer make calls.
const WRITERS: usize = 3;

#[test]
fn a_full_disk_ends_the_calls_and_loses_none() {
    // Files of at most so many blocks of 512 bytes; a write beyond them fails in its middle.
    let mut poisoned = 0;
    for blocks in [1, 2, 3, 7, 8, 9, 40] {
        let dir = TempDir::new().unwrap();
        let said = Command::new("sh")
            .args(["-c", "trap '' XFSZ; ulimit -f $1; exec \"$2\" \"$3\"", "sh", &blocks.to_string()])
            .args([writer().as_os_str(), dir.path().as_os_str()])
            .stderr(Stdio::inherit())
            .output()
            .unwrap();
        assert!(said.status.success());
        let said = Said::read(&String::from_utf8(said.stdout).unwrap());
        // Either file can be the first that is full. After a record that could not be written nothing begins.
        let unrecorded = said.refused.iter().position(|refused| refused.starts_with("refused to end"));
        let later = &said.refused[unrecorded.unwrap_or(said.refused.len())..];
        let tried = later.iter().filter(|refused| {
            refused.starts_with("refused to begin")
                && !refused.contains("an earlier call could not be recorded")
        });
        // But for those that the other threads had under way just then, and told of afterwards.
        assert!(tried.count() < WRITERS, "{later:#?}");
        assert!(said.refused.len() > 5, "{said:?}");
        poisoned += u32::from(unrecorded.is_some());

        let (_audit, opened) = Audit::open(dir.path(), "run").unwrap();
        let calls = records(dir.path());
        judge(&said, &calls);
        assert_eq!((opened.records, opened.charged), (calls.len() as u64, sum(&calls)));
        assert!(unrecorded.is_none() || !opened.interrupted.is_empty());
        let numbers: BTreeSet<u64> = calls.iter().map(|call| call.call.unwrap()).collect();
        assert!(numbers.iter().copied().eq(0..calls.len() as u64), "each call once");
    }
    assert!(poisoned > 0);
}
