//! The records of an installation, verified. Each bundle is verified once.

use std::cell::RefCell;
use std::collections::BTreeMap;

use herma_core::admission::AdmissionId;
use herma_core::approval::{Answer, Approval};
use herma_core::decision::{Decision, Purpose};
use herma_core::engine::EngineName;
use herma_core::reference::Reference;
use herma_core::report::Admission;
use herma_core::store::{RunQuery, RunSummary, StoreError};
use herma_core::visible::visible_line;
use herma_core::{Digest, Report, RunId};
use herma_evidence::{ExpectedRun, Trust, layout, report};
use herma_files::{MAX_RECORD_BYTES, read_regular};
use herma_harness::Installation;
use herma_ladder::{Comparisons, MatrixRecords};
use herma_trust::approvals::SignatureCheck as _;
use herma_trust::{AdmissionFinding, OutcomeStatus, verify_run};

use crate::health_records::HealthRecords;

/// How many runs are read from the store at once.
const PAGE: u32 = 500;
/// How many approvals are looked at.
const MAX_APPROVALS: u32 = 10_000;

/// A bundle that verifies: its report, and the purpose of its run.
#[derive(Clone, Debug)]
pub(crate) struct VerifiedRun {
    pub(crate) report: Report,
    pub(crate) purpose: Purpose,
}

/// The records of an installation.
pub(crate) struct Records<'a> {
    pub(crate) installation: &'a Installation,
    trust: Trust,
    bundles: RefCell<BTreeMap<RunId, Result<VerifiedRun, String>>>,
}

impl<'a> Records<'a> {
    /// The records of this installation.
    pub(crate) fn of(installation: &'a Installation) -> Self {
        Self { installation, trust: installation.trust(), bundles: RefCell::default() }
    }

    /// Every run in the store, newest first.
    pub(crate) fn runs(&self) -> Result<Vec<RunSummary>, StoreError> {
        let (mut runs, mut before) = (Vec::new(), None);
        loop {
            let query = RunQuery { limit: PAGE, before, status: None };
            let page = self.installation.store.call(|store| store.runs(&query))?;
            before = page.last().map(|run| run.run_id);
            let is_last = page.len() < PAGE as usize;
            runs.extend(page);
            if is_last {
                return Ok(runs);
            }
        }
    }

    /// Every approval, newest first.
    pub(crate) fn approvals(&self) -> Result<Vec<Approval>, StoreError> {
        self.installation.store.call(|store| store.approvals(None, MAX_APPROVALS))
    }

    /// The run, if its bundle verifies as `herma verify` does it. The reason names the checks only: their details can quote
    /// a repository.
    pub(crate) fn run(&self, run: RunId) -> Result<VerifiedRun, String> {
        if let Some(known) = self.bundles.borrow().get(&run) {
            return known.clone();
        }
        let verified = self.verify(run);
        self.bundles.borrow_mut().insert(run, verified.clone());
        verified
    }

    fn verify(&self, run: RunId) -> Result<VerifiedRun, String> {
        let installation = self.installation;
        let dir = installation.home.run(run).bundle();
        if !dir.is_dir() {
            return Err(format!("the bundle of run {run} does not exist"));
        }
        let expected: ExpectedRun = installation.expected_run(run);
        let list = verify_run(&dir, &expected, &self.trust, Some(installation.git()), None);
        if !list.ok() {
            let failed: Vec<&str> = list.failed().map(|check| check.name.as_str()).collect();
            return Err(format!("the bundle of run {run} does not verify: {}", failed.join(", ")));
        }
        let read = |name: &str| {
            read_regular(&dir.join(name), MAX_RECORD_BYTES)
                .map_err(|e| format!("{name} of run {run} cannot be read: {e}"))
        };
        let report = report::parse(&read(layout::REPORT)?)
            .map_err(|_| format!("the report of run {run} cannot be read"))?;
        // A run that ended before the decision did no work, and none counts it as any.
        let decision = read(layout::DECISION).ok();
        let decision: Option<Decision> = decision.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Ok(VerifiedRun { report, purpose: decision.map_or(Purpose::Proof, |decision| decision.purpose) })
    }

