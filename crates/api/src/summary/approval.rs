//! The approval of the summary: its state by signature and trust chain, and its packet.

use herma_core::admission::{AdmissionId, ModelRef};
use herma_core::approval::{Approval, ApprovalState, Binding};
use herma_core::contract::Action;
use herma_core::decision::Purpose;
use herma_core::reference::Reference;
use herma_core::report::Admission;
use herma_core::store::StoreError;
use herma_core::{Contract, RunId, Status};
use herma_home::EnabledEngines;
use herma_trust::OutcomeStatus;

use crate::output::{
    ApprovalPacket, ApprovalSummary, ExecutionScope, NextAction, NotExecutable, PacketStatus,
};
use crate::records::Records;

/// Steps that herma never takes.
const NEVER: [NextAction; 2] = [NextAction::ActivateDefault, NextAction::Promote];
/// Every step of a person.
const STEPS: [NextAction; 6] = [
    NextAction::RequestApproval,
    NextAction::Grant,
    NextAction::Deny,
    NextAction::Run,
    NextAction::Accept,
    NextAction::Reject,
];

/// The known facts of an approval.
struct Known {
    granted: bool,
    allowed: bool,
    consumed: bool,
    reason: String,
    next: Vec<NextAction>,
    packet: PacketStatus,
}

/// The newest open request, else the newest approval that a run used; and its packet.
pub(super) fn approval(records: &Records<'_>) -> Result<(ApprovalSummary, ApprovalPacket), StoreError> {
    let now = records.installation.now();
    let approvals = records.approvals()?;
    let work = || approvals.iter().filter(|approval| approval.request.binding.purpose == Purpose::Work);
    let is_open = |approval: &&Approval| {
        matches!(approval.state_at(now), ApprovalState::Requested | ApprovalState::Granted)
            && records.used_by(approval).is_none()
    };
    let chosen = work().find(is_open).or_else(|| work().find(|approval| records.used_by(approval).is_some()));
    let Some(approval) = chosen else { return Ok(nothing_asked()) };
    let state = approval.state_at(now);
    let evidence = required_evidence(records, &approval.request.binding);
    let known = match records.used_by(approval) {
        Some(run) => used(records, approval, run),
        None if state == ApprovalState::Granted => granted(records, approval, &evidence),
        None => requested(&evidence),
    };
    Ok(shown(records, approval, state, known, evidence.unwrap_or_default()))
}

fn nothing_asked() -> (ApprovalSummary, ApprovalPacket) {
    let next = vec![NextAction::RequestApproval];
    let summary = ApprovalSummary {
        approval_id: None,
        approval_path: None,
        state: None,
        approver: None,
        provenance_paths: Vec::new(),
        approval_required: true,
        approval_granted: false,
        execution_allowed: false,
        execution_scope: None,
        approval_consumed: false,
        reason: "no approval is open, and none was used".to_owned(),
        blocked_next_actions: blocked(&next),
        allowed_next_actions: next,
    };
    let packet = ApprovalPacket {
        status: PacketStatus::NotReady,
        executable: NotExecutable,
        approval_command_text: None,
        required_evidence_paths: Vec::new(),
        allowed_paths: Vec::new(),
        blocked_actions: Action::BUILT_IN.to_vec(),
    };
    (summary, packet)
}

fn requested(evidence: &Result<Vec<Reference>, String>) -> Known {
    let (packet, reason) = match evidence {
        Ok(_) => (PacketStatus::ProofReady, "it waits for an approver".to_owned()),
        Err(why) => (PacketStatus::NotReady, format!("it waits for an approver, and {why}")),
    };
    let next = vec![NextAction::Grant, NextAction::Deny];
    Known { granted: false, allowed: false, consumed: false, reason, next, packet }
}

fn granted(records: &Records<'_>, approval: &Approval, evidence: &Result<Vec<Reference>, String>) -> Known {
    let problem = records.grant_problem(approval).or_else(|| changed(records, approval)).or_else(|| {
        let why = evidence.as_ref().err()?;
        Some(why.clone())
    });
    match problem {
        Some(reason) => Known {
            granted: false,
            allowed: false,
            consumed: false,
            reason: format!("the grant does not count: {reason}"),
            next: vec![NextAction::RequestApproval],
            packet: PacketStatus::NotReady,
        },
        None => Known {
            granted: true,
            allowed: true,
            consumed: false,
            reason: "it is granted, and no run has used it".to_owned(),
            next: vec![NextAction::Run],
            packet: PacketStatus::ProofReady,
        },
    }
}

fn used(records: &Records<'_>, approval: &Approval, run: RunId) -> Known {
    let unknown = |reason: String| Known {
        granted: false,
        allowed: false,
        consumed: true,
        reason,
        next: vec![NextAction::RequestApproval],
        packet: PacketStatus::NotReady,
    };
    let report = match records.run(run) {
        Err(why) => return unknown(format!("run {run} used it, and {why}")),
        Ok(verified) => verified.report,
    };
    if let Some(why) = records.grant_problem(approval) {
        return unknown(format!("run {run} used it, and its grant does not count: {why}"));
    }
    if report.approval_id != Some(approval.request.id) || report.status != Status::Pass {
        return unknown(format!("run {run} used it and did not pass: it is a {}", report.status.as_str()));
    }
    let next = match records.outcome(&report) {
        Some(OutcomeStatus::Pending(_)) => vec![NextAction::Accept, NextAction::Reject],
        Some(OutcomeStatus::Missing(_)) => vec![NextAction::Reject],
        _ => vec![NextAction::RequestApproval],
    };
    Known {
        granted: true,
        allowed: false,
        consumed: true,
        reason: format!("run {run} used it and passed"),
        next,
        packet: PacketStatus::ConsumedByPassEvidence,
    }
}

