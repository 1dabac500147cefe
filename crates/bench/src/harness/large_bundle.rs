//! `herma verify` of a large bundle against `sha256sum` of the same files, and the memory it takes.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use herma_core::Report;
use herma_destination::Tool;
use herma_evidence::keys::InstallationKey;
use herma_evidence::{Bundle, Redactor, Trust, attest, layout, report, seal};
use herma_harness::SystemClock;
use herma_trust::verify_bundle;

use super::{Subject, side_by_side};
use crate::error::BenchError;
use crate::output::BenchRow;

/// How many times as long as `sha256sum` it may take.
const LIMIT: f64 = 1.5;

/// Measures a bundle of a few KiB for its memory, and one of that many MiB for time and memory.
pub(super) fn measure(subject: &Subject, mebibytes: u64, repeat: u32) -> Result<Vec<BenchRow>, BenchError> {
    let small = small_bundle(subject)?;
    let large = subject.scratch.join("bundle");
    let key = InstallationKey::load_or_create(&subject.home.join("keys"))
        .map_err(BenchError::bundle("cannot read the key of the home"))?;
    enlarge(&key, &small, &large, mebibytes)?;
    let small = row(subject, &key, "verify, small", &small, f64::INFINITY, repeat)?;
    let large = row(subject, &key, &format!("verify, {mebibytes} MiB"), &large, LIMIT, repeat)?;
    Ok(vec![small, large])
}

fn row(
    subject: &Subject,
    key: &InstallationKey,
    name: &str,
    bundle: &Path,
    limit: f64,
    repeat: u32,
) -> Result<BenchRow, BenchError> {
    let trust = Trust { keys: vec![key.public()], approvers: Vec::new() };
    let names = files(bundle).map_err(BenchError::io("cannot list a bundle"))?;
    let sums = Tool::find("sha256sum", &subject.search_path)?;
    let mut peak_kib = 0;
    let (governed_ms, bare_ms) = side_by_side(
        repeat,
        || {
            reset_peak();
            let checks = verify_bundle(bundle, &trust, None, None);
            peak_kib = peak_kib.max(peak());
            if checks.ok() { Ok(()) } else { Err(BenchError::Unverified) }
        },
        || Ok(sums.call().args(&names).checked().map(drop)?),
    )?;
    let (files, ratio) = (names.len() as u64, governed_ms / bare_ms);
    Ok(BenchRow {
        name: name.to_owned(),
        files,
        governed_ms,
        bare_ms,
        ratio,
        limit,
        peak_kib: Some(peak_kib),
    })
}

/// The bundle of a real run, the first of its home.
fn small_bundle(subject: &Subject) -> Result<PathBuf, BenchError> {
    let args = ["run", "fixture:string-slugify", "--destination", "host", "--json"];
    let output = subject.herma(&subject.scratch, &args)?;
    let report: Report =
        report::parse(&output.stdout).map_err(BenchError::bundle("cannot read the report of a run"))?;
    Ok(subject.home.join("runs").join(report.run_id.to_string()).join("bundle"))
}

/// The same bundle with an engine log of that many MiB, sealed and signed again.
fn enlarge(key: &InstallationKey, small: &Path, large: &Path, mebibytes: u64) -> Result<(), BenchError> {
    let failed = || BenchError::io("cannot enlarge a bundle");
    let bundle = Bundle::create(large, Arc::new(SystemClock), None)
        .map_err(BenchError::bundle("cannot make a bundle"))?;
    let report: Report = report::parse(&fs::read(small.join(layout::REPORT)).map_err(failed())?)
        .map_err(BenchError::bundle("cannot read a report"))?;
    for name in report.artifacts.keys().filter(|name| *name != layout::REPORT_MD) {
        let content = fs::read(small.join(name)).map_err(failed())?;
        if name != layout::ENGINE_STDOUT {
            bundle.write(name, &content).map_err(BenchError::bundle("cannot enlarge a bundle"))?;
            continue;
        }
        let mut log = bundle.writer(name).map_err(BenchError::bundle("cannot enlarge a bundle"))?;
        let line =
            b"{\"type\":\"message\",\"text\":\"reading src/main.rs, 312 lines, and thinking about them\"}\n";
        let chunk = line.repeat((1 << 20) / line.len() + 1);
        for _ in 0..mebibytes {
            log.write_all(&chunk[..1 << 20]).map_err(failed())?;
        }
        log.finish().map_err(BenchError::bundle("cannot enlarge a bundle"))?;
    }
    let report = seal(&bundle, &report, &Redactor::default())
        .map_err(BenchError::bundle("cannot enlarge a bundle"))?;
    attest(&bundle, key, &report).map_err(BenchError::bundle("cannot enlarge a bundle"))
}

fn files(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(self::files(&path)?);
        } else {
            files.push(path);
        }
    }
    Ok(files)
}

/// Forgets the most memory that this process has used so far.
fn reset_peak() {
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// The most memory that this process has used since then, in KiB; 0 where the system does not say.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|rest| rest.trim().strip_suffix(" kB")).and_then(|kib| kib.trim().parse().ok()).unwrap_or(0)
}
