//! The row of a run that its report describes.

use herma_core::report::Report;
use herma_core::store::RunSummary;

/// The run as lists show it after its end.
pub(crate) fn summary_of(report: &Report) -> RunSummary {
    RunSummary {
        run_id: report.run_id,
        contract_id: report.contract_id.clone(),
        contract_digest: report.contract_digest,
        engine: report.engine.clone(),
        destination: report.destination,
        stage: report.stage,
        started_at: report.run_started_at,
        finished_at: Some(report.run_finished_at),
        status: Some(report.status),
        blockers: report.blockers.iter().map(|b| b.blocker).collect(),
    }
}
