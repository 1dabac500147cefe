//! A small, complete bundle of a run that passed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use herma_core::contract::ContractId;
use herma_core::decision::{Decision, DecisionInput, Purpose};
use herma_core::engine::{DestinationKind, EndedBy, EngineExit, EngineName, EngineResult};
use herma_core::event::{EventType as E, RunCompleted, Source};
use herma_core::gate::{Finding, Gate};
use herma_core::report::{
    Admission, ApprovalStatus, ChangedFile, Entry, Freshness, Mode, NeverActivated, OutcomeState, PathRule,
    PathViolation, ReportSchema, Usage, Verification, VerificationStatus,
};
use herma_core::{Clock, Contract, Fault, RepoPath, Report, RunId, Status, Step, Timestamp};
use herma_evidence::verify::{CheckName, Probed};
use herma_evidence::{
    Bundle, CheckList, Context, EventLog, ExpectedRun, InstallationKey, Redactor, Trace, Trust, attest,
    layout, seal, verify,
};
use serde_json::{Value, json};

pub(crate) const CONTRACT: &str = "---\nid: trim-slug\ntitle: slugify keeps outer whitespace\n\
    target: { fixture: string-slugify }\nstage: 2\nallowed_paths: [strings.py]\nverify: [\"python3 check.py\"]\n\
    ---\nslugify must trim.\n";

pub(crate) const PATCH: &str = "diff --git a/strings.py b/strings.py\n\
    index 1111111111111111111111111111111111111111..2222222222222222222222222222222222222222 100644\n\
    --- a/strings.py\n+++ b/strings.py\n@@ -1 +1 @@\n-a\n+b\n";

/// Each look at it is one millisecond later.
pub(crate) struct Ticks(AtomicI64);

impl Ticks {
    pub(crate) fn from_start() -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(1_700_000_000_000)))
    }

    /// An hour before the start.
    pub(crate) fn earlier() -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(1_700_000_000_000 - 3_600_000)))
    }

    pub(crate) fn later() -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(1_700_000_500_000)))
    }
}

impl Clock for Ticks {
    fn now(&self) -> Timestamp {
        Timestamp::from_millisecond(self.0.fetch_add(1, Ordering::Relaxed)).unwrap()
    }
}

pub(crate) struct Sample {
    pub(crate) temp: tempfile::TempDir,
    pub(crate) key: InstallationKey,
    pub(crate) report: Report,
}

impl Sample {
    pub(crate) fn dir(&self) -> PathBuf {
        self.temp.path().join("bundle")
    }

    pub(crate) fn verify(&self) -> CheckList {
        check(&self.dir(), &self.key)
    }
}

pub(crate) fn check(dir: &Path, key: &InstallationKey) -> CheckList {
    check_with(dir, &Trust { keys: vec![key.public()], approvers: Vec::new() })
}

pub(crate) fn check_with(dir: &Path, trust: &Trust) -> CheckList {
    check_as(dir, trust, None)
}

pub(crate) fn check_as(dir: &Path, trust: &Trust, expected: Option<&ExpectedRun>) -> CheckList {
    let confinement = &no_confinement;
    verify(dir, &Context { trust, paths: &only_strings, confinement, tree: None, expected })
}

fn no_confinement(_: &[u8], _: &Report) -> Result<Probed, String> {
    Err("the sample has none".to_owned())
}

/// Replaces the contract's path rules: only `strings.py` may change.
#[allow(clippy::unnecessary_wraps, reason = "the rules of a contract may fail")]
fn only_strings(_: &Contract, changed: &[ChangedFile]) -> Result<Vec<PathViolation>, String> {
    let outside = changed.iter().filter(|file| file.path.as_bytes() != b"strings.py");
    let violation = |file: &ChangedFile| PathViolation {
        path: file.path.clone(),
        rule: PathRule::NotAllowed,
        detail: "not allowed".to_owned(),
    };
    Ok(outside.map(violation).collect())
}

pub(crate) fn failed(list: &CheckList) -> Vec<CheckName> {
    list.failed().map(|check| check.name).collect()
}

pub(crate) fn run_id() -> RunId {
    RunId::new(Timestamp::from_millisecond(1_700_000_000_000).unwrap(), [7; 10])
}

/// A bundle that passes, after `change` had its way with the report.
pub(crate) fn pass(change: impl FnOnce(&mut Report)) -> Sample {
    pass_on(CONTRACT, None, change)
}

/// The same of an engine that printed this.
pub(crate) fn pass_saying(stdout: &[u8]) -> Sample {
    build(CONTRACT, None, stdout, |_| {})
}

