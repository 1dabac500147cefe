//! `herma verify` of a large bundle against `sha256sum` of the same files, and the memory it takes.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use herma_api::read_contract;
use herma_core::Report;
use herma_core::engine::{DestinationKind, EngineName};
use herma_destination::Tool;
use herma_evidence::{Bundle, Redactor, Trust, attest, layout, report, seal};
use herma_harness::{Installation, Order, SystemClock, Unwatched, run};
use herma_trust::verify_bundle;

use super::side_by_side;
use crate::failure::Failure;
use crate::output::BenchRow;

/// How many times as long as `sha256sum` it may take.
const LIMIT: f64 = 1.5;

/// Measures a bundle of a few KiB for its memory, and one of that many MiB for time and memory.
pub(super) fn measure(
    installation: &Installation,
    path: &OsString,
    scratch: &Path,
    mebibytes: u64,
    repeat: u32,
) -> Result<Vec<BenchRow>, Failure> {
    let small = small_bundle(installation)?;
    let large = scratch.join("bundle");
    enlarge(installation, &small, &large, mebibytes)?;
    let small = row(installation, path, "verify, small", &small, f64::INFINITY, repeat)?;
    let large = row(installation, path, &format!("verify, {mebibytes} MiB"), &large, LIMIT, repeat)?;
    Ok(vec![small, large])
}

fn row(
    installation: &Installation,
    path: &OsString,
    name: &str,
    bundle: &Path,
    limit: f64,
    repeat: u32,
) -> Result<BenchRow, Failure> {
    let trust = Trust { keys: vec![installation.key.public()], approvers: Vec::new() };
    let names = files(bundle).map_err(Failure::internal)?;
    let sums = Tool::find("sha256sum", path).map_err(Failure::internal)?;
    let mut peak_kib = 0;
    let (governed_ms, bare_ms) = side_by_side(
        repeat,
        || {
            reset_peak();
            let checks = verify_bundle(bundle, &trust, None, None);
            peak_kib = peak_kib.max(peak());
            if checks.ok() {
                Ok(())
            } else {
                Err(Failure::internal("the bundle of the bench does not verify"))
            }
        },
        || sums.call().args(&names).checked().map(drop).map_err(Failure::internal),
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

/// The bundle of a real run.
fn small_bundle(installation: &Installation) -> Result<PathBuf, Failure> {
    let read = read_contract("fixture:string-slugify")?;
    let order = Order {
        contract: read.contract,
        contract_text: read.text,
        contract_dir: read.dir,
        engine: EngineName::fake(),
        destination: Some(DestinationKind::Host),
        script: None,
        keep_workspace: false,
        egress: herma_core::egress::EgressMode::Strict,
        resumes: None,
        fault: None,
    };
    Ok(run(installation, &order, &Unwatched)?.bundle)
}

/// The same bundle with an engine log of that many MiB, sealed and signed again.
fn enlarge(installation: &Installation, small: &Path, large: &Path, mebibytes: u64) -> Result<(), Failure> {
    let bundle = Bundle::create(large, Arc::new(SystemClock), None).map_err(Failure::internal)?;
    let report: Report = report::parse(&fs::read(small.join(layout::REPORT)).map_err(Failure::internal)?)
        .map_err(Failure::internal)?;
    for name in report.artifacts.keys().filter(|name| *name != layout::REPORT_MD) {
        let content = fs::read(small.join(name)).map_err(Failure::internal)?;
        if name != layout::ENGINE_STDOUT {
            bundle.write(name, &content).map_err(Failure::internal)?;
            continue;
        }
        let mut log = bundle.writer(name).map_err(Failure::internal)?;
        let line =
            b"{\"type\":\"message\",\"text\":\"reading src/main.rs, 312 lines, and thinking about them\"}\n";
        let chunk = line.repeat((1 << 20) / line.len() + 1);
        for _ in 0..mebibytes {
            log.write_all(&chunk[..1 << 20]).map_err(Failure::internal)?;
        }
        log.finish().map_err(Failure::internal)?;
    }
    let report = seal(&bundle, &report, &Redactor::default()).map_err(Failure::internal)?;
    attest(&bundle, &installation.key, &report).map_err(Failure::internal)
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