    /// Whether the admission counts now. An engine is looked at as it is now.
    pub(crate) fn admission(
        &self,
        id: &AdmissionId,
    ) -> AdmissionFinding<herma_core::admission::AdmissionDraft> {
        let installation = self.installation;
        let digest = match id {
            AdmissionId::Engine(name) => self.engine_digest(name),
            _ => None,
        };
        installation.admissions().look(id, digest, &installation.admission_context())
    }

    /// The digest of everything that the engine runs now.
    pub(crate) fn engine_digest(&self, name: &EngineName) -> Option<Digest> {
        self.installation.engines().get(name).and_then(|engine| engine.digest().ok())
    }

    /// Why the grant of this approval is not one by a trusted approver on exactly this request; none where it is.
    pub(crate) fn grant_problem(&self, approval: &Approval) -> Option<String> {
        let Some(signed) = &approval.ruling else { return Some("no approver signed it".to_owned()) };
        if let Err(why) = self.installation.approvers().ruling(signed) {
            return Some(format!("its signature does not count: {}", visible_line(&why.to_string())));
        }
        if signed.record.request != approval.request {
            return Some("what was signed is another request".to_owned());
        }
        (signed.record.answer != Answer::Granted).then(|| "it was denied".to_owned())
    }

    /// The run that used the approval, by the trust chain, its mark or the store: any of them counts.
    pub(crate) fn used_by(&self, approval: &Approval) -> Option<RunId> {
        let id = approval.request.id;
        let chained = || self.installation.trust_log().read().ok()?.consumed_by(id);
        approval.consumed_by.or_else(|| self.installation.home.marked_by(id)).or_else(chained)
    }

    /// The outcome of a run.
    pub(crate) fn outcome(&self, report: &Report) -> Option<OutcomeStatus> {
        self.installation.outcomes().status(report).ok()
    }

    /// Whether what the reference names exists and verifies now, or why not.
    pub(crate) fn check(&self, reference: &Reference) -> Result<(), String> {
        let installation = self.installation;
        match reference {
            Reference::Bundle { run, file } => {
                let name = file.to_string();
                if !installation.home.run(*run).bundle().join(&name).is_file() {
                    return Err(format!("the bundle of run {run} has no file {name}"));
                }
                self.run(*run).map(drop)
            }
            Reference::Proof(engine, stage) => {
                let adapter = installation.engines().get(engine).ok_or("herma has no such engine")?;
                match installation.proofs().status(adapter, *stage) {
                    herma_trust::ProofStatus::Proven(_) => Ok(()),
                    herma_trust::ProofStatus::Stale(why) | herma_trust::ProofStatus::Broken(why) => {
                        Err(visible_line(&why))
                    }
                    _ => Err("there is no such proof".to_owned()),
                }
            }
            Reference::Comparison(id) => {
                Comparisons::of(installation).read(*id).map(drop).map_err(|e| visible_line(&e.to_string()))
            }
            Reference::Admission(id) => {
                let found = self.admission(id);
                if found.status == Admission::Admitted { Ok(()) } else { Err(visible_line(&found.detail)) }
            }
            Reference::Approval(id) => {
                let approval = self.approval(&id.to_string())?;
                let Some(signed) = &approval.ruling else { return Ok(()) };
                let ruled = installation.approvers().ruling(signed);
                ruled.map_err(|why| visible_line(&why.to_string()))
            }
            Reference::Approver(name) => {
                let known = installation.approvers().find(name).map_err(|e| visible_line(&e.to_string()))?;
                known.trusted().map_err(|why| visible_line(&why.to_string()))
            }
            Reference::Matrix(id) => {
                let digest =
                    self.engine_digest(&EngineName::fake()).ok_or("herma's program has no digest")?;
                MatrixRecords::of(installation).read(*id, digest).map(drop).map_err(|e| e.to_string())
            }
            Reference::Health(id) => HealthRecords::of(installation).read(*id).map(drop),
        }
    }

    /// The approval of this name.
    pub(crate) fn approval(&self, id: &str) -> Result<Approval, String> {
        let found = self.installation.store.call(|store| store.find_approvals(id));
        let found = found.map_err(|e| e.to_string())?.into_iter();
        let exact = found.into_iter().find(|approval| approval.request.id.to_string() == id);
        exact.ok_or_else(|| "the store has no such approval".to_owned())
    }
}
