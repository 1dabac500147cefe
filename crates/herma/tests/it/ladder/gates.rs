//! An engine that was never let in: the decision lists everything that it lacks, at once.

use herma_core::{Blocker, EventType, Gate};

use super::{assert_never_began, blockers, decision, missing, run_stub};
use crate::kit::Herma;

fn gates_of(run: &crate::kit::Finished) -> Vec<Gate> {
    missing(run).into_iter().map(|(gate, _)| gate).collect()
}

#[test]
fn in_a_fresh_home_every_gate_that_is_missing_is_listed() {
    let herma = Herma::new();
    let run = run_stub(&herma, &[]);
    assert_never_began(&run);
    assert_eq!(gates_of(&run), [Gate::EngineEnabled, Gate::StageProven, Gate::EngineAdmitted]);
    assert_eq!(blockers(&run), [Blocker::EngineDisabled, Blocker::StageUnproven, Blocker::EngineNotAdmitted]);
    let decision = decision(&run);
    assert_eq!(decision.selected_engine, None);
    let denied: Vec<&String> = decision.denied_engines.keys().collect();
    assert_eq!(denied, ["stub"]);
    assert_eq!(
        decision.not_evaluated,
        [Gate::EngineIdentity, Gate::ProviderResponseShape, Gate::Confinement]
    );
    // One event for each missing gate, and none that says that something was begun.
    let blocked: Vec<_> =
        run.bundle.events().into_iter().filter(|event| event.kind == EventType::EngineGateBlocked).collect();
    let gates: Vec<_> = blocked.iter().map(|event| event.data["gate"].as_str().unwrap()).collect();
    assert_eq!(gates, ["engine_enabled", "stage_proven", "engine_admitted"]);
    for event in &blocked {
        assert_eq!((&event.data["engine"], &event.data["engine_started"]), (&"stub".into(), &false.into()));
        assert!(!event.data["reason"].as_str().unwrap().is_empty());
        assert_eq!(
            event.data["mutation_scope"],
            serde_json::to_value(decision.allowed_mutation_scope).unwrap()
        );
    }
    for never in [EventType::WorkspacePrepared, EventType::EngineStarted, EventType::ConfinementProbed] {
        assert!(!run.bundle.has_event(never), "{never:?}");
    }
}

#[test]
fn a_contract_that_asks_for_everything_lists_everything() {
    let herma = Herma::new();
    let run = run_stub(
        &herma,
        &[
            ("stage", "5"),
            ("target", "{ repo: my-tool }"),
            ("model", "{ provider: nobody, model: none }"),
            ("verify", "[]"),
        ],
    );
    assert_never_began(&run);
    let all = [
        Gate::ContractComplete,
        Gate::EngineEnabled,
        Gate::StageProven,
        Gate::EngineAdmitted,
        Gate::ModelAdmitted,
        Gate::ProviderConfigured,
        Gate::TargetAdmitted,
        Gate::ApprovalPresent,
    ];
    assert_eq!(gates_of(&run), all);
    let decision = decision(&run);
    // A program that is not admitted is not examined.
    assert!(decision.not_evaluated.contains(&Gate::TargetClean));
    let mut judged = [&decision.passed_gates[..], &gates_of(&run), &decision.not_evaluated].concat();
    judged.sort();
    assert_eq!(judged, decision.required_gates, "a gate is in none of the lists, or in two");
    assert!(decision.approval_required);
    assert_eq!(decision.escalation_path.len(), all.len());
    let statuses: Vec<_> = decision.admissions.iter().map(|seen| (&*seen.kind, &*seen.name)).collect();
    assert_eq!(statuses, [("engine", "stub"), ("model", "nobody/none"), ("target", "my-tool")]);
}

#[test]
fn an_enabled_unproven_engine_lacks_its_proof() {
    let herma = Herma::new();
    herma.json(&["engines", "enable", "stub", "--json"]);
    let run = run_stub(&herma, &[]);
    assert_never_began(&run);
    assert_eq!(gates_of(&run), [Gate::StageProven, Gate::EngineAdmitted]);
    assert!(decision(&run).passed_gates.contains(&Gate::EngineEnabled));

    let herma = Herma::with_stub();
    for stage in ["1", "2", "3"] {
        let terms: &[(&str, &str)] = match stage {
            "3" => &[("stage", "3"), ("target", "{ repo: ../repo }")],
            _ => &[("stage", stage)],
        };
        crate::kit::Repository::of_fixture(&herma, "string-slugify");
        let run = run_stub(&herma, terms);
        assert_never_began(&run);
        let missing = missing(&run);
        assert_eq!(
            missing,
            [(Gate::StageProven, "`stub` has no proof of stage 1".to_owned())],
            "stage {stage}"
        );
        let passed = decision(&run).passed_gates;
        assert!(passed.contains(&Gate::EngineEnabled) && passed.contains(&Gate::EngineAdmitted));
        std::fs::remove_dir_all(herma.at("repo")).unwrap();
    }
}

/// `fake` needs neither switch nor admission, and nothing of what `stub` lacks keeps it from running.
#[test]
fn the_default_engine_lacks_nothing_where_another_lacks_all() {
    let herma = Herma::new();
    let denied = run_stub(&herma, &[]);
    assert_eq!(denied.report.engine.as_str(), "stub");
    let run = herma.play("fix", &[]);
    run.assert_pass();
    assert_eq!(run.report.engine.as_str(), "fake");
    assert_eq!(decision(&run).selected_engine, Some(herma_core::engine::EngineName::fake()));
}
