//! Leases: of one process, of several at once, and of some that are killed.

#![allow(clippy::disallowed_types, reason = "the test starts the processes that lease")]

use std::hash::{BuildHasher as _, Hasher as _};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use herma_core::budget::{Amount, LARGEST, Leases as _, Limits, Scope};
use herma_store::{SqliteLeases, SqliteStore};
use tempfile::TempDir;

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn engine() -> Scope {
    Scope::Engine("codex".into())
}

fn amount(requests: u64, tokens: u64, micro_usd: u64) -> Amount {
    Amount { requests, tokens, micro_usd }
}

#[test]
fn a_lease_is_charged_until_its_holder_says_what_it_spent() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("store.db");
    block_on(async {
        let leases = SqliteLeases::open(&file).await.unwrap();
        let limits = Limits { requests: Some(10), tokens: Some(100), micro_usd: None };
        assert_eq!(leases.lease(&engine(), "a", amount(4, 60, 7), limits).await.unwrap(), amount(4, 60, 7));
        assert_eq!(leases.lease(&engine(), "b", amount(7, 60, 7), limits).await.unwrap(), amount(6, 40, 7));
        assert_eq!(leases.lease(&engine(), "b", amount(1, 1, 0), limits).await.unwrap(), Amount::default());
        assert_eq!(leases.taken(&engine()).await.unwrap(), amount(10, 100, 14));
        drop(leases);

        let leases = SqliteLeases::open(&file).await.unwrap();
        assert_eq!(leases.taken(&engine()).await.unwrap(), amount(10, 100, 14), "it is durable");
        // Less than it leased of one, more of another.
        leases.settle(&engine(), "a", amount(4, 60, 7), amount(5, 1, 0)).await.unwrap();
        assert_eq!(leases.taken(&engine()).await.unwrap(), amount(11, 41, 7));
        // It died, and its audit says what it spent.
        leases.reconcile(&engine(), "b", amount(2, 2, 2)).await.unwrap();
        assert_eq!(leases.taken(&engine()).await.unwrap(), amount(7, 3, 2));
        leases.reconcile(&engine(), "c", amount(1, 1, 1)).await.unwrap();
        assert_eq!(leases.taken(&engine()).await.unwrap(), amount(8, 4, 3), "also of one that never leased");
        let other = Scope::Day("codex".into());
        assert_eq!(
            leases.taken(&other).await.unwrap(),
            Amount::default(),
            "of the same name, but another kind"
        );
    });
}

#[test]
fn nothing_is_given_back_that_was_not_taken() {
    let dir = TempDir::new().unwrap();
    block_on(async {
        let leases = SqliteLeases::open(&dir.path().join("store.db")).await.unwrap();
        let limits = Limits { tokens: Some(100), ..Limits::default() };
        leases.lease(&engine(), "a", amount(0, 50, 0), limits).await.unwrap();
        leases.settle(&engine(), "b", amount(0, 50, 0), Amount::default()).await.unwrap();
        leases.settle(&engine(), "a", amount(0, 90, 0), Amount::default()).await.unwrap();
        assert_eq!(leases.taken(&engine()).await.unwrap(), Amount::default());
        leases.settle(&engine(), "a", Amount::default(), amount(0, u64::MAX, 0)).await.unwrap();
        assert_eq!(leases.taken(&engine()).await.unwrap().tokens, LARGEST);
        assert_eq!(leases.lease(&engine(), "a", amount(0, 1, 0), limits).await.unwrap(), Amount::default());
    });
}

#[test]
fn the_store_of_runs_and_the_leases_share_a_file() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("store.db");
    let _store = SqliteStore::open(&file).unwrap();
    block_on(async {
        let leases = SqliteLeases::open(&file).await.unwrap();
        assert_eq!(leases.taken(&engine()).await.unwrap(), Amount::default());
    });
}

struct Taker {
    child: Child,
    orders: ChildStdin,
    out: BufReader<ChildStdout>,
}

impl Taker {
    fn start(file: &Path, holder: &str, limit: u64, seed: u64) -> Self {
        let test = std::env::current_exe().unwrap();
        let taker = test.parent().unwrap().parent().unwrap().join("examples/lease-taker");
        assert!(taker.is_file(), "{} is missing: cargo builds it with the tests", taker.display());
        let words = [holder, &limit.to_string(), &seed.to_string()];
        let mut child = Command::new(taker)
            .arg(file)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (orders, mut out) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut ready = String::new();
        out.read_line(&mut ready).unwrap();
        assert_eq!(ready, "ready\n");
        Self { child, orders, out }
    }

    fn go(&mut self) {
        writeln!(self.orders).unwrap();
    }

    /// What it said that it has, until it ends or has said so much.
    fn has(&mut self, most: usize) -> Vec<u64> {
        let lines = self.out.by_ref().lines();
        lines.take(most).map(|line| line.unwrap().parse().unwrap()).collect()
    }
}

impl Drop for Taker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn processes_that_lease_at_once_never_take_more_than_there_is() {
    const LIMIT: u64 = 20_000;
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("store.db");
    let seed = std::hash::RandomState::new().build_hasher().finish();
    let mut takers = ["a", "b", "c"]
        .map(|holder| Taker::start(&file, holder, LIMIT, seed ^ u64::from(holder.as_bytes()[0])));
    takers.iter_mut().for_each(Taker::go);
    let has = takers.each_mut().map(|taker| *taker.has(usize::MAX).last().unwrap());
    block_on(async {
        let leases = SqliteLeases::open(&file).await.unwrap();
        let taken = leases.taken(&engine()).await.unwrap().tokens;
        assert_eq!(taken, has.iter().sum::<u64>(), "{has:?}, seed {seed}");
        assert_eq!(taken, LIMIT, "each ended because there was no more; seed {seed}");
        assert!(has.iter().filter(|has| **has > 0).count() > 1, "it was no race: {has:?}, seed {seed}");
    });
}

#[test]
fn one_that_is_killed_has_taken_at_least_what_it_said() {
    const LIMIT: u64 = 1 << 40;
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("store.db");
    for kill in 0..20_u64 {
        let holder = format!("holder-{kill}");
        let before = block_on(async {
            let leases = SqliteLeases::open(&file).await.unwrap();
            leases.taken(&engine()).await.unwrap().tokens
        });
        let mut taker = Taker::start(&file, &holder, LIMIT, kill);
        taker.go();
        let said = taker.has(1 + usize::try_from(kill).unwrap());
        drop(taker);
        block_on(async {
            let leases = SqliteLeases::open(&file).await.unwrap();
            let has = leases.taken(&engine()).await.unwrap().tokens - before;
            // What it did after it last spoke changes that by what it took, or by half of one lease that it gave back.
            assert!(has + 100 > *said.last().unwrap(), "{has} {said:?}");
            leases.reconcile(&engine(), &holder, amount(1, 3, 0)).await.unwrap();
            assert_eq!(leases.taken(&engine()).await.unwrap(), amount(kill + 1, 3 * (kill + 1), 0));
        });
    }
}
