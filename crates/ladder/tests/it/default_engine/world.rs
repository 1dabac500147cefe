//! An installation, and everything that can happen to it that might speak for another default engine.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use herma_core::admission::{AdmissionDraft, AdmissionId, EngineDraft, ReviewTrigger};
use herma_core::approval::{Answer, Approval};
use herma_core::approver::Custody;
use herma_core::comparison::{Comparison, ComparisonId, ComparisonSchema};
use herma_core::engine::{DestinationKind, EngineName};
use herma_core::proof::{Candidate, Proof, ProofRow, ProofSchema};
use herma_core::report::NeverActivated;
use herma_core::signed::Signable;
use herma_core::{Clock as _, Contract, Stage, Status, Timestamp, VERSION};
use herma_engines::Engine as _;
use herma_engines::stub::Stub;
use herma_evidence::{ApproverKey, signed};
use herma_harness::{Finished, Installation, Order, Settings, SystemClock, Unwatched, ask, rule, run};
use herma_home::{EnabledEngines, HomePlace};
use herma_ladder::{Comparisons, case_names};
use herma_trust::Approver;
use herma_trust::approvals::Asker;
use proptest::prelude::*;
use serde_json::Value;
use tempfile::TempDir;

/// One thing that happens to an installation.
#[derive(Clone, Debug)]
pub(super) enum Event {
    Enable,
    Disable,
    /// A draft of the admission of `stub`, signed or not.
    Admit {
        sign: bool,
        license: bool,
    },
    Revoke,
    Ask {
        named: Option<Engine>,
        stage: Stage,
    },
    /// A ruling on the last requested approval.
    Rule(Answer),
    /// A proof that an engine has passed a stage.
    Proof {
        engine: Engine,
        stage: Stage,
        forgery: Forgery,
    },
    /// A comparison that speaks for `stub`.
    Comparison(Forgery),
    Settings(&'static str),
    Run {
        named: Option<Engine>,
        stage: Stage,
        destination: DestinationKind,
    },
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Engine {
    Fake,
    Stub,
    Nobody,
}

impl Engine {
    pub(super) fn name(self) -> EngineName {
        let name = match self {
            Self::Fake => "fake",
            Self::Stub => "stub",
            Self::Nobody => "nobody",
        };
        name.parse().unwrap()
    }
}

/// How far a record is from one that herma made.
#[derive(Clone, Copy, Debug)]
pub(super) enum Forgery {
    /// It is one.
    Genuine,
    /// Another key signed it.
    OtherKey,
    /// It claims that a default was switched.
    Switched,
}

/// Settings that a person who wants another default could write.
const SETTINGS: [&str; 4] = [
    "",
    "separation_of_duties: true\n",
    "default_engine: stub\n",
    "engine: stub\nruntime_default_activation: true\n",
];

fn engine() -> impl Strategy<Value = Engine> {
    prop_oneof![2 => Just(Engine::Stub), 1 => Just(Engine::Fake), 1 => Just(Engine::Nobody)]
}

fn forgery() -> impl Strategy<Value = Forgery> {
    prop_oneof![2 => Just(Forgery::Genuine), 1 => Just(Forgery::OtherKey), 1 => Just(Forgery::Switched)]
}

pub(super) fn event() -> impl Strategy<Value = Event> {
    let stage = || prop::sample::select(Stage::ALL.to_vec());
    let run_stage = prop_oneof![3 => Just(Stage::Gated), 1 => stage()];
    let destination = prop_oneof![9 => Just(DestinationKind::Host), 1 => Just(DestinationKind::Sandbox)];
    prop_oneof![
        2 => Just(Event::Enable),
        1 => Just(Event::Disable),
        2 => (any::<bool>(), any::<bool>()).prop_map(|(sign, license)| Event::Admit { sign, license }),
        1 => Just(Event::Revoke),
        2 => (prop::option::of(engine()), stage()).prop_map(|(named, stage)| Event::Ask { named, stage }),
        2 => any::<bool>().prop_map(|yes| Event::Rule(if yes { Answer::Granted } else { Answer::Denied })),
        4 => (engine(), stage(), forgery()).prop_map(|(engine, stage, forgery)| Event::Proof { engine, stage, forgery }),
        2 => forgery().prop_map(Event::Comparison),
        1 => prop::sample::select(SETTINGS.to_vec()).prop_map(Event::Settings),
        6 => (prop::option::of(engine()), run_stage, destination)
            .prop_map(|(named, stage, destination)| Event::Run { named, stage, destination }),
    ]
}

pub(super) struct World {
    pub(super) temp: TempDir,
    approver: Approver,
    pub(super) asked: Option<Approval>,
    made: u8,
}

impl World {
    pub(super) fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        HomePlace::named(temp.path().join("home")).prepare().unwrap();
        for program in ["herma", "home/programs/herma-stub"] {
            let file = temp.path().join(program);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, "#!/bin/sh\nexit 0\n").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let installation = open(&temp).unwrap();
        let approvers = installation.approvers();
        let (_, token) = approvers.init(&"ada".parse().unwrap(), Custody::Token, None, None, now()).unwrap();
        let approver = approvers.from_token(token.unwrap().expose()).unwrap();
        Self { temp, approver, asked: None, made: 0 }
    }

    pub(super) fn home(&self) -> PathBuf {
        self.temp.path().join("home")
    }

    /// Every event is a command of its own: it opens the installation anew.
    pub(super) fn meet(&mut self, event: &Event) -> Option<(EngineName, Finished)> {
        let Some(installation) = open(&self.temp) else {
            // Settings that are none are refused by every command; the operator takes them away.
            fs::remove_file(self.home().join("settings.yaml")).unwrap();
            return None;
        };
        match event {
            Event::Enable => {
                EnabledEngines::of(&installation.home).enable(&Engine::Stub.name(), now()).unwrap();
            }
            Event::Disable => EnabledEngines::of(&installation.home).disable(&Engine::Stub.name()).unwrap(),
            Event::Admit { sign, license } => self.admit(&installation, *sign, *license),
            Event::Revoke => {
                let id = AdmissionId::Engine(Engine::Stub.name());
                let _ = installation.admissions().revoke(&id, &text("no more").unwrap(), now());
            }
            Event::Ask { named, stage } => {
                let order = order(*named, *stage, DestinationKind::Host);
                let asker = Asker::Approver(&self.approver);
                self.asked = ask(&installation, &order, "it is time", &asker).ok().or(self.asked.take());
            }
            Event::Rule(answer) => {
                if let Some(asked) = &self.asked {
                    let _ = rule(&installation, asked, *answer, "I read it", &self.approver);
                }
            }
            Event::Proof { engine, stage, forgery } => prove(&installation, *engine, *stage, *forgery),
            Event::Comparison(forgery) => self.compare(&installation, *forgery),
            Event::Settings(text) => fs::write(self.home().join("settings.yaml"), text).unwrap(),
            Event::Run { named, stage, destination } => {
                let order = order(*named, *stage, *destination);
                let expected = named.map_or_else(EngineName::fake, Engine::name);
                return run(&installation, &order, &Unwatched).ok().map(|finished| (expected, finished));
            }
        }
        None
    }

    fn admit(&self, installation: &Installation, sign: bool, license: bool) {
        let program = self.home().join("programs/herma-stub");
        let draft = AdmissionDraft::Engine(EngineDraft {
            program: text(program.to_str().unwrap()),
            digest: Stub::new(Engine::Stub.name(), Some(program.clone())).digest().ok(),
            source: text("stub"),
            pin: text("0.1.0"),
            retrieval: text("cargo build"),
            license: text("Apache-2.0"),
            license_resolved: Some(license),
            identity: text("stub 0.1.0"),
            review_trigger: Some(ReviewTrigger::DigestChange),
            ..EngineDraft::new(Engine::Stub.name())
        });
        let admissions = installation.admissions();
        // A signed admission stays as it is until it is revoked.
        let written = admissions.write_draft(&draft).is_ok();
        if sign && written {
            let read = admissions.read(&draft.id()).unwrap();
            admissions.sign(&read, &self.approver, now()).unwrap();
        }
    }

    fn compare(&mut self, installation: &Installation, forgery: Forgery) {
        self.made += 1;
        let comparison = a_comparison(ComparisonId::new(now(), [self.made; 10]));
        let comparisons = Comparisons::of(installation);
        let [file, _] = comparisons.files(comparison.id);
        comparisons.keep(comparison.clone()).unwrap();
        forge(&file, comparison, forgery);
    }
}

/// Leaves a proof with nothing behind it: herma would never sign one.
fn prove(installation: &Installation, engine: Engine, stage: Stage, forgery: Forgery) {
    let digest = installation.engines().get(&engine.name()).and_then(|engine| engine.digest().ok());
    let proof = Proof {
        engine_digest: digest,
        candidate: (stage == Stage::CandidateDefault).then(|| Candidate {
            eligible: true,
            comparison: "the best".to_owned(),
            repetitions: 1_000,
            oldest_evidence: now(),
            accepted: Vec::new(),
            blocked_lanes: Vec::new(),
        }),
        ..a_proof(&engine.name(), stage)
    };
    let proofs = installation.proofs();
    let file = proofs.file(&proof.engine, stage);
    proofs.keep(proof.clone()).unwrap();
    forge(&file, proof, forgery);
}

/// Puts something else in the place of a genuine record.
fn forge<T: Signable>(file: &Path, record: T, forgery: Forgery) {
    match forgery {
        Forgery::Genuine => {}
        Forgery::OtherKey => {
            let other = ApproverKey::generate().unwrap();
            fs::write(file, serde_json::to_vec(&signed::sign(record, &other).unwrap()).unwrap()).unwrap();
        }
        Forgery::Switched => {
            let mut value: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
            value["record"]["runtime_default_activation"] = true.into();
            fs::write(file, serde_json::to_vec(&value).unwrap()).unwrap();
        }
    }
}

/// A row that claims to hold, without a run.
fn held(case: &str) -> ProofRow {
    ProofRow {
        case: case.to_owned(),
        expected_status: Status::Pass,
        expected_blocker: None,
        held: true,
        detail: String::new(),
        run_id: None,
    }
}

pub(super) fn a_proof(engine: &EngineName, stage: Stage) -> Proof {
    Proof {
        schema: ProofSchema::V1,
        status: Status::Pass,
        stage,
        engine: engine.clone(),
        engine_digest: None,
        herma_version: VERSION.to_owned(),
        proven_at: now(),
        prior: None,
        rows: case_names(stage).into_iter().map(held).collect(),
        not_applicable: Vec::new(),
        baseline: None,
        comparison: Vec::new(),
        coverage: Vec::new(),
        bundles: Vec::new(),
        candidate: None,
        reasons: Vec::new(),
        runtime_default_activation: NeverActivated,
    }
}

pub(super) fn a_comparison(id: ComparisonId) -> Comparison {
    Comparison {
        schema: ComparisonSchema::V1,
        id,
        herma_version: VERSION.to_owned(),
        made_at: now(),
        contracts: Vec::new(),
        repetitions: 20,
        lanes: Vec::new(),
        table: Vec::new(),
        runtime_default_activation: NeverActivated,
    }
}

fn order(named: Option<Engine>, stage: Stage, destination: DestinationKind) -> Order {
    let text = herma_fixtures::find("string-slugify").unwrap().contract;
    let mut contract = Contract::parse(text.as_bytes()).unwrap();
    contract.terms.stage = stage;
    contract.terms.destination = Some(destination);
    let terms = serde_json::to_string_pretty(&contract.terms).unwrap();
    let contract_text = format!("---\n{terms}\n---\n{}", contract.brief);
    Order {
        contract: Contract::parse(contract_text.as_bytes()).unwrap(),
        contract_text,
        contract_dir: "/".into(),
        engine: named.map_or_else(EngineName::fake, Engine::name),
        destination: None,
        script: None,
        keep_workspace: false,
        egress: herma_core::egress::EgressMode::Strict,
        resumes: None,
        fault: None,
    }
}

#[allow(clippy::disallowed_methods, reason = "git is found where the tests find theirs")]
pub(super) fn open(temp: &TempDir) -> Option<Installation> {
    let settings = Settings {
        home: Some(HomePlace::named(temp.path().join("home"))),
        herma: temp.path().join("herma"),
        user_home: temp.path().to_owned(),
        search_path: std::env::var_os("PATH").unwrap(),
        secrets: herma_harness::SecretSource::default(),
        docker_host: None,
        client_variables: std::collections::BTreeMap::new(),
        store: herma_harness::StoreVariables::default(),
    };
    Installation::open(settings, Arc::new(SystemClock)).ok()
}

pub(super) fn now() -> Timestamp {
    SystemClock.now()
}

fn text<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}
