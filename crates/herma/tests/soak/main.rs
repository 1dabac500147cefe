//! Kills herma, its agents and its containers at random moments, many times, under a wall clock that steps. Not part of the normal tests: `scripts/long`
//! runs it.

#![allow(clippy::disallowed_types, reason = "the test starts herma itself, from outside")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on must fail"
)]

#[path = "../clock/test_clock.rs"]
mod clock;
#[path = "../../../destination/tests/it/docker/daemon.rs"]
mod daemon;
mod kit;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::Write as _;
use std::time::Duration;

use herma_core::RunId;
use herma_destination::leftovers;
use serde_json::Value;

use crate::daemon::Daemon;
use crate::kit::{ClockSteps, End, Herma, Victim, left_of, names, processes_in};
use crate::world::{VICTIMS, World};

/// So many rounds if `SOAK_ROUNDS` says nothing.
const ROUNDS: u64 = 500;
/// With so many rounds, every kind of ending must have been met.
const MANY: u64 = 100;
/// Every so many rounds the home is a new one, so that its first use is killed too.
const FRESH: u64 = 5;
/// The most milliseconds that the wall clock is off, either way.
const FARTHEST: i64 = 3_600_000;

/// How often each ending was met.
#[derive(Debug, Default)]
struct Tally {
    finished: u64,
    interrupted: u64,
    verdict_stands: u64,
    no_run: u64,
    /// How many reports say pass; every one of them verified.
    passes: u64,
    /// In how many rounds the clock was behind where the run ended, or was closed, of where it had started.
    stepped_back: u64,
    /// Other victims while herma continued: the agent, or the keeper or forwarder of its container.
    others_killed: BTreeMap<&'static str, u64>,
}

#[test]
fn a_kill_at_any_moment_leaves_a_closed_run_or_none() {
    let rounds = number("SOAK_ROUNDS").unwrap_or(ROUNDS);
    let seed = number("SOAK_SEED").unwrap_or_else(|| std::hash::RandomState::new().build_hasher().finish());
    let docker = Daemon::start(env!("CARGO_BIN_EXE_herma").into());
    let worlds = World::all(&docker);
    for world in &worlds {
        say(&format!("{}: a whole run takes {:?}", world.name, world.median));
    }
    say(&format!("{rounds} rounds, seed {seed}"));
    let (mut random, mut tally, mut broken) = (Random(seed | 1), Tally::default(), Vec::new());
    for round in 0..rounds {
        let world = &worlds[usize::try_from(random.below(worlds.len() as u64)).unwrap()];
        let victim = world.victims[usize::try_from(random.below(world.victims.len() as u64)).unwrap()];
        // Most others live for a part of the run only, and are waited for.
        let longest = if victim == Victim::Herma { 1300 } else { 200 };
        let delay = world.median.mul_f64(f64::from(u32::try_from(random.below(longest)).unwrap()) / 1000.0);
        let fresh = (round % FRESH == 0).then(|| Herma::new(world.in_docker().then_some(&docker)));
        let herma = fresh.as_ref().unwrap_or(&world.herma);
        let mut offset = || i64::try_from(random.below(2 * FARTHEST.unsigned_abs())).unwrap() - FARTHEST;
        let (at_start, step_to, at_recovery) = (offset(), offset(), offset());
        let after = world.median.mul_f64(f64::from(u32::try_from(random.below(1000)).unwrap()) / 1000.0);
        let steps = ClockSteps { at_start, during: (after, step_to), at_recovery };
        let mut held = kill_once(world, herma, (delay, victim), &steps, &mut tally);
        if world.in_docker() && held.is_ok() {
            let left = docker.say(&["ps", "--all", "--quiet", "--filter", "label=herma.run"]);
            held = must(left.is_empty(), || format!("these containers are left: {left}"));
        }
        if let Err(why) = held {
            let found =
                format!("round {round}, {}, {victim:?} killed after {delay:?}, {steps:?}: {why}", world.name);
            say(&found);
            broken.push(found);
        }
        if round % 50 == 49 {
            say(&format!("{} rounds: {tally:?}", round + 1));
        }
    }
    say(&format!("{rounds} rounds: {tally:?}"));
    assert!(broken.is_empty(), "{} rounds, SOAK_SEED={seed}:\n{}", broken.len(), broken.join("\n"));
    let met = [tally.finished, tally.interrupted, tally.no_run];
    let every = !met.contains(&0) && tally.others_killed.len() == VICTIMS.len() - 1;
    assert!(rounds < MANY || every, "not every ending was met: {tally:?}, SOAK_SEED={seed}");
}

