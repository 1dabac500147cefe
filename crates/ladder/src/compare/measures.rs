//! The measures of a lane, and the comparison of two lanes on all ten criteria.

use std::collections::BTreeMap;

use herma_core::Digest;
use herma_core::comparison::{Measure, Measured, Share};
use herma_core::proof::{Compared, Criterion, Standing};
use herma_core::units::Usd;

use super::deciding::{compare_deciding, share};
use super::evidence::{Evidence, Told};
use super::share::{share_against, share_of};
use super::standing;

/// Medians closer together than this match, whatever the share: a machine is never quite idle.
const SAME_TIME_MS: u64 = 50;

/// Medians that differ by less than this part of the shorter one are a match.
const SAME_TIME_PART: u64 = 4;

/// The measures of a lane, one value for each criterion.
pub(super) fn measure(lane: &[Evidence]) -> Vec<Measure> {
    Criterion::ALL.map(|criterion| Measure { criterion, value: value(criterion, lane) }).into()
}

/// Compares a lane with another on each criterion.
pub(super) fn compare_lanes(ours: &[Evidence], theirs: &[Evidence]) -> Vec<Compared> {
    let mut table = compare_deciding(ours, theirs);
    for criterion in Criterion::ALL.into_iter().filter(|c| !Criterion::DECIDING.contains(c)) {
        let (standing, detail) = match criterion {
            Criterion::Cost if [ours, theirs].into_iter().any(has_unknown_cost) => {
                (Standing::Blocked, "not compared: the cost is unknown".to_owned())
            }
            _ => judge(value(criterion, ours), value(criterion, theirs)),
        };
        table.push(Compared { criterion, standing, detail });
    }
    table
}

fn value(criterion: Criterion, lane: &[Evidence]) -> Option<Measured> {
    let told = || lane.iter().filter_map(|run| run.told.as_ref().ok());
    match criterion {
        Criterion::Verification => verified(lane).map(Measured::Share),
        Criterion::Time => median(told().map(|run| run.duration_ms).collect()).map(Measured::Milliseconds),
        Criterion::Tokens => {
            Some(Measured::Tokens(told().map(|run| run.tokens).fold(0, u64::saturating_add)))
        }
        Criterion::Cost => {
            let costs: Option<Vec<Usd>> = told().map(|run| run.cost).collect();
            costs
                .map(|costs| Measured::Usd(Usd(costs.iter().map(|cost| cost.0).fold(0, u64::saturating_add))))
        }
        Criterion::Repeatability => repeated(told()).map(Measured::Share),
        deciding => Some(Measured::Share(share(deciding, lane))),
    }
    .filter(|_| !lane.is_empty())
}

/// Whether a run of the lane used a model whose price is unknown.
fn has_unknown_cost(lane: &[Evidence]) -> bool {
    lane.iter().filter_map(|run| run.told.as_ref().ok()).any(|run| run.cost.is_none())
}

/// In how many runs the verification passed; none where no run had anything to verify.
fn verified(lane: &[Evidence]) -> Option<Share> {
    let passed = |run: &Evidence| run.told.as_ref().map_or(Some(false), |told| told.verified);
    let verified: Vec<bool> = lane.iter().filter_map(passed).collect();
    (!verified.is_empty()).then(|| share_of(&verified, |passed| *passed))
}

/// The number of contracts whose runs all had the same result; none where no contract was run twice.
fn repeated<'a>(runs: impl Iterator<Item = &'a Told>) -> Option<Share> {
    let mut by_contract: BTreeMap<Digest, Vec<&Told>> = BTreeMap::new();
    for run in runs {
        by_contract.entry(run.contract_digest).or_default().push(run);
    }
    let repeated: Vec<Vec<&Told>> = by_contract.into_values().filter(|runs| runs.len() > 1).collect();
    let same = |a: &Told, b: &Told| {
        (a.status, &a.blockers, &a.result_tree) == (b.status, &b.blockers, &b.result_tree)
    };
    let came_to_the_same = |runs: &Vec<&Told>| runs.iter().all(|run| same(run, runs[0]));
    (!repeated.is_empty()).then(|| share_of(&repeated, came_to_the_same))
}