/// The same for another contract, with these model calls.
pub(crate) fn pass_on(contract: &str, calls: Option<&[u8]>, change: impl FnOnce(&mut Report)) -> Sample {
    build(contract, calls, b"all is well\n", change)
}

fn build(contract: &str, calls: Option<&[u8]>, stdout: &[u8], change: impl FnOnce(&mut Report)) -> Sample {
    let temp = tempfile::tempdir().unwrap();
    let clock = Ticks::from_start();
    let mut report = report(contract, clock.now());
    let bundle = Bundle::create(temp.path().join("bundle"), clock, None::<Fault>).unwrap();
    let trace = Trace::create(&bundle);
    for step in taken().into_iter().filter(|step| *step < Step::Report) {
        trace.append(step).unwrap();
    }
    let log = EventLog::create(&bundle, run_id(), Redactor::default());
    let events = [
        E::RunStarted,
        E::ContractCreated,
        E::EligibilityDecided,
        E::WorkspacePrepared,
        E::EngineStarted,
        E::PatchApplied,
        E::DiffChecked,
        E::VerificationCompleted,
    ];
    bundle.write(layout::CONTRACT, contract.as_bytes()).unwrap();
    bundle.write(layout::DECISION, &serde_json::to_vec(&decision(contract)).unwrap()).unwrap();
    if let Some(calls) = calls {
        bundle.write(layout::MODEL_CALLS, calls).unwrap();
        report.not_applicable.remove(layout::MODEL_CALLS);
    }
    change(&mut report);
    for kind in events {
        let Value::Object(data) = event_data(kind, &report, contract) else { panic!("{kind} has no data") };
        log.append(Source::Harness, kind, data).unwrap();
    }
    trace.append(Step::Report).unwrap();
    bundle.write(layout::PATCH, PATCH.as_bytes()).unwrap();
    bundle.write(layout::ENGINE_STDOUT, stdout).unwrap();
    for (name, text) in
        [(layout::TEST_LOG, test_log(&report)), (layout::ENGINE_STDERR, "all is well\n".into())]
    {
        let mut writer = bundle.log(name, Redactor::default(), 1 << 20).unwrap();
        std::io::Write::write_all(&mut writer, text.as_bytes()).unwrap();
        writer.finish().unwrap();
    }
    let verdict = RunCompleted::new(report.status, &report.blockers, 0).into_data();
    log.append(Source::Harness, E::RunCompleted, verdict).unwrap();
    log.finish().unwrap();
    trace.finish().unwrap();
    let report = seal(&bundle, &report, &Redactor::default()).unwrap();
    let key = InstallationKey::load_or_create(&temp.path().join("keys")).unwrap();
    attest(&bundle, &key, &report).unwrap();
    Sample { temp, key, report }
}

/// The steps of the run: it ends before it would be attested.
pub(crate) fn taken() -> Vec<Step> {
    Step::ALL.into_iter().filter(|step| *step < Step::Attest && *step != Step::Land).collect()
}

/// The data of an event of this kind for a run with this report.
fn event_data(kind: E, report: &Report, contract: &str) -> Value {
    let decision = decision(contract);
    match kind {
        E::RunStarted => json!({
            "herma_version": report.herma_version, "engine": report.engine,
            "destination": report.destination, "stage": report.stage,
        }),
        E::ContractCreated => {
            json!({ "contract_id": report.contract_id, "contract_digest": report.contract_digest })
        }
        E::EligibilityDecided => json!({
            "decision_id": decision.decision_id, "engine_digest": report.engine_digest,
            "selected_engine": decision.selected_engine, "missing_gates": [],
        }),
        E::WorkspacePrepared => json!({ "baseline_commit": report.baseline_commit }),
        E::EngineStarted => json!({ "engine": report.engine, "version": report.engine_version }),
        E::PatchApplied => json!({
            "result_tree": report.result_tree, "result_commit": report.result_commit,
            "changed": report.changed_files.len(),
        }),
        E::DiffChecked => json!({
            "changed": report.changed_files.len(), "changed_tests": report.changed_tests,
            "changed_verification_files": report.changed_verification_files,
            "violations": report.path_violations, "forbidden": 0,
            "forbidden_actions": report.forbidden_actions_attempted, "secret": false,
        }),
        E::VerificationCompleted => json!({
            "passed": report.verification.iter().all(|v| v.status == VerificationStatus::Passed),
            "commands": report.verification,
            "with_baseline_tests": report.verification_with_baseline_tests,
        }),
        _ => json!({}),
    }
}

