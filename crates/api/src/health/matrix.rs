//! The failure matrix as part of health: one check for each row.

use herma_core::matrix::MatrixReport;
use herma_core::reference::Reference;
use herma_harness::Installation;
use herma_ladder::MatrixWatch;

use super::HealthOrder;
use super::checklist::Checklist;
use crate::matrix::{MatrixUseError, matrix};

/// Runs the matrix and records it; none where it is left out.
pub(super) fn run(
    installation: &Installation,
    order: HealthOrder,
    watch: &dyn MatrixWatch,
    list: &mut Checklist<'_>,
) -> Result<Option<MatrixReport>, MatrixUseError> {
    if order.skip_matrix {
        list.not_run("matrix", "it was left out with --skip-matrix");
        return Ok(None);
    }
    let report = matrix(installation, &[], None, watch)?;
    let evidence = || vec![Reference::Matrix(report.id)];
    let rows = report.rows.iter().map(|row| (row.blocker.as_str(), &row.problems));
    let cases = report.cases.iter().map(|case| (case.name.as_str(), &case.problems));
    for (name, problems) in rows.chain(cases) {
        let check = format!("matrix:{name}");
        if problems.is_empty() {
            list.passed_by(check, "it ended as the table has it", evidence());
        } else {
            list.failed(check, problems.join("; "));
        }
    }
    if !report.held && report.failed().next().is_none() {
        list.failed("matrix", "not every row was run");
    }
    Ok(Some(report))
}
