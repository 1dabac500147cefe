//! The evidence that each field of a report is checked against. Read it as data: the docs are generated from it,
//! and a test tampers with each.

/// How far a bundle can contradict a field of its report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Any other value breaks a check.
    Whole,
    /// Some other values break a check.
    Part,
    /// Nothing in the bundle can contradict it: the signature alone vouches for it.
    Nothing,
}

/// The check of one field.
#[derive(Clone, Copy, Debug)]
pub struct FieldCheck {
    /// The field's name in `report.json`.
    pub field: &'static str,
    /// How far it can be contradicted.
    pub reach: Reach,
    /// The evidence, in words.
    pub against: &'static str,
}

macro_rules! fields {
    ($($field:ident $reach:ident $against:literal;)*) => {
        &[$(FieldCheck { field: stringify!($field), reach: Reach::$reach, against: $against },)*]
    };
}

/// Every field of the report. Each is also in `report.md`, as far as that shows it.
pub const FIELDS: &[FieldCheck] = fields! {
    allowed_paths_passed Whole "`path_violations`, the contract's patterns";
    approval_id Part "the events `approval.granted` and `approval.consumed`, where the approval was used";
    approval_status Part "the event `approval.consumed`, the stage";
    artifacts Part "the files: names, sizes and digests; `written_at` against the run's start and end";
    baseline_commit Whole "the event `workspace.prepared`, and with the target at hand its tree";
    blockers Part "the names against the event `run.completed`, `status` and `decision.json`; their texts against nothing";
    changed_files Whole "the patch, blob by blob; the events `patch.applied` and `diff.checked`";
    changed_tests Whole "the event `diff.checked`, `changed_files`";
    changed_verification_files Whole "the event `diff.checked`, `changed_files`";
    children Whole "the events of child runs";
    contract_digest Whole "the contract, `decision.json`, the attestation, the event `contract.created`";
    contract_id Whole "the contract, `decision.json`, the event `contract.created`";
    destination Whole "the event `run.started`, `confinement.json`";
    egress Part "the events of egress; `mode` against nothing where nothing was decided";
    engine Whole "`decision.json`, the events `run.started` and `engine.started`";
    engine_admission Part "the admissions in `decision.json`, where a record was looked at";
    engine_digest Whole "the event `eligibility.decided`";
    engine_exit Part "a pass needs an engine that ended well; how another one ended against nothing";
    engine_started Whole "the event `engine.started`, `decision.json`, the steps";
    engine_version Whole "the event `engine.started`, where the engine started";
    environment Whole "`environment.json`, the contract's definition";
    forbidden_actions_attempted Whole "the event `diff.checked`";
    forbidden_paths_passed Whole "`path_violations`, the contract's patterns";
    freshness Whole "`artifacts`, the run's start and end";
    herma_version Whole "the attestation, the event `run.started`";
    ignored_files Nothing "nothing: files that never land leave no trace";
    landing Part "the stage, `status` and `outcome`; commit and base against nothing but the repository itself";
    missing_content Whole "the event `workspace.prepared`";
    model Whole "the contract";
    model_admission Part "the admissions in `decision.json`, where a record was looked at";
    model_provider Whole "the contract";
    model_runtime_provider Nothing "nothing: which provider speaks at an upstream is a setting of the router";
    mutation_scope Whole "the contract, `decision.json`";
    needs Part "the contract's needs; how the engine supports them against nothing";
    not_applicable Part "the files that are there; the reasons against nothing";
    outcome Whole "the stage, `landing`, `outcome_due`";
    outcome_due Part "`outcome`, the run's start";
    parent_run Part "the events `run.started` and `workspace.prepared`";
    path_violations Whole "the event `diff.checked`, the contract's patterns";
    required_events_passed Whole "the events, `blockers`";
    result_commit Whole "the event `patch.applied`";
    result_tree Whole "the event `patch.applied`, and with the target at hand the patch on its baseline";
    run_finished_at Part "it is not before anything that was written";
    run_id Whole "the attestation, every event, `decision.json`, `confinement.json`";
    run_started_at Part "the time in the run's name, to the millisecond";
    runtime_default_activation Whole "it has one value";
    schema Whole "it has one value";
    source_mutated Part "`blockers`; a fixture has none";
    stage Whole "the contract, the event `run.started`";
    status Whole "`blockers`, the attestation, the event `run.completed`";
    target_admission Part "the admissions in `decision.json`, where a record was looked at";
    target_clean_end Part "`blockers`, `source_mutated`; a fixture has none";
    target_clean_start Part "the gate `target_clean` in `decision.json`; a fixture has none";
    tools Part "`model-calls.jsonl`; what the engine asked about against nothing";
    trust_head Whole "the attestation, the event `run.started`";
    usage Whole "`model-calls.jsonl`";
    verification Whole "the contract's commands, the event `verification.completed`, `test.log`";
    verification_with_baseline_tests Whole "the event `verification.completed`, `test.log`";
    verify_before Whole "`environment.json`, the contract's commands and `expect_before`";
    walls Whole "`confinement.json`";
};