/// The first difference from the approved terms; none where there is none.
fn changed(records: &Records<'_>, approval: &Approval) -> Option<String> {
    let binding = &approval.request.binding;
    let shown = Contract::parse(approval.request.contract_text.as_bytes()).ok();
    if shown.and_then(|contract| contract.digest().ok()) != Some(binding.contract_digest) {
        return Some("the contract is not the one that was approved".to_owned());
    }
    if records.engine_digest(&binding.engine) != Some(binding.engine_digest) {
        return Some("the engine is not the one that was approved".to_owned());
    }
    let engine = records.installation.engines().get(&binding.engine)?;
    if !engine.built_in() && !EnabledEngines::of(&records.installation.home).is_on(&binding.engine) {
        return Some("the engine is not enabled".to_owned());
    }
    let target = AdmissionId::parse(herma_core::admission::AdmissionKind::Target, &binding.target).ok();
    let now = target.filter(|_| binding.target_admission.is_some()).map(|id| records.admission(&id).digest);
    match now {
        Some(now) if now != binding.target_admission => {
            Some("the target's admission is not the one that was approved".to_owned())
        }
        _ => None,
    }
}

/// The proof of the stage and the admissions that the run needs, all of which verify, or the first that does not.
fn required_evidence(records: &Records<'_>, binding: &Binding) -> Result<Vec<Reference>, String> {
    let installation = records.installation;
    let engine = installation.engines().get(&binding.engine).ok_or("herma has no such engine")?;
    let mut paths = Vec::new();
    if let Some((stage, _)) = installation.proofs().first_unproven(engine, binding.stage) {
        return Err(format!("stage {stage} of {} is not proven", binding.engine));
    }
    let proof = Reference::Proof(binding.engine.clone(), binding.stage);
    if records.check(&proof).is_ok() {
        paths.push(proof);
    }
    let mut admissions = Vec::new();
    if !engine.built_in() {
        admissions.push(AdmissionId::Engine(binding.engine.clone()));
    }
    if let Some(Ok(model)) = binding.model.as_ref().map(|model| first_model(model)) {
        admissions.push(AdmissionId::Model(model));
    }
    if binding.target_admission.is_some() {
        admissions.extend(binding.target.parse().ok().map(AdmissionId::Target));
    }
    for id in admissions {
        let status = records.admission(&id).status;
        if status != Admission::Admitted {
            return Err(format!("the admission of {id} is {}", status.as_str()));
        }
        paths.push(Reference::Admission(id));
    }
    Ok(paths)
}

/// The model itself, without the fallbacks that the binding names after it.
fn first_model(text: &str) -> Result<ModelRef, String> {
    text.split([' ', ',']).next().unwrap_or_default().parse()
}

fn shown(
    records: &Records<'_>,
    approval: &Approval,
    state: ApprovalState,
    known: Known,
    evidence: Vec<Reference>,
) -> (ApprovalSummary, ApprovalPacket) {
    let id = approval.request.id;
    let Known { granted, allowed, consumed, reason, next, packet } = known;
    let approver = approval.ruling.as_ref().map(|ruling| ruling.record.approver.clone());
    let path = Reference::Approval(id);
    let path = records.check(&path).is_ok().then_some(path);
    let provenance = approver.clone().map(Reference::Approver);
    let verifies = |reference: &Reference| records.check(reference).is_ok();
    let provenance_paths = path.iter().cloned().chain(provenance).filter(verifies).collect();
    let terms =
        Contract::parse(approval.request.contract_text.as_bytes()).ok().map(|contract| contract.terms);
    let forbidden = terms.as_ref().map(|terms| terms.forbidden_actions.clone()).unwrap_or_default();
    let is_blocked = |action: &Action| Action::BUILT_IN.contains(action) || forbidden.contains(action);
    let summary = ApprovalSummary {
        approval_id: Some(id),
        approval_path: path,
        state: Some(if consumed { ApprovalState::Consumed } else { state }),
        approver,
        provenance_paths,
        approval_required: true,
        approval_granted: granted,
        execution_allowed: allowed,
        execution_scope: allowed.then_some(ExecutionScope::OneRun),
        approval_consumed: consumed,
        reason,
        blocked_next_actions: blocked(&next),
        allowed_next_actions: next,
    };
    let can_be_ruled_on = packet == PacketStatus::ProofReady && !granted;
    let packet = ApprovalPacket {
        status: packet,
        executable: NotExecutable,
        approval_command_text: can_be_ruled_on.then(|| {
            format!("herma approvals show {id}\nherma approvals grant {id} --reason TEXT\nherma approvals deny {id} --reason TEXT")
        }),
        required_evidence_paths: evidence,
        allowed_paths: terms.map(|terms| terms.allowed_paths.as_slice().to_vec()).unwrap_or_default(),
        blocked_actions: Action::ALL.into_iter().filter(is_blocked).collect(),
    };
    (summary, packet)
}

fn blocked(next: &[NextAction]) -> Vec<NextAction> {
    STEPS.into_iter().filter(|step| !next.contains(step)).chain(NEVER).collect()
}
