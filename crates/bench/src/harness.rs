//! Governed runs against the same work by hand, and `herma verify` against `sha256sum`, in turns. Only ratios mean anything.

mod large_bundle;
mod repository;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use herma_destination::Tool;
use herma_destination::tool::ToolOutput;

use crate::error::BenchError;
use crate::output::BenchRow;

/// How many files a repository has, and how many times as long a governed run of it may take.
const REPOSITORIES: [(u64, f64); 3] = [(10, 3.0), (1_000, 1.6), (20_000, 1.3)];

/// The herma that is measured, and where.
pub(crate) struct Subject {
    /// The binary.
    pub herma: PathBuf,
    /// A home of its own, so that measurements do not mix with anybody's runs.
    pub home: PathBuf,
    /// Directory for repositories and bundles.
    pub scratch: PathBuf,
    /// PATH of every process.
    pub search_path: OsString,
}

impl Subject {
    /// Runs a command of the binary in the home of the benchmark, and expects it to succeed.
    pub(crate) fn herma(&self, dir: &Path, args: &[&str]) -> Result<ToolOutput, BenchError> {
        let herma = Tool::at("herma", self.herma.clone());
        let call = herma.call().args(args.iter().copied()).cwd(dir);
        let call = call.env("PATH", &self.search_path).env("HOME", dir).env("HERMA_HOME", &self.home);
        Ok(call.checked()?)
    }
}

/// Measures each repository and bundle at least `repeat` times. `quick` leaves out the largest ones.
pub(crate) fn measure(
    subject: &Subject,
    repeat: u32,
    quick: bool,
    progress: &dyn Fn(&str),
) -> Result<Vec<BenchRow>, BenchError> {
    let mut rows = Vec::new();
    for (files, limit) in REPOSITORIES.into_iter().take(if quick { 2 } else { 3 }) {
        progress(&format!("a governed run on {files} files"));
        rows.push(repository::measure(subject, files, limit, repeat)?);
    }
    let mebibytes = if quick { 64 } else { 1024 };
    progress(&format!("herma verify on {mebibytes} MiB"));
    rows.extend(large_bundle::measure(subject, mebibytes, repeat)?);
    Ok(rows)
}

/// Short measurements are repeated for this long: a few of them are a matter of chance...
const MIN_MEASURED: Duration = Duration::from_secs(5);
/// ... but no more than so many times as often as was asked for.
const MAX_REPEAT_FACTOR: u32 = 10;

/// Measures two ways of doing the same in turns, so that a busy moment hits both, and compares their medians.
pub(crate) fn side_by_side(
    repeat: u32,
    mut ours: impl FnMut() -> Result<(), BenchError>,
    mut theirs: impl FnMut() -> Result<(), BenchError>,
) -> Result<(f64, f64), BenchError> {
    // One round that does not count warms the caches of both.
    ours()?;
    theirs()?;
    let (mut with, mut without) = (Vec::new(), Vec::new());
    let started = Instant::now();
    for round in 0..repeat.saturating_mul(MAX_REPEAT_FACTOR) {
        if round >= repeat && started.elapsed() >= MIN_MEASURED {
            break;
        }
        with.push(time(&mut ours)?);
        without.push(time(&mut theirs)?);
    }
    Ok((median(with), median(without)))
}

fn time(work: &mut impl FnMut() -> Result<(), BenchError>) -> Result<Duration, BenchError> {
    let started = Instant::now();
    work()?;
    Ok(started.elapsed())
}

/// In milliseconds.
pub(crate) fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times.get(times.len() / 2).map_or(0.0, Duration::as_secs_f64) * 1000.0
}
