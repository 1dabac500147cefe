//! The engine: registered, enabled, proven, admitted.

use std::collections::BTreeMap;

use herma_core::admission::EngineAdmission;
use herma_core::blocker::{Blocker, BlockerRecord};
use herma_core::capability::{Capability, Support};
use herma_core::decision::{AdmissionSeen, Purpose};
use herma_core::engine::EngineName;
use herma_core::gate::Finding;
use herma_core::{Digest, Stage};
use herma_engines::Engine;
use herma_home::EnabledEngines;
use herma_trust::AdmissionFinding;

use super::{Case, Judged};
use crate::installation::Installation;

/// The engine that was found.
pub(super) struct EngineSeen {
    pub(super) registered: Judged,
    pub(super) enabled: Judged,
    pub(super) proven: Judged,
    pub(super) admitted: Judged,
    pub(super) digest: Option<Digest>,
    pub(super) identity: Option<String>,
    pub(super) seen: Option<AdmissionSeen>,
    /// Its declared support for the capabilities that the contract needs.
    pub(super) needs: BTreeMap<Capability, Support>,
}

pub(super) fn look(case: Case<'_>) -> EngineSeen {
    let name = &case.order.engine;
    let Some(engine) = case.installation.engines.get(name) else {
        let known: Vec<_> = case.installation.engines.names().iter().map(ToString::to_string).collect();
        // Nothing that is done to a name alone makes an engine of it.
        let unknown = |blocker: Blocker, why: String| {
            Err(BlockerRecord {
                next_step: "Correct the engine's name; `herma engines` lists those that herma has."
                    .to_owned(),
                ..blocker.because(why)
            })
        };
        let (known, stage) = (known.join(", "), case.order.contract.terms.stage);
        return EngineSeen {
            registered: unknown(
                Blocker::EngineNotAdmitted,
                format!("herma has no engine `{name}`; it has: {known}"),
            ),
            enabled: unknown(Blocker::EngineDisabled, format!("`{name}` is not enabled")),
            proven: unknown(Blocker::StageUnproven, format!("`{name}` has no proof of stage {stage}")),
            admitted: unknown(Blocker::EngineNotAdmitted, format!("there is no admission of `{name}`")),
            digest: None,
            identity: None,
            seen: None,
            needs: BTreeMap::new(),
        };
    };
    // Computing it takes a while. For a built-in engine it matters only where somebody approved it.
    let judged = !engine.built_in() || case.order.contract.terms.stage.needs_approval();
    let digest = judged.then(|| engine.digest().ok()).flatten();
    let needs = engine.capabilities().for_needs(&case.order.contract.terms.needs);
    let admission = (!engine.built_in()).then(|| find_admission(case, engine, digest));
    EngineSeen {
        registered: registered(case, engine, &needs),
        enabled: enabled(case, engine),
        proven: proven(case, engine),
        admitted: admitted(case, engine, admission.as_ref()),
        identity: admission.as_ref().and_then(|a| a.record.as_ref()).map(|record| record.identity.clone()),
        seen: admission.map(|found| AdmissionSeen {
            kind: "engine".to_owned(),
            name: name.to_string(),
            status: found.status,
            digest: found.digest,
        }),
        digest,
        needs,
    }
}

fn find_admission(
    case: Case<'_>,
    engine: &dyn Engine,
    digest: Option<Digest>,
) -> AdmissionFinding<EngineAdmission> {
    let installation = case.installation;
    installation.admissions().find_engine(&engine.name(), digest, &installation.admission_context())
}

/// The gate: herma has the engine, and it has the capabilities that the contract needs.
fn registered(case: Case<'_>, engine: &dyn Engine, needs: &BTreeMap<Capability, Support>) -> Judged {
    let lacking: Vec<Capability> =
        needs.iter().filter(|(_, support)| !support.is_there()).map(|(need, _)| *need).collect();
    if lacking.is_empty() {
        return Ok(Finding::Passed);
    }
    let each = lacking.iter().map(|need| match able(case.installation, &[*need]).join(", ") {
        none if none.is_empty() => format!("`{need}`, which no engine has"),
        able => format!("`{need}` (engines that have it: {able})"),
    });
    let why =
        format!("`{}` lacks what the contract needs: {}", engine.name(), each.collect::<Vec<_>>().join("; "));
    let able = able(case.installation, &needs.keys().copied().collect::<Vec<_>>());
    Err(BlockerRecord {
        next_step: match able.join(", ") {
            none if none.is_empty() => {
                "Take it out of the contract's `needs`: no engine has all of them.".to_owned()
            }
            able => format!("Use an engine that has all that the contract `needs`: {able}."),
        },
        ..Blocker::EngineNotAdmitted.because(why)
    })
}

