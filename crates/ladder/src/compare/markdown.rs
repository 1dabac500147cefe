//! A comparison as people read it: in a file, and on the terminal.

use std::fmt::Write as _;

use herma_core::comparison::{Comparison, Lane};
use herma_core::engine::EngineName;
use herma_core::proof::{Criterion, Standing};
use herma_core::visible::visible_line;

/// The comparison in Markdown: first the summary table, then the details.
#[must_use]
pub fn comparison_markdown(comparison: &Comparison) -> String {
    let mut text = format!("# Comparison {}\n\n", comparison.id);
    let contracts: Vec<String> = comparison.contracts.iter().map(|c| format!("`{}`", c.id)).collect();
    let times = match comparison.repetitions {
        1 => "once".to_owned(),
        n => format!("{n} times"),
    };
    let _ = writeln!(
        text,
        "{}, {times} on each lane that could run, in `sandbox`, with herma {}, at {}.\n",
        contracts.join(", "),
        comparison.herma_version,
        comparison.made_at.strftime("%Y-%m-%d %H:%M:%SZ")
    );
    text += &table(&glance(comparison));
    text += "\n";
    text += if comparison.ran().count() < 2 {
        "Fewer than two lanes ran, so nothing is compared: the values stand for themselves.\n"
    } else {
        "✓ matches  ▲ beats  ▼ falls behind  – blocked, or nothing to say; against every other lane that ran.\n"
    };
    text += "The first five rows decide on eligibility. Time is the median, and less than 25 % or 50 ms apart counts as\n\
             a match. Tokens and cost are those of all runs together.\n";
    text += &differences(comparison);
    text += &blocked(comparison);
    text += &runs(comparison);
    let _ =
        writeln!(text, "\nNothing was switched: the default engine is and stays `{}`.", EngineName::DEFAULT);
    text
}

/// One row for each criterion, one column for each lane.
fn glance(comparison: &Comparison) -> Vec<Vec<String>> {
    let head = comparison.lanes.iter().map(|lane| lane.engine.to_string());
    let mut rows = vec![std::iter::once("criterion".to_owned()).chain(head).collect()];
    rows.extend(Criterion::ALL.map(|criterion| {
        let cells = comparison.lanes.iter().map(|lane| cell(comparison, lane, criterion));
        std::iter::once(criterion.as_str().to_owned()).chain(cells).collect()
    }));
    rows
}

fn cell(comparison: &Comparison, lane: &Lane, criterion: Criterion) -> String {
    let value = lane.measures.iter().find(|m| m.criterion == criterion).and_then(|m| m.value);
    let Some(value) = value.filter(|_| lane.blocked.is_none()) else { return "–".to_owned() };
    match comparison.standing(&lane.engine, criterion) {
        Some(Standing::Matches) => format!("✓ {value}"),
        Some(Standing::Beats) => format!("▲ {value}"),
        Some(Standing::FallsBehind) => format!("▼ {value}"),
        // No other lane ran: there is only the value.
        Some(Standing::Blocked) | None => value.to_string(),
    }
}

/// Where one lane is ahead of another, once for each pair.
fn differences(comparison: &Comparison) -> String {
    let behind = comparison.table.iter().filter(|row| row.standing == Standing::FallsBehind);
    let mut text = String::new();
    for row in behind {
        let _ = writeln!(
            text,
            "- {}: `{}` falls behind `{}`: {}",
            row.criterion.as_str(),
            row.lane,
            row.other,
            visible_line(&row.detail)
        );
    }
    headed("Where lanes differ", &text)
}

fn blocked(comparison: &Comparison) -> String {
    let mut text = String::new();
    for lane in &comparison.lanes {
        if let Some(why) = &lane.blocked {
            let _ = writeln!(text, "- `{}`: {}", lane.engine, visible_line(why));
        }
    }
    headed("Lanes that could not run", &text)
}

fn runs(comparison: &Comparison) -> String {
    let mut rows = vec![["lane", "contract", "run", "status", "blockers", "ms"].map(str::to_owned).to_vec()];
    for lane in &comparison.lanes {
        for run in &lane.runs {
            let blockers: Vec<String> = run.blockers.iter().map(ToString::to_string).collect();
            rows.push(vec![
                lane.engine.to_string(),
                run.contract_id.to_string(),
                run.run_id.to_string(),
                run.status.as_str().to_owned(),
                blockers.join(", "),
                run.duration_ms.to_string(),
            ]);
        }
    }
    headed("Runs", &if rows.len() == 1 { "none\n".to_owned() } else { table(&rows) })
}