fn test_log(report: &Report) -> String {
    let shown =
        |v: &Verification| format!("$ {}\nall is well\n[exit {}]\n", v.command, v.exit_code.unwrap_or(1));
    report.verification.iter().chain(&report.verification_with_baseline_tests).map(shown).collect()
}

fn decision(contract: &str) -> Decision {
    let contract = Contract::parse(contract.as_bytes()).unwrap();
    let input = DecisionInput {
        run_id: run_id(),
        contract_id: &contract.terms.id,
        contract_digest: contract.digest().unwrap(),
        engine: &EngineName::fake(),
        stage: contract.terms.stage,
        mutation_scope: contract.terms.mutation_scope(),
        risk: contract.terms.risk,
        purpose: Purpose::Work,
        admissions: Vec::new(),
    };
    let not_there = |gate| Finding::NotApplicable(format!("{gate:?} does not apply"));
    let finding = |gate| if gate == Gate::TargetClean { not_there(gate) } else { Finding::Passed };
    let gates = Gate::ALL.map(|gate| (gate, finding(gate))).into();
    Decision::draw(&input, &gates)
}

fn report(contract: &str, started: Timestamp) -> Report {
    let contract = Contract::parse(contract.as_bytes()).unwrap();
    let entry = |digit: &str| Some(Entry { mode: Mode::File, id: digit.repeat(40) });
    let path = RepoPath::new("strings.py").unwrap();
    Report {
        schema: ReportSchema::V1,
        herma_version: herma_core::VERSION.to_owned(),
        run_id: run_id(),
        parent_run: None,
        contract_id: "trim-slug".parse::<ContractId>().unwrap(),
        contract_digest: contract.digest().unwrap(),
        status: Status::Pass,
        engine: EngineName::fake(),
        engine_version: "1".to_owned(),
        engine_digest: Some(herma_core::Digest::of(b"fake")),
        engine_started: true,
        engine_exit: Some(EngineExit {
            code: Some(0),
            signal: None,
            ended_by: EndedBy::Exited,
            result: Some(EngineResult::Completed),
            unread_lines: 0,
        }),
        needs: std::collections::BTreeMap::new(),
        stage: contract.terms.stage,
        mutation_scope: contract.terms.stage.mutation_scope(),
        destination: DestinationKind::Host,
        walls: Vec::new(),
        model_provider: contract.terms.model.as_ref().map(|choice| choice.provider.clone()),
        model: contract.terms.model.as_ref().map(|choice| choice.model.clone()),
        model_runtime_provider: None,
        model_admission: Admission::NotApplicable,
        engine_admission: Admission::BuiltIn,
        target_admission: Admission::BuiltIn,
        approval_status: ApprovalStatus::NotRequired,
        approval_id: None,
        run_started_at: started,
        run_finished_at: started,
        baseline_commit: Some("3".repeat(40)),
        result_tree: Some("4".repeat(40)),
        result_commit: Some("5".repeat(40)),
        changed_files: vec![ChangedFile { path, old: entry("1"), new: entry("2") }],
        changed_tests: Vec::new(),
        changed_verification_files: Vec::new(),
        ignored_files: Vec::new(),
        allowed_paths_passed: Some(true),
        forbidden_paths_passed: Some(true),
        path_violations: Vec::new(),
        forbidden_actions_attempted: Vec::new(),
        required_events_passed: true,
        missing_content: None,
        environment: None,
        verify_before: Vec::new(),
        verification: vec![Verification {
            command: "python3 check.py".to_owned(),
            status: VerificationStatus::Passed,
            exit_code: Some(0),
            reason: None,
            changed_files: None,
            duration_ms: 12,
        }],
        verification_with_baseline_tests: Vec::new(),
        target_clean_start: None,
        target_clean_end: None,
        source_mutated: None,
        landing: None,
        outcome: OutcomeState::NotRequired,
        outcome_due: None,
        usage: Usage::NONE,
        children: None,
        egress: None,
        tools: None,
        blockers: Vec::new(),
        not_applicable: [
            (layout::CONFINEMENT.to_owned(), "the destination is host".to_owned()),
            (layout::MODEL_CALLS.to_owned(), "the contract names no model".to_owned()),
        ]
        .into(),
        artifacts: std::collections::BTreeMap::default(),
        freshness: Freshness { oldest: started, newest: started, passed: true },
        trust_head: None,
        runtime_default_activation: NeverActivated,
    }
}
