//! `herma bench`: ours against the same work without herma, side by side in one run. Only ratios mean anything.

mod large_bundle;
mod repository;
mod router;
mod sandbox;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use herma_bench::{LeftOut, Machine, Target};
use herma_home::{HomeError, HomePlace};
use tempfile::TempDir;

use crate::args;
use crate::commands::{Ended, open};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::output::{BenchOutput, BenchRow};
use crate::screen::{Screen, Tone, safe_line};

/// How many files a repository has, and how many times as long a governed run of it may take.
const REPOSITORIES: [(u64, f64); 3] = [(10, 3.0), (1_000, 1.6), (20_000, 1.3)];

pub(crate) fn bench(command: &args::Bench, environment: &Environment, screen: &Screen) -> Ended {
    // Where real runs take place, and not in a /tmp that may be memory or full of other people's files.
    let place = environment.settings.home.as_ref().ok_or(&HomeError::Nowhere)?;
    place.prepare().map_err(|error| Failure::from(&error))?;
    let scratch = tempfile::Builder::new().prefix("bench-").tempdir_in(place.path());
    let scratch = scratch.map_err(Failure::internal)?;
    match command {
        args::Bench::Harness { repeat, quick } => harness(*repeat, *quick, &scratch, environment, screen),
        args::Bench::Router { repeat, quick } => {
            router::bench(*repeat, *quick, &scratch, environment, screen)
        }
        args::Bench::Sandbox { repeat, quick } => {
            sandbox::bench(*repeat, *quick, &scratch, environment, screen)
        }
    }
}

fn harness(repeat: u32, quick: bool, scratch: &TempDir, environment: &Environment, screen: &Screen) -> Ended {
    let installation = {
        // A home of its own, so that nobody's runs are mixed with measurements.
        let mut settings = environment.clone();
        settings.settings.home = Some(HomePlace::named(scratch.path().join("home")));
        open(&settings, screen)?
    };
    let path = &environment.settings.search_path;
    let mut rows = Vec::new();
    for (files, limit) in REPOSITORIES.into_iter().take(if quick { 2 } else { 3 }) {
        progress(screen, &format!("a governed run on {files} files"));
        rows.push(repository::measure(&installation, path, scratch.path(), files, limit, repeat)?);
    }
    let mebibytes = if quick { 64 } else { 1024 };
    progress(screen, &format!("herma verify on {mebibytes} MiB"));
    rows.extend(large_bundle::measure(&installation, path, scratch.path(), mebibytes, repeat)?);
    show(&rows, screen)?;
    let over = rows.iter().any(|row| row.ratio > row.limit);
    if !screen.is_json() {
        screen.line(if over { "A limit is exceeded." } else { "Every ratio is within its limit." });
    }
    Ok(ExitCode::from(u8::from(over)))
}

fn progress(screen: &Screen, what: &str) {
    if !screen.is_json() {
        screen.note(format_args!("measuring {what} ..."));
    }
}

/// On what the figures were taken, and over how much.
fn show_machine(machine: &Machine, over: &str, screen: &Screen) {
    let load = machine.load_before.map_or_else(|| "unknown".to_owned(), |load| format!("{load:.2}"));
    screen.line(format_args!(
        "{} cores, load {load} at the start, {over}. Only ratios mean anything.\n",
        machine.cores
    ));
}

/// Who was not measured, and what holds.
fn show_judgement(left_out: &[LeftOut], targets: &[Target], screen: &Screen) {
    for left in left_out {
        screen.line(
            screen.paint(Tone::Dim, format_args!("{:17} not measured: {}", left.name, safe_line(&left.why))),
        );
    }
    screen.line("");
    for target in targets {
        let (tone, word) = match target.holds {
            Some(true) => (Tone::Good, "holds"),
            Some(false) => (Tone::Bad, "missed"),
            None => (Tone::Dim, "not judged"),
        };
        let value = target.value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"));
        screen.line(format_args!(
            "{:42} {value:>7}  at most {:>5.2}  {}",
            target.name,
            target.at_most,
            screen.paint(tone, word)
        ));
    }
}

fn show(rows: &[BenchRow], screen: &Screen) -> Result<(), Failure> {
    if screen.is_json() {
        return screen.value(&BenchOutput { schema: "herma.bench/v1", rows: rows.to_vec() });
    }
    screen.line(screen.paint(
        Tone::Bold,
        format_args!(
            "{:28} {:>7} {:>12} {:>12} {:>7} {:>7}",
            "", "files", "with herma", "without", "ratio", "limit"
        ),
    ));
    for row in rows {
        let tone = if row.ratio > row.limit { Tone::Bad } else { Tone::Good };
        let memory = row.peak_kib.map(|kib| format!("  peak {kib} KiB")).unwrap_or_default();
        screen.line(format_args!(
            "{:28} {:>7} {:>9.1} ms {:>9.1} ms {} {:>7.2}{memory}",
            row.name,
            row.files,
            row.governed_ms,
            row.bare_ms,
            screen.paint(tone, format_args!("{:>7.2}", row.ratio)),
            row.limit
        ));
    }
    Ok(())
}

/// What takes milliseconds is measured for this long, because a few of them are a matter of chance...
const ENOUGH: Duration = Duration::from_secs(5);
/// ... but no more than so many times as often as was asked for.
const MOST_REPEATS: u32 = 10;

/// Measures two ways of doing the same in turns, so that a busy moment hits both, and compares their medians.
fn side_by_side(
    repeat: u32,
    mut ours: impl FnMut() -> Result<(), Failure>,
    mut theirs: impl FnMut() -> Result<(), Failure>,
) -> Result<(f64, f64), Failure> {
    // One round that does not count warms the caches of both.
    ours()?;
    theirs()?;
    let (mut with, mut without) = (Vec::new(), Vec::new());
    let started = Instant::now();
    for round in 0..repeat.saturating_mul(MOST_REPEATS) {
        if round >= repeat && started.elapsed() >= ENOUGH {
            break;
        }
        with.push(time(&mut ours)?);
        without.push(time(&mut theirs)?);
    }
    Ok((median(with), median(without)))
}

fn time(work: &mut impl FnMut() -> Result<(), Failure>) -> Result<Duration, Failure> {
    let started = Instant::now();
    work()?;
    Ok(started.elapsed())
}

/// In milliseconds.
fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times.get(times.len() / 2).map_or(0.0, Duration::as_secs_f64) * 1000.0
}
