//! The tables that people read.

mod router;
mod sandbox;

use std::io;

use crate::figures::LeftOut;
use crate::measure::Machine;
use crate::output::BenchRow;
use crate::targets::Target;

pub(crate) use self::router::router;
pub(crate) use self::sandbox::sandbox;

/// The stream that a table is printed to.
pub(crate) type Text<'a> = dyn io::Write + 'a;

/// Prints the rows of `cargo xtask bench harness`.
pub(crate) fn harness(rows: &[BenchRow], text: &mut Text<'_>) -> io::Result<()> {
    ratios(rows, ["with herma", "without"], text)
}

/// Prints the rows of `cargo xtask bench environment`.
pub(crate) fn environment(rows: &[BenchRow], text: &mut Text<'_>) -> io::Result<()> {
    ratios(rows, ["measured", "compared"], text)
}

fn ratios(rows: &[BenchRow], [ours, theirs]: [&str; 2], text: &mut Text<'_>) -> io::Result<()> {
    writeln!(text, "{:28} {:>7} {:>12} {:>12} {:>7} {:>7}", "", "files", ours, theirs, "ratio", "limit")?;
    for row in rows {
        let memory = row.peak_kib.map(|kib| format!("  peak {kib} KiB")).unwrap_or_default();
        writeln!(
            text,
            "{:28} {:>7} {:>9.1} ms {:>9.1} ms {:>7.2} {:>7.2}{memory}",
            row.name, row.files, row.governed_ms, row.bare_ms, row.ratio, row.limit
        )?;
    }
    let over = rows.iter().any(|row| row.ratio > row.limit);
    writeln!(text, "{}", if over { "A limit is exceeded." } else { "Every ratio is within its limit." })
}

/// Prints the machine that the figures are from, and the number of measurements.
pub(crate) fn machine(machine: &Machine, count: &str, text: &mut Text<'_>) -> io::Result<()> {
    let load = machine.load_before.map_or_else(|| "unknown".to_owned(), |load| format!("{load:.2}"));
    let cores = machine.cores;
    writeln!(text, "{cores} cores, load {load} at the start, {count}. Only ratios mean anything.\n")
}

/// Prints the contenders that were not measured, and whether each target holds.
pub(crate) fn judgement(left_out: &[LeftOut], targets: &[Target], text: &mut Text<'_>) -> io::Result<()> {
    for left in left_out {
        writeln!(text, "{:17} not measured: {}", left.name, left.why.escape_debug())?;
    }
    writeln!(text)?;
    for target in targets {
        let judged = match target.holds {
            Some(true) => "holds",
            Some(false) => "missed",
            None => "not judged",
        };
        let value = target.value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"));
        writeln!(text, "{:42} {value:>7}  at most {:>5.2}  {judged}", target.name, target.at_most)?;
    }
    Ok(())
}
