//! Verifying a bundle that was made to be costly uses bounded memory, and not many times the CPU time of an honest bundle of
//! that size, also where its signer is trusted.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::forge::Forged;
use crate::{herma, shapes};

/// How large a bundle is in the short form; `scripts/long bundles` makes them ten megabytes.
const BYTES: usize = 1_500_000;
/// The most memory that herma, or a program that it starts, may use.
const MOST_MEMORY: u64 = 256 << 20;
/// How many times the CPU time of an honest bundle a hostile one may take.
const MOST_TIMES: f64 = 20.0;
/// How often an honest bundle is measured, and a hostile one that seems too slow.
const ROUNDS: usize = 3;

struct Cost {
    /// CPU time of herma and of what it started: the machine may be busy with other things.
    time: Duration,
    memory: u64,
    code: Option<i32>,
    said: String,
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a longer test is asked for by hand")]
fn a_hostile_bundle_costs_little_more_than_an_honest_one() {
    let bytes = std::env::var("BUNDLE_BYTES").map_or(BYTES, |bytes| bytes.parse().unwrap());
    let reference = shapes::honest(bytes).sign();
    let measured: Vec<Cost> = (0..ROUNDS).map(|_| verify(&reference)).collect();
    for cost in &measured {
        assert_eq!(cost.code, Some(0), "{}", cost.said);
    }
    let honest = measured.iter().map(|cost| cost.time).min().unwrap();
    say(&format!("an honest bundle of {} bytes: {honest:?}", reference.bytes));
    let mut found = Vec::new();
    for (name, shape) in shapes::ALL {
        let forged = shape(bytes).sign();
        assert!(forged.bytes <= bytes * 5 / 4, "{name} has {} bytes", forged.bytes);
        let mut cost = verify(&forged);
        for _ in 1..ROUNDS {
            if times(cost.time, honest) > MOST_TIMES {
                let again = verify(&forged);
                cost = Cost { time: cost.time.min(again.time), ..again };
            }
        }
        let ratio = times(cost.time, honest);
        say(&format!("{name}: {} bytes, {ratio:.1} times, {} MiB", forged.bytes, cost.memory >> 20));
        // It comes to a verdict, whichever: a crash is none.
        let asked = !cost.said.contains("not tried, because another check failed");
        if shapes::HANDED_TO_GIT.contains(name) && !asked {
            found.push(format!("{name} does not reach git: {}", cost.said));
        }
        let judged = matches!(cost.code, Some(0 | 1)) && cost.said.contains("The bundle ");
        if ratio > MOST_TIMES || cost.memory > MOST_MEMORY || !judged {
            found.push(format!(
                "{name}: {ratio:.1} times, {} MiB, {:?}: {}",
                cost.memory >> 20,
                cost.code,
                cost.said
            ));
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

fn times(time: Duration, honest: Duration) -> f64 {
    time.as_secs_f64() / honest.as_secs_f64()
}

/// Verifies a bundle, and watches the memory of herma and of what it starts.
fn verify(forged: &Forged) -> Cost {
    let home = tempfile::tempdir().unwrap();
    let mut command = herma(home.path());
    command.arg("verify").arg(forged.dir()).arg("--key").arg(forged.key());
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let (pid, ended) = (child.id(), AtomicBool::new(false));
    thread::scope(|scope| {
        let watched = scope.spawn(|| {
            let mut most = 0;
            while !ended.load(Ordering::Relaxed) {
                most = most.max(most_memory(pid));
                thread::sleep(Duration::from_millis(3));
            }
            most
        });
        let mut said = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut said).unwrap();
        // It has printed everything, and is not reaped yet.
        let time = cpu_time(pid);
        let code = child.wait().unwrap().code();
        ended.store(true, Ordering::Relaxed);
        let memory = watched.join().unwrap();
        Cost { time, memory, code, said: String::from_utf8_lossy(&said).into_owned() }
    })
}

/// The CPU time that a process and the children that it has waited for have used.
fn cpu_time(pid: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, after_name) = stat.rsplit_once(')').unwrap();
    let of_self_and_children = after_name.split_whitespace().skip(11).take(4);
    let ticks: u64 = of_self_and_children.map(|ticks| ticks.parse::<u64>().unwrap()).sum();
    Duration::from_secs(ticks.max(1)) / u32::try_from(rustix::param::clock_ticks_per_second()).unwrap()
}

/// The most resident memory that a process or one of its children has had so far, in bytes.
fn most_memory(pid: u32) -> u64 {
    let proc = Path::new("/proc").join(pid.to_string());
    let status = std::fs::read_to_string(proc.join("status")).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|text| text.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    let tasks = std::fs::read_dir(proc.join("task")).into_iter().flatten().flatten();
    let children = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let children: String = children.collect();
    let below = children.split_whitespace().filter_map(|child| child.parse().ok()).map(most_memory);
    below.chain([peak.unwrap_or(0) << 10]).max().unwrap_or(0)
}

fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
