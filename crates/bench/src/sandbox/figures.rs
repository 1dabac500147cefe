//! The figures of one way to start a command or to carry bytes, and their targets.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::egress::{OURS as EGRESS, SOCAT};
use super::starts::{ALL_PROBES, BARE, DOCKER, SANDBOX, SANDBOX_RUNTIME};
use crate::figures::{at, median, number};
use crate::targets::{Target, hundredths};

const GIB: u64 = 1 << 30;

/// One way. Those that carry bytes have two more figures; those that start a command do not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct SandboxRow {
    /// Which.
    pub name: String,
    /// From the start of `true` to its end, or for one GiB, in milliseconds: half of them took no longer.
    pub p50_ms: f64,
    /// The same, and 95 of 100 took no longer.
    pub p95_ms: f64,
    /// How many MiB pass in a second, by the median time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mib_per_s: Option<f64>,
    /// CPU time of who carries them for one GiB, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_ms_per_gib: Option<f64>,
}

impl SandboxRow {
    /// Of starts that took so long.
    pub(super) fn start(name: &str, times: &[Duration]) -> Self {
        let ms = |share| hundredths(at(times, share) * 1e3);
        Self { name: name.to_owned(), p50_ms: ms(0.5), p95_ms: ms(0.95), ..Self::default() }
    }

    /// Of this many bytes that took so long each time, and so much CPU.
    pub(super) fn carried(name: &str, bytes: u64, times: &[Duration], cpu: &[Duration]) -> Self {
        let of_a_gib = number(GIB) / number(bytes.max(1));
        let ms = |share| hundredths(at(times, share) * 1e3 * of_a_gib);
        let seconds = at(times, 0.5);
        let cpu = cpu.iter().map(|cpu| cpu.as_secs_f64() * 1e3 * of_a_gib).collect();
        Self {
            name: name.to_owned(),
            p50_ms: ms(0.5),
            p95_ms: ms(0.95),
            mib_per_s: (seconds > 0.0).then(|| (number(bytes >> 20) / seconds).round()),
            cpu_ms_per_gib: median(cpu),
        }
    }
}

/// Every target, judged by these rows.
pub(super) fn judge(rows: &[SandboxRow]) -> Vec<Target> {
    let named = |name: &str| rows.iter().find(|row| row.name == name);
    let ratio = |ours: &str, theirs: &str, figure: fn(&SandboxRow) -> Option<f64>| {
        let (ours, theirs) = (figure(named(ours)?)?, figure(named(theirs)?)?);
        // Below the resolution of the clock there is nothing to divide by.
        (theirs > 0.0).then(|| hundredths(ours / theirs))
    };
    let time: fn(&SandboxRow) -> Option<f64> = |row| Some(row.p50_ms);
    vec![
        Target::judged("start, to bare bwrap", ratio(SANDBOX, BARE, time), 2.5),
        Target::judged(
            "start with all probes, to sandbox-runtime",
            ratio(ALL_PROBES, SANDBOX_RUNTIME, time),
            0.25,
        ),
        Target::judged("start with all probes, to docker run", ratio(ALL_PROBES, DOCKER, time), 0.25),
        // Four fifths of its throughput.
        Target::judged("egress time per byte, to socat", ratio(EGRESS, SOCAT, time), 1.25),
        Target::judged("egress CPU per byte, to socat", ratio(EGRESS, SOCAT, |row| row.cpu_ms_per_gib), 1.3),
    ]
}
