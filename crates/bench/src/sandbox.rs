//! `cargo xtask bench sandbox`: how long a start in the sandbox takes, with and without the probes, beside a bare bubblewrap and
//! other sandboxes; and how fast one tunnel of the egress proxy is, beside `socat`.

mod egress;
mod figures;
mod site;
pub(crate) mod source;
mod starts;
#[cfg(test)]
mod tests;
pub(crate) mod tunnel;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use herma_core::clock::Clock;
use schemars::JsonSchema;
use serde::Serialize;

pub(crate) use self::figures::SandboxRow;
use self::site::Site;
use self::starts::Start;
use crate::error::BenchError;
use crate::figures::LeftOut;
use crate::interrupt::Interruptible;
use crate::measure::Machine;
use crate::targets::Target;

/// The order of a measurement.
pub(crate) struct Order<'a> {
    /// The herma that is measured.
    pub herma: PathBuf,
    /// This program, which also serves as the source and the egress proxy.
    pub program: PathBuf,
    /// Where programs are looked up.
    pub search_path: OsString,
    /// Where Docker listens, if not at its usual place.
    pub docker_host: Option<String>,
    /// A directory of its own.
    pub scratch: PathBuf,
    /// How much.
    pub plan: Plan,
    /// The clock.
    pub clock: &'a dyn Clock,
}

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// In each of these rounds everybody starts once.
    pub rounds: u32,
    /// In each of these rounds everybody carries bytes once.
    pub pulls: u32,
    /// So many each time.
    pub bytes: u64,
}

/// The measurements.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SandboxMeasured {
    /// Where.
    pub machine: Machine,
    /// How many starts of each are counted.
    pub rounds: u32,
    /// One row for each way to start a command, and for each way to carry bytes.
    pub rows: Vec<SandboxRow>,
    /// The contenders that were not measured, with the reason.
    pub left_out: Vec<LeftOut>,
    /// The targets of the sandbox and the egress proxy.
    pub targets: Vec<Target>,
}

/// Somebody who gets a turn in every round.
struct Turns<T> {
    name: &'static str,
    who: T,
    times: Vec<Duration>,
    gone_wrong: Option<BenchError>,
}

impl Plan {
    /// The plan that targets are judged by.
    #[must_use]
    pub(crate) fn full(rounds: u32) -> Self {
        Self { rounds, pulls: 7, bytes: 2 << 30 }
    }

    /// Shows within seconds that everything can be measured; its figures say little.
    #[must_use]
    pub(crate) fn quick() -> Self {
        Self { rounds: 3, pulls: 1, bytes: 64 << 20 }
    }
}

/// Measures, and names each step to `progress`.
pub(crate) fn measure(order: &Order<'_>, progress: &dyn Fn(&str)) -> Result<SandboxMeasured, BenchError> {
    let machine = Machine::now();
    let runtime = Interruptible::new()?;
    let mut left_out = Vec::new();
    let mut rows = starts(order, &runtime, &mut left_out, progress)?;
    progress("the egress proxy");
    rows.extend(egress::measure(order, &runtime, &mut left_out)?);
    let targets = figures::judge(&rows);
    Ok(SandboxMeasured { machine, rounds: order.plan.rounds, rows, left_out, targets })
}

fn starts(
    order: &Order<'_>,
    runtime: &Interruptible,
    left_out: &mut Vec<LeftOut>,
    progress: &dyn Fn(&str),
) -> Result<Vec<SandboxRow>, BenchError> {
    let site = Site::prepare(order)?;
    let mut all: Vec<Turns<Start<'_>>> = Vec::new();
    for (name, found) in starts::all(&site) {
        runtime.breathe()?;
        progress(&format!("the first start of {name}"));
        // The first one warms the caches and does not count.
        match found.and_then(|start| start().map(|()| start).map_err(|error| error.to_string())) {
            Ok(start) => all.push(Turns::new(name, start)),
            Err(why) => left_out.push(LeftOut { name: name.to_owned(), why }),
        }
    }
    progress(&format!("{} starts of each", order.plan.rounds));
    rounds(order.plan.rounds, runtime, &mut all, |start| start())?;
    Ok(collect(all, left_out, |name, times, _| SandboxRow::start(name, &times)))
}

/// Gives everybody a turn in each round, and takes the time.
fn rounds<T>(
    rounds: u32,
    runtime: &Interruptible,
    all: &mut [Turns<T>],
    mut work: impl FnMut(&mut T) -> Result<(), BenchError>,
) -> Result<(), BenchError> {
    for round in 0..rounds {
        // Each round begins with somebody else, so that nobody always comes after the same one.
        let first = round as usize % all.len().max(1);
        all.rotate_left(first);
        for one in &mut *all {
            runtime.breathe()?;
            if one.gone_wrong.is_none() {
                let begun = Instant::now();
                match work(&mut one.who) {
                    Ok(()) => one.times.push(begun.elapsed()),
                    Err(error) => one.gone_wrong = Some(error),
                }
            }
        }
        all.rotate_right(first);
    }
    Ok(())
}

fn collect<T>(
    all: Vec<Turns<T>>,
    left_out: &mut Vec<LeftOut>,
    row: impl Fn(&str, Vec<Duration>, T) -> SandboxRow,
) -> Vec<SandboxRow> {
    let mut rows = Vec::new();
    for one in all {
        match one.gone_wrong {
            None => rows.push(row(one.name, one.times, one.who)),
            Some(error) => left_out.push(LeftOut { name: one.name.to_owned(), why: error.to_string() }),
        }
    }
    rows
}

impl<T> Turns<T> {
    fn new(name: &'static str, who: T) -> Self {
        Self { name, who, times: Vec::new(), gone_wrong: None }
    }
}
