//! The adapter checks of each enabled engine. For `fake` they follow from the failure matrix, for agents from the cases of
//! their proofs.

use herma_core::Stage;
use herma_core::engine::EngineName;
use herma_core::matrix::MatrixReport;
use herma_core::proof::{Proof, ProofRow};
use herma_core::reference::Reference;
use herma_engines::Engine;
use herma_evidence::layout;
use herma_trust::ProofStatus;

use super::checklist::Checklist;
use super::evidence::is_enabled;
use crate::records::Records;

/// One adapter check: the rows of the matrix that show it on `fake`, and the cases of proofs that show it on agents.
struct Adapter {
    name: &'static str,
    /// Rows and cases of the matrix.
    rows: &'static [&'static str],
    /// The stage whose proof is looked at, and its cases.
    proof: (Stage, &'static [&'static str]),
}

/// The adapter checks, but for the bridge.
const ADAPTERS: [Adapter; 4] = [
    Adapter {
        name: "timeout_fails_closed",
        rows: &["timeout_startup", "timeout_idle", "timeout_total", "lifecycle_timeout"],
        proof: (Stage::CopiedRepo, &["timeout (startup)", "timeout (idle)", "timeout (total)"]),
    },
    Adapter {
        name: "model_gate_blocks",
        rows: &["provider_unavailable", "provider_reasoning_only", "model_not_admitted", "model_mismatch"],
        proof: (Stage::Gated, &["provider unavailable"]),
    },
    Adapter { name: "delayed_content_allowed", rows: &["delayed_content"], proof: (Stage::Fixture, &[]) },
    Adapter {
        name: "lifecycle_supervision",
        rows: &["agent_protocol_error", "engine_failed", "interrupted", "dirty_ending_tree"],
        proof: (Stage::CopiedRepo, &["dirty start (copy)", "dirty end", "missing event"]),
    },
];

/// Checks the adapter of every enabled engine.
pub(super) fn check(records: &Records<'_>, matrix: Option<&MatrixReport>, list: &mut Checklist<'_>) {
    let installation = records.installation;
    for name in installation.engines().names().iter().filter(|name| is_enabled(installation, name)) {
        let Some(engine) = installation.engines().get(name) else { continue };
        for adapter in &ADAPTERS {
            let check = format!("adapter:{name}/{}", adapter.name);
            if engine.built_in() {
                on_fake(&check, adapter.rows, matrix, list);
            } else {
                on_agent(records, &check, adapter, engine, list);
            }
        }
        let check = format!("adapter:{name}/bridge_allowed");
        if engine.built_in() {
            on_fake(&check, &["bridge"], matrix, list);
        } else {
            bridge(records, &check, name, engine, list);
        }
    }
}

/// The rows of the matrix show it.
fn on_fake(check: &str, wanted: &[&str], matrix: Option<&MatrixReport>, list: &mut Checklist<'_>) {
    let Some(matrix) = matrix else {
        return list.not_run(check, "it follows from the failure matrix, which was left out");
    };
    let rows = matrix.rows.iter().map(|row| (row.blocker.as_str(), row.held));
    let all: Vec<(&str, bool)> = rows.chain(matrix.cases.iter().map(|c| (c.name.as_str(), c.held))).collect();
    let broken: Vec<&str> = wanted.iter().filter(|name| !all.contains(&(**name, true))).copied().collect();
    if broken.is_empty() {
        let evidence = vec![Reference::Matrix(matrix.id)];
        list.passed_by(check, format!("rows {} of the failure matrix", wanted.join(", ")), evidence);
    } else {
        list.failed(check, format!("rows {} of the failure matrix do not hold", broken.join(", ")));
    }
}

/// The proof of a stage; an error is the check's result without one.
fn proof(
    records: &Records<'_>,
    check: &str,
    engine: &dyn Engine,
    stage: Stage,
    list: &mut Checklist<'_>,
) -> Option<Proof> {
    match records.installation.proofs().status(engine, stage) {
        ProofStatus::Proven(proof) => return Some(proof.record),
        ProofStatus::Stale(_) | ProofStatus::Broken(_) => {
            list.failed(check, format!("the proof of stage {stage} does not count"));
        }
        ProofStatus::Missing | ProofStatus::BuiltIn => {
            list.not_applicable(check, format!("stage {stage} is not proven, so that its runs are blocked"));
        }
    }
    None
}

fn on_agent(
    records: &Records<'_>,
    check: &str,
    adapter: &Adapter,
    engine: &dyn Engine,
    list: &mut Checklist<'_>,
) {
    let (stage, cases) = adapter.proof;
    if cases.is_empty() {
        return list.not_applicable(check, "no case of the ladder delays an agent's content on purpose");
    }
    let Some(proof) = proof(records, check, engine, stage, list) else { return };
    let held = |case: &str| proof.rows.iter().any(|row: &ProofRow| row.case == case && row.held);
    let broken: Vec<&str> = cases.iter().filter(|case| !held(case)).copied().collect();
    if broken.is_empty() {
        let evidence = vec![Reference::Proof(engine.name(), stage)];
        list.passed_by(check, format!("cases {} of the proof", cases.join(", ")), evidence);
    } else {
        list.failed(check, format!("the proof of stage {stage} has no case {}", broken.join(", ")));
    }
}

/// The pass case of stage 2 was answered by another provider than the contract names.
fn bridge(
    records: &Records<'_>,
    check: &str,
    name: &EngineName,
    engine: &dyn Engine,
    list: &mut Checklist<'_>,
) {
    let Some(proof) = proof(records, check, engine, Stage::Fixture, list) else { return };
    let passed = proof.rows.iter().find(|row| row.held && row.expected_blocker.is_none());
    let Some(run) = passed.and_then(|row| row.run_id) else {
        return list.failed(check, "the proof of stage 2 has no passing run");
    };
    let report = match records.run(run) {
        Err(why) => return list.failed(check, why),
        Ok(verified) => verified.report,
    };
    match (&report.model_provider, &report.model_runtime_provider) {
        (Some(asked), Some(answered)) if asked != answered => {
            let evidence = Reference::bundle(run, layout::REPORT).into_iter().collect();
            list.passed_by(check, format!("`{answered}` answered for `{asked}`"), evidence);
        }
        _ => list.not_applicable(check, format!("the proof of {name} asks no model through a bridge")),
    }
}
