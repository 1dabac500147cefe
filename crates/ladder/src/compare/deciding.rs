//! The five comparisons that decide on eligibility. They are pure: evidence in, standings out.

use std::collections::BTreeMap;

use herma_core::Digest;
use herma_core::comparison::Share;
use herma_core::proof::{Compared, Criterion, Standing};

use super::evidence::{Evidence, Held};
use super::shape::Shape;
use super::share::{share_against, share_of};

/// Compares the runs of one lane with those of another, on each of the five deciding criteria. Both lanes ran
/// the same contracts; without runs of one lane there is no result.
pub(crate) fn compare_deciding(ours: &[Evidence], theirs: &[Evidence]) -> Vec<Compared> {
    Criterion::DECIDING
        .into_iter()
        .map(|criterion| {
            let (standing, detail) = judge(criterion, ours, theirs);
            Compared { criterion, standing, detail }
        })
        .collect()
}

fn judge(criterion: Criterion, ours: &[Evidence], theirs: &[Evidence]) -> (Standing, String) {
    if ours.is_empty() || theirs.is_empty() {
        return (Standing::Blocked, "one of the two lanes has no runs".to_owned());
    }
    // A bundle that cannot be believed is as good as nothing, also where the other lane's are no better.
    if let Some(why) = first_unbelievable(ours) {
        return (Standing::FallsBehind, format!("a bundle does not hold: {why}"));
    }
    match held(criterion) {
        Some(held) => compare_shares(held, ours, theirs),
        None => compare_shapes(ours, theirs),
    }
}

/// The check of a deciding criterion on a single run; none for the shape, which takes two.
fn held(criterion: Criterion) -> Option<fn(&Evidence) -> &Held> {
    match criterion {
        Criterion::EventValidity => Some(|evidence| &evidence.events),
        Criterion::PathCompliance => Some(|evidence| &evidence.paths),
        Criterion::FailureClosure => Some(|evidence| &evidence.closure),
        Criterion::ArtifactCompleteness => Some(|evidence| &evidence.artifacts),
        _ => None,
    }
}

/// In how many runs of the lane a deciding criterion holds. The shape holds in a run that has the fields of the lane's first
/// run of the same contract.
pub(super) fn share(criterion: Criterion, lane: &[Evidence]) -> Share {
    match held(criterion) {
        Some(held) => share_of(lane, |run| held(run).is_ok()),
        None => share_of(lane, |run| has_first_shape(run, lane)),
    }
}

fn has_first_shape(run: &Evidence, lane: &[Evidence]) -> bool {
    let Ok(told) = &run.told else { return false };
    let mut same_contract = lane
        .iter()
        .filter_map(|run| run.told.as_ref().ok())
        .filter(|t| t.contract_digest == told.contract_digest);
    same_contract.next().is_some_and(|first| first.shape == told.shape)
}

fn compare_shares(
    held: fn(&Evidence) -> &Held,
    ours: &[Evidence],
    theirs: &[Evidence],
) -> (Standing, String) {
    let (mine, other) = (share_of(ours, |run| held(run).is_ok()), share_of(theirs, |run| held(run).is_ok()));
    let why = ours.iter().find_map(|run| held(run).as_ref().err());
    let why = why.map_or_else(String::new, |why| format!("; {why}"));
    let detail = format!("it holds in {mine} runs, in the other lane in {other}{why}");
    (share_against(mine, other), detail)
}

/// The shape of a lane for a contract is that of each of its reports.
fn compare_shapes(ours: &[Evidence], theirs: &[Evidence]) -> (Standing, String) {
    if let Some(why) = first_unbelievable(theirs) {
        return (Standing::Beats, format!("a bundle of the other lane does not hold: {why}"));
    }
    let (mine, other) = (shapes(ours), shapes(theirs));
    if !mine.keys().eq(other.keys()) {
        return (Standing::Blocked, "the two lanes did not run the same contracts".to_owned());
    }
    let pairs = || mine.values().zip(other.values());
    let lacking: Vec<&str> = pairs().flat_map(|(mine, other)| mine.lacks(other)).collect();
    let more: Vec<&str> = pairs().flat_map(|(mine, other)| other.lacks(mine)).collect();
    match (lacking.as_slice(), more.as_slice()) {
        ([], []) => (Standing::Matches, "its reports have the same fields".to_owned()),
        ([], more) => (Standing::Beats, format!("only its reports always have {}", more.join(", "))),
        (lacking, _) => (Standing::FallsBehind, format!("some of its reports lack {}", lacking.join(", "))),
    }
}