/// The engines that have all of these.
fn able(installation: &Installation, needs: &[Capability]) -> Vec<String> {
    let all = &installation.engines;
    let able = |engine: &dyn Engine| needs.iter().all(|need| engine.capabilities().of(*need).is_there());
    let names = all.names().into_iter().filter(|name| all.get(name).is_some_and(able));
    names.map(|name| name.to_string()).collect()
}

fn enabled(case: Case<'_>, engine: &dyn Engine) -> Judged {
    let name = engine.name();
    if engine.built_in() || EnabledEngines::of(&case.installation.home).is_on(&name) {
        return Ok(Finding::Passed);
    }
    Err(BlockerRecord {
        next_step: format!("Enable it with `herma engines enable {name}`, or use `fake`."),
        ..Blocker::EngineDisabled.because(format!("`{name}` is not enabled"))
    })
}

/// A run needs every stage up to its own; a proof of a stage needs those below it.
fn proven(case: Case<'_>, engine: &dyn Engine) -> Judged {
    let stage = case.order.contract.terms.stage;
    if stage == Stage::CandidateDefault {
        return Err(Blocker::StageUnproven.because("stage 6 compares evidence; no contract runs there"));
    }
    let needed = match case.occasion.purpose {
        Purpose::Work => Some(stage),
        // A built-in engine is the baseline for the others.
        Purpose::Proof if engine.built_in() => None,
        Purpose::Proof => stage.before(),
    };
    let Some(needed) = needed else { return Ok(Finding::Passed) };
    let Some((rung, status)) = case.installation.proofs().first_unproven(engine, needed) else {
        return Ok(Finding::Passed);
    };
    let name = engine.name();
    let why = match status.why_lost() {
        Some(why) => format!("`{name}` has lost its proof of stage {rung}: {why}"),
        None => format!("`{name}` has no proof of stage {rung}"),
    };
    Err(BlockerRecord {
        next_step: format!(
            "Run `herma prove --engine {name} --up-to {needed}`; `herma ladder` shows what is missing."
        ),
        ..Blocker::StageUnproven.because(why)
    })
}

fn admitted(
    case: Case<'_>,
    engine: &dyn Engine,
    found: Option<&AdmissionFinding<EngineAdmission>>,
) -> Judged {
    let name = engine.name();
    let Some(found) = found else {
        return Ok(Finding::NotApplicable(format!("`{name}` is part of herma itself")));
    };
    let refuse = |blocker: Blocker, why: String| {
        Err(BlockerRecord {
            next_step: match blocker {
                Blocker::EngineDigestMismatch => blocker.next_step().to_owned(),
                _ => format!(
                    "Write its admission with `herma admit engine {name}` and have it signed with `herma admit sign engine {name}`."
                ),
            },
            ..blocker.because(why)
        })
    };
    match (found.blocker, &found.record) {
        (None, Some(record)) => {
            let stage = case.order.contract.terms.stage;
            if !record.license_resolved && stage > Stage::Fixture {
                let why = format!(
                    "the license of `{name}` is not resolved, which admits it to stages 1 and 2 only"
                );
                return Err(BlockerRecord {
                    next_step: format!(
                        "Read the license. Then take the admission back with `herma admissions revoke engine {name} --reason TEXT`, \
                         and admit it again with `--license TEXT --license-resolved`."
                    ),
                    ..Blocker::EngineNotAdmitted.because(why)
                });
            }
            Ok(Finding::Passed)
        }
        (blocker, _) => refuse(blocker.unwrap_or(Blocker::EngineNotAdmitted), found.detail.clone()),
    }
}

/// Whether the engine is still switched on and admitted.
pub(super) fn still_admitted(
    installation: &Installation,
    name: &EngineName,
    digest: Option<Digest>,
) -> Result<(), BlockerRecord> {
    if installation.engines.get(name).is_some_and(Engine::built_in) {
        return Ok(());
    }
    if !EnabledEngines::of(&installation.home).is_on(name) {
        return Err(Blocker::EngineDisabled.because(format!("`{name}` was switched off meanwhile")));
    }
    let found = installation.admissions().find_engine(name, digest, &installation.admission_context());
    match found.blocker {
        Some(blocker) => Err(blocker.because(found.detail)),
        None => Ok(()),
    }
}
