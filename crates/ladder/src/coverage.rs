//! Which rows of the failure matrix a proof brought about.

use herma_core::proof::{Coverage, CoverageState, NotApplicable, ProofRow};
use herma_core::{Blocker, Stage};
use herma_trust::stage_cases;

use crate::failure_matrix::{FAILURE_MATRIX, Way};

/// Every row of the failure matrix: covered by a row of the proof, or not, with the reason.
pub(crate) fn coverage(stage: Stage, rows: &[ProofRow], not_applicable: &[NotApplicable]) -> Vec<Coverage> {
    FAILURE_MATRIX
        .iter()
        .map(|matrix| {
            let blocker = matrix.blocker;
            let covered = rows.iter().find(|row| row.held && row.expected_blocker == Some(blocker));
            let (seen, reason) = match covered.and_then(|row| Some((row, row.run_id?))) {
                Some((row, run)) => (CoverageState::Covered, format!("{}: run {run}", row.case)),
                None => match not_applicable.iter().find(|row| row.expected_blocker == blocker) {
                    Some(row) => (CoverageState::NotApplicable, row.reason.clone()),
                    None => (CoverageState::Blocked, why_not(stage, blocker, matrix.way)),
                },
            };
            Coverage { blocker, state: seen, reason }
        })
        .collect()
}

fn why_not(stage: Stage, blocker: Blocker, way: Way) -> String {
    if let Way::NotYet(needs) = way {
        return format!("it needs {needs}");
    }
    let is_class = |other: &Stage| stage_cases(*other).iter().any(|case| case.blocker == Some(blocker));
    if is_class(&stage) {
        return "its case did not end as it must, or was not reached".to_owned();
    }
    match Stage::ALL.iter().find(|other| is_class(other)) {
        Some(other) => format!("it is a failure class of stage {other}"),
        None => "no stage has it as a failure class; the tests of the failure matrix run it".to_owned(),
    }
}
