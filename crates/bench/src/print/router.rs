//! The table of `cargo xtask bench router`.

use std::io;

use super::{Text, judgement, machine};
use crate::figures::Row;
use crate::measure::Measured;

/// Prints what was measured.
pub(crate) fn router(measured: &Measured, text: &mut Text<'_>) -> io::Result<()> {
    machine(&measured.machine, &format!("medians of {} rounds", measured.rounds), text)?;
    let head =
        ["", "req/s", "CPU us/req", "+p50 us", "+p99 us", "+1st byte us", "CPU ms/1k ch.", "MiB", "streams"];
    writeln!(text, "{}", cells(&head.map(str::to_owned)))?;
    for row in &measured.rows {
        writeln!(text, "{}", cells(&figures(row)))?;
    }
    judgement(&measured.left_out, &measured.targets, text)
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
