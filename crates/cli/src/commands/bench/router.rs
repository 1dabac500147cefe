//! `herma bench router`: what the router costs beside others, measured in one run.

use std::process::ExitCode;

use herma_bench::{Measured, Order, Plan, Row, measure};
use herma_harness::SystemClock;
use tempfile::TempDir;

use super::{progress, show_judgement, show_machine};
use crate::commands::Ended;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::output::BenchRouterOutput;
use crate::screen::{Screen, Tone};

pub(super) fn bench(
    repeat: u32,
    quick: bool,
    scratch: &TempDir,
    environment: &Environment,
    screen: &Screen,
) -> Ended {
    let order = Order {
        herma: environment.settings.herma.clone(),
        search_path: environment.settings.search_path.clone(),
        scratch: scratch.path().to_owned(),
        plan: if quick { Plan::quick() } else { Plan::full(repeat) },
        clock: &SystemClock,
    };
    let measured = measure(&order, &|what| progress(screen, what)).map_err(Failure::internal)?;
    let missed = measured.targets.iter().any(|target| target.holds == Some(false));
    if screen.is_json() {
        screen.value(&BenchRouterOutput { schema: "herma.bench-router/v1", measured })?;
    } else {
        show(&measured, screen);
    }
    Ok(ExitCode::from(u8::from(missed)))
}

fn show(measured: &Measured, screen: &Screen) {
    show_machine(&measured.machine, &format!("medians of {} rounds", measured.rounds), screen);
    let head =
        ["", "req/s", "CPU us/req", "+p50 us", "+p99 us", "+1st byte us", "CPU ms/1k ch.", "MiB", "streams"];
    screen.line(screen.paint(Tone::Bold, cells(&head.map(str::to_owned))));
    for row in &measured.rows {
        screen.line(cells(&figures(row)));
    }
    show_judgement(&measured.left_out, &measured.targets, screen);
}

fn figures(row: &Row) -> [String; 9] {
    let cell =
        |value: Option<f64>, digits: usize| value.map_or_else(|| "-".to_owned(), |v| format!("{v:.digits$}"));
    [
        row.name.clone(),
        cell(row.rps, 0),
        cell(row.cpu_us_per_request, 1),
        cell(row.added_p50_us, 0),
        cell(row.added_p99_us, 0),
        cell(row.added_first_byte_us, 0),
        cell(row.cpu_ms_per_1k_chunks, 1),
        cell(row.rss_mib, 1),
        row.open_streams.map_or_else(|| "-".to_owned(), |streams| streams.to_string()),
    ]
}

fn cells([name, rps, cpu, p50, p99, first, chunks, rss, streams]: &[String; 9]) -> String {
    format!("{name:17} {rps:>7} {cpu:>10} {p50:>8} {p99:>8} {first:>12} {chunks:>13} {rss:>7} {streams:>7}")
}
