//! Two processes race for one approval, many times, and are killed while they do: exactly one consumes it.

use std::hash::{BuildHasher as _, Hasher as _};
use std::thread::sleep;
use std::time::Duration;

use herma_core::RunId;
use herma_core::approval::{Answer, ApprovalId, ApprovalState, Moved};
use herma_store::BlockingStore;

use crate::backend::{Backend, Process, on_every_engine};
use crate::sample::{at, request, ruling, run};

const ROUNDS: u32 = 1_000;

/// One round in so many has a kill.
const ROUNDS_PER_KILL: u64 = 8;

/// No process waits longer than this before it consumes, in microseconds.
const LONGEST_WAIT: u64 = 1_000;

/// About as long as consuming takes, in microseconds.
const CONSUMING: u64 = 2_000;

#[test]
fn of_two_processes_that_race_for_an_approval_exactly_one_consumes_it() {
    on_every_engine(|new| race(&new()));
}

fn race(backend: &Backend) {
    let seed = std::hash::RandomState::new().build_hasher().finish() | 1;
    let (mut random, mut tally) = (Random(seed), Tally::default());
    let store = backend.open_blocking();
    let mut racers = [Racer::start(backend), Racer::start(backend)];
    for round in 1..=ROUNDS {
        let held = one_round(round, backend, &store, &mut racers, &mut random, &mut tally);
        assert_eq!(held, Ok(()), "seed {seed}, round {round}; so far {tally:?}");
    }
    assert!(!tally.won.contains(&0) && tally.kills > 0, "it was no race: {tally:?}, seed {seed}");
}

#[test]
fn of_a_thousand_attempts_by_eight_processes_exactly_one_consumes() {
    const PROCESSES: u32 = 8;
    const ATTEMPTS: u32 = 1_000 / PROCESSES;
    on_every_engine(|new| {
        let backend = new();
        let store = backend.open_blocking();
        let request = request(1);
        let ruling = ruling(&request, Answer::Granted);
        store.call(|store| store.request_approval(&request, None)).unwrap();
        assert_eq!(store.call(|store| store.rule_on_approval(&ruling, at(10))).unwrap(), Moved::Done);
        let mut racers: Vec<_> = (0..PROCESSES).map(|_| Racer::start(&backend)).collect();
        for attempt in 0..ATTEMPTS {
            for (racer, n) in racers.iter_mut().zip(0..) {
                racer.consume(request.id, run(1 + n * ATTEMPTS + attempt), 0);
            }
        }
        let answers: Vec<_> = racers
            .iter_mut()
            .flat_map(|racer| (0..ATTEMPTS).map(|_| racer.answer().unwrap()).collect::<Vec<_>>())
            .collect();
        let done = answers.iter().filter(|answer| *answer == "Done").count();
        let stood = answers.iter().filter(|answer| *answer == "Stood(Consumed)").count();
        assert_eq!((done, stood), (1, 999), "{}", backend.url);
        assert_eq!(store.call(|store| store.granted_approvals()).unwrap(), []);
    });
}

/// Counts of the results.
#[derive(Debug, Default)]
struct Tally {
    won: [u32; 2],
    kills: u32,
    /// Consumed by a process that was killed before its answer.
    unsaid: u32,
}

/// One approval, two processes that want it, and perhaps a kill.
fn one_round(
    round: u32,
    backend: &Backend,
    store: &BlockingStore,
    racers: &mut [Racer; 2],
    random: &mut Random,
    tally: &mut Tally,
) -> Result<(), String> {
    let request = request(round);
    let ruling = ruling(&request, Answer::Granted);
    store.call(|store| store.request_approval(&request, None)).unwrap();
    assert_eq!(store.call(|store| store.rule_on_approval(&ruling, at(10))).unwrap(), Moved::Done);

    let killed: [bool; 2] = match random.below(5 * ROUNDS_PER_KILL) {
        0 => [true, true],
        1 | 2 => [true, false],
        3 | 4 => [false, true],
        _ => [false, false],
    };
    // No run's name is used twice, so that the store shows which process it was.
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

    // After a kill every later request, also one of a restarted process, gets the true answer.
    if killed != [false, false] {
        for racer in racers {
            racer.consume(request.id, run(u32::MAX), 0);
            let answer = racer.answer();
            if answer.as_deref() != Some("Stood(Consumed)") {
                return Err(format!("{answer:?} to a later request"));
            }
        }
    }
    Ok(())
}

/// Compares the answers of the processes with the store. An approval that none consumed is consumed here, by a third run.
fn judge(
    store: &BlockingStore,
    id: ApprovalId,
    runs: [RunId; 2],
    killed: [bool; 2],
    said: &[Option<String>; 2],
    tally: &mut Tally,
) -> Result<(), String> {
    let name = id.to_string();
    let approval = store.call(|store| store.find_approvals(&name)).unwrap().remove(0);
    let winner = runs.iter().position(|run| approval.consumed_by == Some(*run));
    let seen = format!("said {said:?}, killed {killed:?}, stored {:?} by {winner:?}", approval.state);

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
        // A process that was not killed would have answered, and without a winner no answer is true.
        None if approval.state == ApprovalState::Granted && approval.consumed_by.is_none() => {
            let third = run(0);
            if store.call(|store| store.consume_approval(id, third, at(20))).unwrap() != Moved::Done {
                return Err(format!("{seen}, and a third could not consume it"));
            }
        }
        _ => return Err(seen),
    }
    Ok(())
}

/// A process that consumes approvals on command.
struct Racer(Process);

impl Racer {
    fn start(backend: &Backend) -> Self {
        Self(Process::start("approval-racer", backend, &[]))
    }

    fn consume(&mut self, id: ApprovalId, run: RunId, wait: u64) {
        self.0.order(&format!("{id} {run} {} {wait}", at(20)));
    }

    fn answer(&mut self) -> Option<String> {
        self.0.line()
    }

    fn kill(&mut self) {
        self.0.kill();
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