/// One round: start, kill, let the next command close what was left, and look at everything.
fn kill_once(
    world: &World,
    herma: &Herma,
    (delay, victim): (Duration, Victim),
    steps: &ClockSteps,
    tally: &mut Tally,
) -> Result<(), String> {
    let (before, litter_before) = (herma.run_dirs(), herma.litter());
    let (end, hit, said) = herma.killed_after(&world.args, delay, victim, steps);
    herma.clock().set_ms(steps.at_recovery);
    tally.stepped_back += u64::from(steps.during.1.min(steps.at_recovery) < steps.at_start);
    let listed = herma.runs()?;
    let new: BTreeSet<RunId> = herma.run_dirs().difference(&before).copied().collect();

    must(names(&herma.home().join("active")).is_empty(), || "active/ is not empty".to_owned())?;
    let known: BTreeSet<String> =
        listed.iter().filter_map(|run| Some(run["run_id"].as_str()?.to_owned())).collect();
    let there: BTreeSet<String> = herma.run_dirs().iter().map(ToString::to_string).collect();
    must(known == there, || format!("listed are {known:?}, there are {there:?}"))?;
    must(new.len() <= 1, || format!("{new:?} are new"))?;
    world.target_untouched()?;
    let litter: Vec<_> = herma.litter().into_iter().filter(|name| !litter_before.contains(name)).collect();
    must(litter.is_empty(), || format!("left behind: {litter:?}"))?;
    let alive = processes_in(herma.home());
    must(alive.is_empty(), || format!("these processes are still alive: {alive:?}"))?;
    must(herma.runs()? == listed, || "a second command changed something".to_owned())?;

    let Some(run) = new.first() else {
        tally.no_run += 1;
        return must(end == End::Killed, || format!("there is no run, and herma ended with {end:?}"));
    };
    let newest = listed.first().map(|listed| &listed["run_id"]);
    must(newest == Some(&Value::from(run.to_string())), || format!("the newest of the list is {newest:?}"))?;
    let summary = listed.iter().find(|listed| listed["run_id"] == run.to_string());
    let other = match victim {
        Victim::Inside(name) if hit => Some(name),
        _ => None,
    };
    closed(world, herma, *run, summary.ok_or("the run is not listed")?, end, other, tally)
        .map_err(|why| format!("{why}\n{said}{}", herma.run(&["show".to_owned(), run.to_string()]).1))
}

/// The new run is closed as it should be, and its bundle verifies.
fn closed(
    world: &World,
    herma: &Herma,
    run: RunId,
    summary: &Value,
    end: End,
    other: Option<&'static str>,
    tally: &mut Tally,
) -> Result<(), String> {
    let interrupted = summary["status"] == "blocked" && summary["blockers"][0] == "interrupted";
    let whole = summary["status"] == if world.exit_code == 0 { "pass" } else { "fail" };
    match (end, other) {
        // Whichever process is killed under it, herma ends by itself, with a verdict that its exit code shows.
        (End::Exited(code), Some(other)) => {
            *tally.others_killed.entry(other).or_default() += 1;
            let told = match code {
                0 => "pass",
                1 => "fail",
                3 => "blocked",
                _ => "none",
            };
            must(summary["status"] == told, || format!("herma ended with {code}: {summary}"))?;
        }
        (End::Exited(code), None) => {
            tally.finished += 1;
            must(code == world.exit_code && whole, || format!("herma ended with {code}: {summary}"))?;
        }
        (End::Killed, _) if interrupted => tally.interrupted += 1,
        (End::Killed, _) => {
            tally.verdict_stands += 1;
            must(whole, || format!("it is neither interrupted nor what a whole run is: {summary}"))?;
        }
    }
    let left = names(&herma.home().join("runs").join(run.to_string()));
    must(left == ["bundle"], || format!("left are {left:?}"))?;
    let alive = leftovers::count(run).map_err(|e| e.to_string())?;
    must(alive == 0, || format!("{alive} processes carry the run's name"))?;
    let left = left_of(&run.to_string());
    must(left.is_empty(), || format!("left of the run are {left:?}"))?;
    let mut verify = vec!["verify".to_owned(), run.to_string()];
    if let Some(target) = world.target() {
        verify.extend(["--repo".to_owned(), target.to_string_lossy().into_owned()]);
    }
    let (code, out, err) = herma.run(&verify);
    tally.passes += u64::from(summary["status"] == "pass");
    must(code == 0, || format!("the bundle does not verify:\n{out}{err}"))
}

fn must(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise()) }
}

/// A small generator (xorshift), so that a seed says everything.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

#[allow(clippy::disallowed_methods, reason = "this test is run by hand, and its size is chosen by hand")]
fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is no number: {text}")))
}

/// Shown while the test runs; `println!` would be kept back until its end.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
