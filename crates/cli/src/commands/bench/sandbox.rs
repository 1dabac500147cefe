//! `herma bench sandbox`: what the sandbox and the egress proxy cost beside others, measured in one run.

use std::process::ExitCode;

use herma_bench::sandbox::{Order, Plan, SandboxMeasured, measure};
use herma_harness::SystemClock;
use tempfile::TempDir;

use super::{progress, show_judgement, show_machine};
use crate::commands::Ended;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::output::BenchSandboxOutput;
use crate::screen::{Screen, Tone};

pub(super) fn bench(
    repeat: u32,
    quick: bool,
    scratch: &TempDir,
    environment: &Environment,
    screen: &Screen,
) -> Ended {
    let settings = &environment.settings;
    let order = Order {
        herma: settings.herma.clone(),
        search_path: settings.search_path.clone(),
        docker_host: settings.docker_host.clone(),
        scratch: scratch.path().to_owned(),
        plan: if quick { Plan::quick() } else { Plan::full(repeat) },
        clock: &SystemClock,
    };
    let measured = measure(&order, &|what| progress(screen, what)).map_err(Failure::internal)?;
    let missed = measured.targets.iter().any(|target| target.holds == Some(false));
    if screen.is_json() {
        screen.value(&BenchSandboxOutput { schema: "herma.bench-sandbox/v1", measured })?;
    } else {
        show(&measured, screen);
    }
    Ok(ExitCode::from(u8::from(missed)))
}

fn show(measured: &SandboxMeasured, screen: &Screen) {
    show_machine(&measured.machine, &format!("{} starts of each", measured.rounds), screen);
    let head = ["", "p50 ms", "p95 ms", "MiB/s", "CPU ms/GiB"].map(str::to_owned);
    screen.line(screen.paint(Tone::Bold, cells(&head)));
    for row in &measured.rows {
        let cell = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.0}"));
        let (p50, p95) = (format!("{:.1}", row.p50_ms), format!("{:.1}", row.p95_ms));
        screen.line(cells(&[row.name.clone(), p50, p95, cell(row.mib_per_s), cell(row.cpu_ms_per_gib)]));
    }
    show_judgement(&measured.left_out, &measured.targets, screen);
}

fn cells([name, p50, p95, throughput, cpu]: &[String; 5]) -> String {
    format!("{name:32} {p50:>9} {p95:>9} {throughput:>7} {cpu:>10}")
}
