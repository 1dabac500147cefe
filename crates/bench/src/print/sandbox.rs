//! The table of `cargo xtask bench sandbox`.

use std::io;

use super::{Text, judgement, machine};
use crate::sandbox::SandboxMeasured;

/// Prints what was measured.
pub(crate) fn sandbox(measured: &SandboxMeasured, text: &mut Text<'_>) -> io::Result<()> {
    machine(&measured.machine, &format!("{} starts of each", measured.rounds), text)?;
    let head = ["", "p50 ms", "p95 ms", "MiB/s", "CPU ms/GiB"].map(str::to_owned);
    writeln!(text, "{}", cells(&head))?;
    for row in &measured.rows {
        let cell = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.0}"));
        let (p50, p95) = (format!("{:.1}", row.p50_ms), format!("{:.1}", row.p95_ms));
        let row = [row.name.clone(), p50, p95, cell(row.mib_per_s), cell(row.cpu_ms_per_gib)];
        writeln!(text, "{}", cells(&row))?;
    }
    judgement(&measured.left_out, &measured.targets, text)
}

fn cells([name, p50, p95, throughput, cpu]: &[String; 5]) -> String {
    format!("{name:32} {p50:>9} {p95:>9} {throughput:>7} {cpu:>10}")
}
