//! The last health check and the last run of the failure matrix, as far as they still count.

use herma_core::Digest;
use herma_core::engine::EngineName;
use herma_core::health::HealthStatus;
use herma_core::reference::Reference;
use herma_ladder::MatrixRecords;

use crate::health_records::HealthRecords;
use crate::output::{Absent, Field, HealthNow, HealthSummary};
use crate::records::Records;

/// The health of a summary that nothing was looked up for.
pub(super) fn unknown() -> HealthSummary {
    HealthSummary::without(HealthNow::NotRecorded, "no health check is recorded")
}

/// The recorded health, and the recorded run of the matrix. `now` is the digest of the summary without them.
pub(super) fn recorded(records: &Records<'_>, now: Option<Digest>) -> (HealthSummary, Field<Reference>) {
    let matrix = matrix(records);
    let health = HealthRecords::of(records.installation);
    let mut found = match health.newest() {
        None => unknown(),
        Some(id) => match health.read(id) {
            Err(why) => HealthSummary::without(HealthNow::Blocked, &why),
            Ok(record) => HealthSummary {
                status: match record.status {
                    HealthStatus::Green => HealthNow::Green,
                    HealthStatus::Red => HealthNow::Red,
                    HealthStatus::Incomplete => HealthNow::Incomplete,
                },
                reason: None,
                health_report_path: Some(Reference::Health(id)),
                matrix_report_path: None,
            }
            .unless_changed(record.summary_digest, now),
        },
    };
    found.matrix_report_path = matrix.known().cloned();
    if let (HealthNow::Green, Field::Absent(Absent { reason, .. })) = (found.status, &matrix) {
        found.status = HealthNow::Blocked;
        found.reason = Some(format!("its run of the failure matrix does not count: {reason}"));
    }
    (found, matrix)
}

fn matrix(records: &Records<'_>) -> Field<Reference> {
    let Some(digest) = records.engine_digest(&EngineName::fake()) else {
        return Field::blocked("herma's own program has no digest");
    };
    match MatrixRecords::of(records.installation).latest(digest) {
        Ok(Some(kept)) => Field::Known(Reference::Matrix(kept.record.id)),
        Ok(None) => Field::not_recorded("no run of the failure matrix is recorded"),
        Err(why) => Field::blocked(why.to_string()),
    }
}

impl HealthSummary {
    /// A green record counts only for the records that it was made on.
    fn unless_changed(mut self, then: Option<Digest>, now: Option<Digest>) -> Self {
        if self.status == HealthNow::Green && (then.is_none() || then != now) {
            self.status = HealthNow::Blocked;
            self.reason = Some("records changed since the health check: run herma health again".to_owned());
        }
        self
    }
}