fn headed(head: &str, text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("\n## {head}\n\n{text}") }
}

/// A Markdown table whose columns are as wide as their widest cell, so that it can be read as it is. Its cells are
/// names, numbers and marks; none holds a bar.
fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let widest = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(widest).collect();
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut lines = rows
        .iter()
        .map(|row| line(row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect()));
    let head = lines.next().unwrap_or_default();
    let rule = line(widths.iter().map(|width| "-".repeat(*width)).collect());
    let body: String = lines.collect();
    head + &rule + &body
}

#[cfg(test)]
mod tests {
    use herma_core::comparison::{ComparisonId, ComparisonSchema, TableRow};
    use herma_core::report::NeverActivated;

    use super::super::evidence::Evidence;
    use super::super::measures::{compare_lanes, measure};
    use super::super::sample::{good, run};
    use super::*;

    /// A comparison of these lanes; one without evidence could not run.
    fn comparison(lanes: &[(&str, Vec<Evidence>)]) -> Comparison {
        let name = |text: &str| text.parse::<EngineName>().unwrap();
        let mut table = Vec::new();
        for (lane, ours) in lanes {
            for (other, theirs) in lanes.iter().filter(|(other, _)| other != lane) {
                let rows = compare_lanes(ours, theirs).into_iter();
                table.extend(rows.map(|row| TableRow::new(&name(lane), &name(other), row)));
            }
        }
        let at = "2026-01-02T03:04:05Z".parse().unwrap();
        Comparison {
            schema: ComparisonSchema::V1,
            id: ComparisonId::new(at, [1; 10]),
            herma_version: "9".to_owned(),
            made_at: at,
            contracts: Vec::new(),
            repetitions: 2,
            lanes: lanes
                .iter()
                .map(|(engine, evidence)| Lane {
                    engine: name(engine),
                    engine_digest: None,
                    blocked: evidence.is_empty().then(|| "no \u{202e}program\nat all".to_owned()),
                    runs: Vec::new(),
                    measures: if evidence.is_empty() { Vec::new() } else { measure(evidence) },
                })
                .collect(),
            table,
            runtime_default_activation: NeverActivated,
        }
    }

    fn row(text: &str, criterion: &str) -> Vec<String> {
        let row = text.lines().find(|line| line.starts_with(&format!("| {criterion} "))).unwrap();
        row.trim_matches('|').split('|').skip(1).map(|cell| cell.trim().to_owned()).collect()
    }

    #[test]
    fn a_glance_tells_who_matches_beats_falls_behind_and_could_not_run() {
        let misses_an_event = || run(|report, _| report.required_events_passed = false);
        let lanes = [
            ("fake", vec![good(), good()]),
            ("good", vec![good(), good()]),
            ("worse", vec![good(), misses_an_event()]),
            ("gone", Vec::new()),
        ];
        let comparison = comparison(&lanes);
        let text = comparison_markdown(&comparison);
        assert_eq!(row(&text, "criterion"), ["fake", "good", "worse", "gone"]);
        assert_eq!(row(&text, "path_compliance"), ["✓ 2 of 2", "✓ 2 of 2", "✓ 2 of 2", "–"]);
        assert_eq!(row(&text, "event_validity"), ["▲ 2 of 2", "▲ 2 of 2", "▼ 1 of 2", "–"]);
        assert!(text.contains("- event_validity: `worse` falls behind `fake`: "), "{text}");
        // One line each, whatever the reason holds.
        assert!(text.contains("- `gone`: no \\u{202e}program\\nat all\n"), "{text}");
        let holds = |name: &str| comparison.holds_its_own(&name.parse().unwrap());
        assert_eq!(["fake", "good", "worse", "gone", "nobody"].map(holds), [true, true, false, false, false]);
    }

    #[test]
    fn a_lane_that_ran_alone_gets_no_mark() {
        for others in [vec![], vec![("gone", Vec::new())]] {
            let comparison = comparison(&[vec![("fake", vec![good()])], others].concat());
            let text = comparison_markdown(&comparison);
            assert_eq!(row(&text, "event_validity")[0], "1 of 1");
            assert!(text.contains("nothing is compared"), "{text}");
            assert!(!text.contains(['✓', '▲', '▼']), "{text}");
        }
    }

    #[test]
    fn a_missing_row_is_not_a_match() {
        let lanes = [("fake", vec![good()]), ("good", vec![good()])];
        let mut comparison = comparison(&lanes);
        let fake = EngineName::fake();
        assert!(comparison.holds_its_own(&fake));
        comparison.table.remove(0);
        assert!(!comparison.holds_its_own(&fake));
    }
}
