//! Two processes race for one approval, many times, and are killed while they do: exactly one consumes it.

#![allow(clippy::disallowed_types, reason = "the test starts the processes that race")]

use std::hash::{BuildHasher as _, Hasher as _};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use herma_core::RunId;
use herma_core::approval::{Answer, ApprovalId, ApprovalState, ApprovalStore, Moved};
use tempfile::TempDir;

use crate::sample::{at, open, request, ruling, run};

const ROUNDS: u32 = 1_000;

/// One round in so many has a kill.
const ROUNDS_PER_KILL: u64 = 8;

/// No process waits longer than this before it consumes, in microseconds.
const LONGEST_WAIT: u64 = 1_000;

/// About as long as consuming takes, in microseconds.
const CONSUMING: u64 = 2_000;

/// A kind of store: how this process opens it, and how the racing ones are told to.
struct Backend<'a> {
    open: &'a dyn Fn() -> Box<dyn ApprovalStore>,
    racer: Vec<String>,
}

#[test]
fn of_two_processes_that_race_for_an_approval_exactly_one_consumes_it() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("store.db").to_str().unwrap().to_owned();
    race(&Backend { open: &|| open(dir.path()), racer: vec!["sqlite".to_owned(), file] });
}

fn race(backend: &Backend<'_>) {
    let seed = std::hash::RandomState::new().build_hasher().finish() | 1;
    let (mut random, mut tally) = (Random(seed), Tally::default());
    let store = (backend.open)();
    let mut racers = [Racer::start(backend), Racer::start(backend)];
    for round in 1..=ROUNDS {
        let held = one_round(round, backend, &*store, &mut racers, &mut random, &mut tally);
        assert_eq!(held, Ok(()), "seed {seed}, round {round}; so far {tally:?}");
    }
    assert!(!tally.won.contains(&0) && tally.kills > 0, "it was no race: {tally:?}, seed {seed}");
}

/// What happened how often.
#[derive(Debug, Default)]
struct Tally {
    won: [u32; 2],
    kills: u32,
    /// Consumed by a process that was killed before it could say so.
    unsaid: u32,
}

/// One approval, two processes that want it, and perhaps a kill.
fn one_round(
    round: u32,
    backend: &Backend<'_>,
    store: &dyn ApprovalStore,
    racers: &mut [Racer; 2],
    random: &mut Random,
    tally: &mut Tally,
) -> Result<(), String> {
    let request = request(round);
    store.request(&request, None).unwrap();
    assert_eq!(store.rule(&ruling(&request, Answer::Granted), at(10)).unwrap(), Moved::Done);

    let killed: [bool; 2] = match random.below(5 * ROUNDS_PER_KILL) {
        0 => [true, true],
        1 | 2 => [true, false],
        3 | 4 => [false, true],
        _ => [false, false],
    };
    // No run's name is used twice, so that the store says which process it was.
    let runs = [run(2 * round), run(2 * round + 1)];
    let waits = [random.below(LONGEST_WAIT), random.below(LONGEST_WAIT)];
    for at in 0..2 {
        racers[at].consume(request.id, runs[at], waits[at]);
    }
    if killed != [false, false] {
        // While one that is killed consumes, or shortly before or after.
        let wait = if killed[0] { waits[0] } else { waits[1] };
        sleep(Duration::from_micros(wait + random.below(CONSUMING)));
    }
    for at in 0..2 {
        if killed[at] {
            racers[at].kill();
            tally.kills += 1;
        }
    }
    let said = [racers[0].answer(), racers[1].answer()];
    for at in 0..2 {
        if killed[at] {
            racers[at] = Racer::start(backend);
        }
    }
    judge(store, request.id, runs, killed, &said, tally)?;

    // After a kill: whoever asks later, also a process that was started again, is told the truth.
    if killed != [false, false] {
        for racer in racers {
            racer.consume(request.id, run(u32::MAX), 0);
            let answer = racer.answer();
            if answer.as_deref() != Some("Stood(Consumed)") {
                return Err(format!("{answer:?} to one that comes later"));
            }
        }
    }
    Ok(())
}

/// Compares what the processes said with what the store says. An approval that nobody consumed is consumed here, by a
/// third.
fn judge(
    store: &dyn ApprovalStore,
    id: ApprovalId,
    runs: [RunId; 2],
    killed: [bool; 2],
    said: &[Option<String>; 2],
    tally: &mut Tally,
) -> Result<(), String> {
    let approval = store.find_approval(&id.to_string()).unwrap().remove(0);
    let winner = runs.iter().position(|run| approval.consumed_by == Some(*run));
    let seen = format!("said {said:?}, killed {killed:?}, stands {:?} by {winner:?}", approval.state);

    for at in 0..2 {
        match said[at].as_deref() {
            Some("Done") if winner == Some(at) => {}
            Some("Stood(Consumed)") if winner == Some(1 - at) => {}
            None if killed[at] => tally.unsaid += u32::from(winner == Some(at)),
            _ => return Err(seen),
        }
    }
    match winner {
        Some(winner) if approval.state == ApprovalState::Consumed => tally.won[winner] += 1,
        // Somebody who was not killed said something, and without a winner there is nothing true to say.
        None if approval.state == ApprovalState::Granted && approval.consumed_by.is_none() => {
            let third = run(0);
            if store.consume(id, third, at(20)).unwrap() != Moved::Done {
                return Err(format!("{seen}, and a third could not consume it"));
            }
        }
        _ => return Err(seen),
    }
    Ok(())
}

/// A process that consumes what it is told to.
struct Racer {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Racer {
    fn start(backend: &Backend<'_>) -> Self {
        let test = std::env::current_exe().unwrap();
        let racer = test.parent().unwrap().parent().unwrap().join("examples/approval-racer");
        assert!(racer.is_file(), "{} is missing: cargo builds it with the tests", racer.display());
        let mut child = Command::new(racer)
            .args(&backend.racer)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (orders, answers) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut racer = Self { child, orders, answers: BufReader::new(answers) };
        assert_eq!(racer.answer().as_deref(), Some("ready"));
        racer
    }

    fn consume(&mut self, id: ApprovalId, run: RunId, wait: u64) {
        writeln!(self.orders, "{id} {run} {} {wait}", at(20)).unwrap();
    }

    /// The next answer; none from a process that ended before it gave one in full.
    fn answer(&mut self) -> Option<String> {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        line.strip_suffix('\n').map(str::to_owned)
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Racer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}