/// The middle value; of two middle ones the mean.
fn median(mut values: Vec<u64>) -> Option<u64> {
    values.sort_unstable();
    let upper = *values.get(values.len() / 2)?;
    let lower = values.get((values.len() - 1) / 2).copied().unwrap_or(upper);
    Some(u64::midpoint(lower, upper))
}

fn judge(ours: Option<Measured>, theirs: Option<Measured>) -> (Standing, String) {
    let (Some(ours), Some(theirs)) = (ours, theirs) else {
        return (Standing::Blocked, "there was nothing to measure".to_owned());
    };
    let (standing, rule) = match (ours, theirs) {
        (Measured::Share(ours), Measured::Share(theirs)) => (share_against(ours, theirs), ""),
        (Measured::Milliseconds(ours), Measured::Milliseconds(theirs)) => same_time(ours, theirs),
        (Measured::Tokens(ours), Measured::Tokens(theirs)) => (standing(theirs.cmp(&ours)), ""),
        (Measured::Usd(ours), Measured::Usd(theirs)) => (standing(theirs.cmp(&ours)), ""),
        _ => (Standing::Blocked, "; these are not of one kind"),
    };
    (standing, format!("{ours} against {theirs}{rule}"))
}

/// Times always differ, so close ones count as a match, and the note says so.
fn same_time(ours: u64, theirs: u64) -> (Standing, &'static str) {
    let apart = ours.abs_diff(theirs);
    if apart < SAME_TIME_MS || apart.saturating_mul(SAME_TIME_PART) < ours.min(theirs) {
        return (Standing::Matches, "; less than 25 % or 50 ms apart counts as a match");
    }
    (standing(theirs.cmp(&ours)), "")
}

#[cfg(test)]
mod tests {
    use herma_core::report::{Report, VerificationStatus};
    use herma_core::{Blocker, Timestamp};

    use super::super::sample::{failed, good, run};
    use super::*;

    fn of(criterion: Criterion, lane: &[Evidence]) -> Option<Measured> {
        measure(lane).into_iter().find(|measure| measure.criterion == criterion).unwrap().value
    }

    fn stands(criterion: Criterion, ours: &[Evidence], theirs: &[Evidence]) -> Standing {
        compare_lanes(ours, theirs).into_iter().find(|row| row.criterion == criterion).unwrap().standing
    }

    /// The first lane is better on this criterion, the second is worse.
    fn assert_better(criterion: Criterion, better: &[Evidence], worse: &[Evidence]) {
        assert_eq!(stands(criterion, better, worse), Standing::Beats, "{criterion:?}");
        assert_eq!(stands(criterion, worse, better), Standing::FallsBehind, "{criterion:?}");
        assert_eq!(stands(criterion, better, better), Standing::Matches, "{criterion:?}");
    }

    fn changed(change: impl FnOnce(&mut Report)) -> Evidence {
        run(|report, _| change(report))
    }

    fn taking(ms: i64) -> Evidence {
        changed(|report| {
            let start = report.run_started_at.as_millisecond();
            report.run_finished_at = Timestamp::from_millisecond(start + ms).unwrap();
        })
    }

    #[test]
    fn every_criterion_has_one_measure_and_one_row_and_nothing_is_said_of_no_runs() {
        let measures = measure(&[good()]);
        assert_eq!(measures.iter().map(|m| m.criterion).collect::<Vec<_>>(), Criterion::ALL);
        let rows = compare_lanes(&[good()], &[good()]);
        assert_eq!(rows.iter().map(|row| row.criterion).collect::<Vec<_>>(), Criterion::ALL);
        for criterion in Criterion::ALL {
            assert_eq!(of(criterion, &[]), None);
            assert_eq!(stands(criterion, &[], &[good()]), Standing::Blocked);
            assert_eq!(stands(criterion, &[good()], &[]), Standing::Blocked);
        }
    }