/// The common shape of all reports of a contract, by contract.
fn shapes(lane: &[Evidence]) -> BTreeMap<Digest, Shape> {
    let mut shapes: BTreeMap<Digest, Shape> = BTreeMap::new();
    for told in lane.iter().filter_map(|run| run.told.as_ref().ok()) {
        let common = match shapes.get(&told.contract_digest) {
            Some(so_far) => so_far.common(&told.shape),
            None => told.shape.clone(),
        };
        shapes.insert(told.contract_digest, common);
    }
    shapes
}

fn first_unbelievable(lane: &[Evidence]) -> Option<&str> {
    lane.iter().find_map(|run| run.told.as_ref().err()).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use herma_core::child::ChildrenUse;
    use herma_core::egress::EgressUse;
    use herma_core::engine::{EndedBy, EngineExit};
    use herma_core::report::{Admission, ChangedFile, PathRule, PathViolation};
    use herma_core::tool::{PermissionProtocol, ToolUse};
    use herma_core::{Blocker, RepoPath, Report};
    use herma_evidence::verify::{CheckName, CheckOutcome};

    use super::super::sample::{end, failed, good, run};
    use super::*;

    fn standing(criterion: Criterion, ours: &[Evidence], theirs: &[Evidence]) -> Standing {
        let table = compare_deciding(ours, theirs);
        assert_eq!(table.iter().map(|row| row.criterion).collect::<Vec<_>>(), Criterion::DECIDING);
        table.into_iter().find(|row| row.criterion == criterion).unwrap().standing
    }

    /// This run is worse than a good one on this criterion, whichever lane it is in.
    fn assert_worse(criterion: Criterion, bad: &Evidence) {
        let (bad, all_good) = ([good(), bad.clone()], [good(), good()]);
        assert_eq!(standing(criterion, &bad, &all_good), Standing::FallsBehind, "{criterion:?}");
        assert_eq!(standing(criterion, &all_good, &bad), Standing::Beats, "{criterion:?}");
        assert!(share(criterion, &bad).held < 2, "{criterion:?}");
    }

    fn assert_all(wanted: Standing, ours: &[Evidence], theirs: &[Evidence]) {
        for row in compare_deciding(ours, theirs) {
            assert_eq!(row.standing, wanted, "{row:?}");
        }
    }

    #[test]
    fn equal_lanes_match_and_a_lane_without_runs_stands_nowhere() {
        assert_all(Standing::Matches, &[good(), good()], &[good()]);
        assert_all(Standing::Blocked, &[], &[good()]);
        assert_all(Standing::Blocked, &[good()], &[]);
    }

    #[test]
    fn a_run_that_was_closed_as_what_it_was_matches_one_that_passed() {
        for blocker in [Blocker::VerificationFailed, Blocker::TimeoutIdle] {
            assert_all(Standing::Matches, &[failed(blocker)], &[good()]);
        }
    }

    #[test]
    fn a_field_that_one_lane_leaves_null_is_another_shape() {
        let changes: [fn(&mut Report); 5] = [
            |report| report.result_tree = None,
            |report| report.engine_exit = None,
            |report| report.allowed_paths_passed = None,
            |report| report.baseline_commit = None,
            |report| report.engine_digest = None,
        ];
        for change in changes {
            assert_worse(Criterion::ReportShape, &run(|report, _| change(report)));
        }
    }

    #[test]
    fn what_engines_differ_in_by_right_is_no_part_of_the_shape() {
        let other = run(|report, _| {
            report.engine = "stub".parse().unwrap();
            report.engine_version = "9.9".to_owned();
            report.engine_digest = Some(Digest::of(b"stub"));
            report.engine_admission = Admission::Admitted;
            report.model_runtime_provider = Some("a bridge".to_owned());
            report.tools = Some(ToolUse {
                asking: PermissionProtocol::Courtesy,
                policy: Digest::of(b"policies"),
                asked: 3,
                denied: 0,
                unasked: 0,
                model_calls: None,
            });
            report.children = Some(ChildrenUse::default());
            report.engine_exit = Some(EngineExit {
                code: None,
                signal: Some(15),
                ended_by: EndedBy::EarlyStop,
                result: None,
                unread_lines: 0,
            });
            report.not_applicable.insert("patch.diff".to_owned(), "withheld".to_owned());
            report.artifacts.remove("patch.diff");
            report.changed_tests = vec![RepoPath::new("t").unwrap()];
            report.changed_files = Vec::<ChangedFile>::new();
        });
        assert_all(Standing::Matches, std::slice::from_ref(&other), &[good()]);
        assert_all(Standing::Matches, &[good()], &[other]);
    }

    #[test]
    fn denied_hosts_are_no_part_of_the_shape() {
        let with_denied = |reasons: &[&str]| {
            let denied = reasons.iter().map(|reason| ((*reason).to_owned(), 1)).collect();
            run(|report, _| report.egress = Some(EgressUse { denied, ..EgressUse::default() }))
        };
        assert_all(Standing::Matches, &[with_denied(&[])], &[with_denied(&["not_listed"])]);
        assert_all(Standing::Matches, &[with_denied(&["not_listed"])], &[with_denied(&[])]);
    }

    #[test]
    fn a_lane_that_says_more_in_one_field_and_less_in_another_falls_behind() {
        let ours = run(|report, _| {
            report.result_tree = None;
            report.source_mutated = Some(false);
        });
        assert_eq!(standing(Criterion::ReportShape, &[ours], &[good()]), Standing::FallsBehind);
    }

    #[test]
    fn shapes_of_different_contracts_are_not_compared() {
        let other = run(|report, _| report.contract_digest = Digest::of(b"another contract"));
        assert_eq!(standing(Criterion::ReportShape, &[other], &[good()]), Standing::Blocked);
    }

    #[test]
    fn events_must_be_there_in_order_and_chained() {
        for name in [CheckName::Chain, CheckName::Order] {
            for outcome in [CheckOutcome::Failed, CheckOutcome::NotApplicable] {
                assert_worse(Criterion::EventValidity, &run(|_, checks| end(checks, name, outcome)));
            }
        }
        // The bundle verifies, because the report admits it.
        assert_worse(Criterion::EventValidity, &run(|report, _| report.required_events_passed = false));
    }

    #[test]
    fn paths_must_have_been_judged_and_none_may_break_a_rule() {
        let violation = PathViolation {
            path: RepoPath::new("README.md").unwrap(),
            rule: PathRule::NotAllowed,
            detail: "not allowed".to_owned(),
        };
        let bad = [
            run(|report, _| report.path_violations = vec![violation]),
            run(|report, _| report.allowed_paths_passed = Some(false)),
            run(|report, _| report.forbidden_paths_passed = Some(false)),
            run(|report, _| {
                report.allowed_paths_passed = None;
                report.forbidden_paths_passed = None;
            }),
            run(|_, checks| end(checks, CheckName::Paths, CheckOutcome::Failed)),
        ];
        for bad in bad {
            assert_worse(Criterion::PathCompliance, &bad);
        }
        let not_started = run(|report, _| {
            report.engine_started = false;
            report.changed_files = Vec::new();
            report.allowed_paths_passed = None;
            report.forbidden_paths_passed = None;
        });
        assert_eq!(not_started.paths, Ok(()));
    }

    #[test]
    fn a_run_without_a_pass_names_why_and_its_status_follows() {
        let bad = [
            run(|report, _| report.status = Blocker::NoDiff.status()),
            run(|report, _| report.blockers = vec![Blocker::NoDiff.because("nothing changed")]),
            run(|_, checks| end(checks, CheckName::Agreement, CheckOutcome::Failed)),
        ];
        for bad in bad {
            assert_worse(Criterion::FailureClosure, &bad);
        }
    }

    #[test]
    fn every_artifact_is_there_or_has_a_reason_and_the_bundle_verifies() {
        let bad = [
            run(|report, _| {
                report.artifacts.remove("test.log");
            }),
            run(|report, _| {
                report.artifacts.remove("test.log");
                report.not_applicable.insert("test.log".to_owned(), "  ".to_owned());
            }),
            run(|_, checks| end(checks, CheckName::Secrets, CheckOutcome::Failed)),
        ];
        for bad in bad {
            assert_worse(Criterion::ArtifactCompleteness, &bad);
        }
        let excused = run(|report, _| {
            report.artifacts.remove("test.log");
            report.not_applicable.insert("test.log".to_owned(), "nothing was verified".to_owned());
        });
        assert_eq!(excused.artifacts, Ok(()));
    }

    #[test]
    fn a_bundle_that_nobody_vouches_for_falls_behind_on_everything_even_against_another_such() {
        let forged = run(|_, checks| end(checks, CheckName::Signature, CheckOutcome::Failed));
        let gone = Evidence::of(Err("it is gone".to_owned()), &herma_evidence::CheckList::default(), None);
        for broken in [forged, gone] {
            assert_all(Standing::FallsBehind, &[good(), broken.clone()], &[good()]);
            assert_all(Standing::FallsBehind, std::slice::from_ref(&broken), std::slice::from_ref(&broken));
            assert_all(Standing::Beats, &[good()], &[broken]);
        }
    }
}
