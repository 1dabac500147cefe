//! The part of a bundle that lanes are compared on. All of it is herma's own observation: an engine says
//! nothing here.

use std::path::Path;

use herma_core::report::{Verification, VerificationStatus};
use herma_core::units::Usd;
use herma_core::{Blocker, Digest, Report, RunId, Status, Verdict};
use herma_evidence::verify::{CheckList, CheckName, CheckOutcome};
use herma_evidence::{Trust, layout, report};
use herma_files::{MAX_RECORD_BYTES, read_regular};
use herma_trust::verify_bundle;

use super::shape::Shape;

/// The checks without which nothing in a bundle can be believed.
const SEAL: [CheckName; 5] = [
    CheckName::Files,
    CheckName::Envelope,
    CheckName::Signature,
    CheckName::Subjects,
    CheckName::ReportSchema,
];

/// Whether something holds, or why it does not.
pub(crate) type Held = Result<(), String>;

/// The evidence of one bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Evidence {
    /// The content of its report, or why the report cannot be trusted. Then no other field counts.
    pub(crate) told: Result<Told, String>,
    /// The digest of its `attestation.json`, where that can be read.
    pub(crate) attestation: Option<Digest>,
    /// Every required event is there, in order, and the chain holds.
    pub(crate) events: Held,
    /// Nothing but allowed paths changed, and herma looked.
    pub(crate) paths: Held,
    /// The status follows from the blockers, and the bundle verifies.
    pub(crate) closure: Held,
    /// Every file is there or has its reason, and the bundle verifies.
    pub(crate) artifacts: Held,
}

/// The content of a bundle's report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) run_id: RunId,
    pub(crate) contract_digest: Digest,
    pub(crate) engine_digest: Option<Digest>,
    pub(crate) engine_started: bool,
    pub(crate) status: Status,
    pub(crate) blockers: Vec<Blocker>,
    pub(crate) result_tree: Option<String>,
    /// Whether verification commands ran and all of them passed, with the tests as they were too where that was tried;
    /// none at a stage that verifies nothing.
    pub(crate) verified: Option<bool>,
    pub(crate) duration_ms: u64,
    pub(crate) tokens: u64,
    /// None if it is unknown.
    pub(crate) cost: Option<Usd>,
    pub(crate) shape: Shape,
}

impl Evidence {
    /// Reads and verifies the bundle in that directory. An unreadable bundle is evidence of nothing.
    pub(crate) fn read(bundle: &Path, trust: &Trust) -> Self {
        let checks = verify_bundle(bundle, trust, None, None);
        let read = |name: &str| {
            read_regular(&bundle.join(name), MAX_RECORD_BYTES)
                .map_err(|e| format!("{name} cannot be read: {e}"))
        };
        let report =
            read(layout::REPORT).and_then(|bytes| report::parse(&bytes).map_err(|bad| bad.to_string()));
        let attestation = read(layout::ATTESTATION).ok().map(|bytes| Digest::of(&bytes));
        Self::of(report, &checks, attestation)
    }

    /// The evidence of a report together with the checks of its bundle.
    pub(crate) fn of(
        report: Result<Report, String>,
        checks: &CheckList,
        attestation: Option<Digest>,
    ) -> Self {
        let sealed = SEAL.into_iter().try_for_each(|name| passed(checks, name));
        match sealed.and(report) {
            Ok(report) => Self {
                events: events(&report, checks),
                paths: paths(&report, checks),
                closure: closure(&report, checks),
                artifacts: artifacts(&report, checks),
                told: Ok(Told::of(&report)),
                attestation,
            },
            Err(why) => Self {
                events: Err(why.clone()),
                paths: Err(why.clone()),
                closure: Err(why.clone()),
                artifacts: Err(why.clone()),
                told: Err(why),
                attestation,
            },
        }
    }
}

impl Told {
    fn of(report: &Report) -> Self {
        let passed = |verification: &Verification| verification.status == VerificationStatus::Passed;
        let duration = report.run_finished_at.as_millisecond() - report.run_started_at.as_millisecond();
        Self {
            run_id: report.run_id,
            contract_digest: report.contract_digest,
            engine_digest: report.engine_digest,
            engine_started: report.engine_started,
            status: report.status,
            blockers: report.blockers.iter().map(|record| record.blocker).collect(),
            result_tree: report.result_tree.clone(),
            verified: report.stage.starts_engine().then(|| {
                !report.verification.is_empty()
                    && report.verification.iter().chain(&report.verification_with_baseline_tests).all(passed)
            }),
            duration_ms: u64::try_from(duration).unwrap_or(0),
            tokens: report.usage.input_tokens.saturating_add(report.usage.output_tokens),
            cost: report.usage.cost(),
            shape: Shape::of(report),
        }
    }
}

fn events(report: &Report, checks: &CheckList) -> Held {
    // These two also pass where the report itself records missing events.
    passed(checks, CheckName::Chain)?;
    passed(checks, CheckName::Order)?;
    hold(report.required_events_passed, || "a required event is not there, or not in its place".to_owned())
}

fn paths(report: &Report, checks: &CheckList) -> Held {
    if let Some(broken) = checks.failed().find(|check| check.name == CheckName::Paths) {
        return Err(format!("{}: {}", broken.name.as_str(), broken.detail));
    }
    if let Some(violation) = report.path_violations.first() {
        return Err(format!("{}: {}", violation.path, violation.detail));
    }
    let judged = [report.allowed_paths_passed, report.forbidden_paths_passed];
    // Where no engine was started nothing can have changed; where one was, herma must have looked.
    let unjudged = judged == [None; 2] && !report.engine_started && report.changed_files.is_empty();
    hold(judged == [Some(true); 2] || unjudged, || {
        "the paths of an engine that ran were not judged".to_owned()
    })
}

fn closure(report: &Report, checks: &CheckList) -> Held {
    let follows = Verdict::new(report.blockers.clone()).status() == report.status;
    hold(follows, || format!("the status {} does not follow from the blockers", report.status.as_str()))?;
    whole(checks)
}

fn artifacts(report: &Report, checks: &CheckList) -> Held {
    let has = |name: &str| report.artifacts.contains_key(name);
    let has_reason = |name: &str| report.not_applicable.get(name).is_some_and(|why| !why.trim().is_empty());
    match layout::EXPECTED.into_iter().find(|name| !has(name) && !has_reason(name)) {
        Some(name) => Err(format!("{name} is not there and the report gives no reason")),
        None => whole(checks),
    }
}

/// The whole bundle verifies.
fn whole(checks: &CheckList) -> Held {
    match checks.failed().next() {
        Some(broken) => Err(format!("{}: {}", broken.name.as_str(), broken.detail)),
        None => hold(checks.ok(), || "nothing was checked".to_owned()),
    }
}

/// The check was made and passed; one that does not apply has shown nothing.
fn passed(checks: &CheckList, name: CheckName) -> Held {
    match checks.checks.iter().find(|check| check.name == name) {
        Some(check) if check.outcome == CheckOutcome::Passed => Ok(()),
        Some(check) => Err(format!("{}: {}", name.as_str(), check.detail)),
        None => Err(format!("{}: was not checked", name.as_str())),
    }
}

fn hold(holds: bool, otherwise: impl FnOnce() -> String) -> Held {
    if holds { Ok(()) } else { Err(otherwise()) }
}