    #[test]
    fn verification_counts_only_where_every_command_ran_and_passed() {
        let bad = [
            changed(|report| report.verification[0].status = VerificationStatus::Failed),
            changed(|report| report.verification = Vec::new()),
            changed(|report| {
                report.verification_with_baseline_tests = report.verification.clone();
                report.verification_with_baseline_tests[0].status = VerificationStatus::TimedOut;
            }),
        ];
        for bad in bad {
            let worse = [good(), bad];
            assert_eq!(of(Criterion::Verification, &worse), Some(Measured::Share(Share { held: 1, of: 2 })));
            assert_better(Criterion::Verification, &[good(), good()], &worse);
        }
        let gated = || changed(|report| report.stage = herma_core::Stage::Gated);
        assert_eq!(of(Criterion::Verification, &[gated()]), None);
        assert_eq!(
            of(Criterion::Verification, &[gated(), good()]),
            Some(Measured::Share(Share { held: 1, of: 1 }))
        );
    }

    #[test]
    fn time_is_the_median_and_what_is_close_is_a_match() {
        let lane = [taking(100), taking(9000), taking(300)];
        assert_eq!(of(Criterion::Time, &lane), Some(Measured::Milliseconds(300)));
        assert_eq!(of(Criterion::Time, &lane[..2]), Some(Measured::Milliseconds(4550)));
        for (ours, theirs) in [(10, 59), (400, 499), (8000, 9999)] {
            assert_eq!(stands(Criterion::Time, &[taking(ours)], &[taking(theirs)]), Standing::Matches);
            assert_eq!(stands(Criterion::Time, &[taking(theirs)], &[taking(ours)]), Standing::Matches);
        }
        for (faster, slower) in [(10, 60), (400, 500), (8000, 10_000)] {
            assert_better(Criterion::Time, &[taking(faster)], &[taking(slower)]);
        }
    }

    #[test]
    fn tokens_and_cost_are_those_of_all_runs_and_less_is_better() {
        let using = |tokens, usd| {
            changed(|report| {
                report.usage.input_tokens = tokens;
                report.usage.output_tokens = 1;
                report.usage.usd = Usd(usd);
            })
        };
        let (less, more) = ([using(9, 100), using(9, 1)], [using(20, 100), using(0, 2)]);
        assert_eq!(of(Criterion::Tokens, &less), Some(Measured::Tokens(20)));
        assert_eq!(of(Criterion::Cost, &more), Some(Measured::Usd(Usd(102))));
        assert_better(Criterion::Tokens, &less, &more);
        assert_better(Criterion::Cost, &less, &more);
        // Nothing is equal to what is unknown, not even another unknown.
        let unknown = [using(9, 100), using(9, 0)];
        assert_eq!(of(Criterion::Cost, &unknown), None);
        for other in [&less, &unknown] {
            assert_eq!(stands(Criterion::Cost, &unknown, other), Standing::Blocked);
            assert_eq!(stands(Criterion::Cost, other, &unknown), Standing::Blocked);
        }
    }

    #[test]
    fn repetitions_must_come_to_the_same_status_blockers_and_tree() {
        let other_ends = [
            failed(Blocker::VerificationFailed),
            changed(|report| report.result_tree = Some("9".repeat(40))),
            changed(|report| report.result_tree = None),
        ];
        for other in other_ends {
            let (steady, unsteady) = ([good(), good()], [good(), other]);
            assert_better(Criterion::Repeatability, &steady, &unsteady);
        }
        let both = [failed(Blocker::NoDiff), failed(Blocker::EngineFailed)];
        assert_eq!(of(Criterion::Repeatability, &both), Some(Measured::Share(Share { held: 0, of: 1 })));
        let elsewhere = |tree: &str| {
            changed(|report| {
                report.contract_digest = Digest::of(b"another contract");
                report.result_tree = Some(tree.to_owned());
            })
        };
        let two_contracts = [good(), elsewhere("a"), good(), elsewhere("b")];
        assert_eq!(
            of(Criterion::Repeatability, &two_contracts),
            Some(Measured::Share(Share { held: 1, of: 2 }))
        );
    }

    #[test]
    fn a_contract_that_ran_once_was_not_repeated() {
        assert_eq!(of(Criterion::Repeatability, &[good()]), None);
        assert_eq!(stands(Criterion::Repeatability, &[good()], &[good()]), Standing::Blocked);
    }
}
