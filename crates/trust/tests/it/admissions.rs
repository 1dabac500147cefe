//! Nothing is admitted that an approver did not sign, byte for byte, and that has not changed since.

mod attacks;
mod statuses;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use herma_core::admission::AdmissionId;
use herma_core::approver::Custody;
use herma_core::contract::ModelChoice;
use herma_core::report::Admission;
use herma_core::{Digest, Timestamp};
use herma_evidence::InstallationKey;
use herma_trust::{
    AdmissionContext, AdmissionError, AdmissionFile, AdmissionFinding, Admissions, Approver, Approvers,
    SYSTEM_TEMP_DIRS, TrustLog,
};

const ENGINE: &str = "\
kind: engine
engine: stub
program: /opt/stub/herma-stub
source: https://example.org/owner/stub
pin: 0.1.0
retrieval: cargo install herma-stub
license: Apache-2.0
license_resolved: true
digest: sha256:0000000000000000000000000000000000000000000000000000000000000000
identity: stub 0.1.0
review_trigger: { runs: 3 }
expires_at: 2027-01-31T00:00:00Z
";

const MODEL: &str = "\
kind: model
provider: openai
model: gpt-5
runtime_provider: bridge
credential_source: environment
network: public
review_trigger: { date: 2027-01-31 }
expires_at:
";

const TARGET: &str = "\
kind: target
name: my-tool
path: /srv/secret-place/my-tool
owner: Ada Lovelace
ownership_evidence: she made the first commit
risk_class: low_risk_noncritical
rationale: nobody depends on it
allowed_paths: [\"src/**\"]
forbidden_paths: []
forbidden_actions: []
review_trigger: { herma_version: \"0.1\" }
expires_at: 2027-01-31T00:00:00Z
operator_outcome_required: true
";

/// The name of each record's own file, without its ending.
const FILES: [(&str, &str); 3] =
    [("engine/stub", ENGINE), ("model/openai+gpt-5", MODEL), ("target/my-tool", TARGET)];

struct World {
    temp: tempfile::TempDir,
    admissions: Admissions,
    approvers: Approvers,
    ada: Approver,
    now: Timestamp,
    version: &'static str,
    runs: Option<u64>,
    digest: Option<Digest>,
}

impl World {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let key = Arc::new(InstallationKey::load_or_create(&temp.path().join("keys")).unwrap());
        let trust_log = TrustLog::open(temp.path(), key.public(), Some(key));
        let approvers = Approvers::open(trust_log.clone());
        let now = at("2026-06-01T00:00:00Z");
        let (_, token) = approvers.init(&"ada".parse().unwrap(), Custody::Token, None, None, now).unwrap();
        let ada = approvers.from_token(token.unwrap().expose()).unwrap();
        Self {
            admissions: Admissions::open(temp.path().join("admissions"), trust_log),
            approvers,
            ada,
            now,
            version: "0.1.0",
            runs: Some(1),
            digest: Some(Digest::from_bytes([0; 32])),
            temp,
        }
    }

    /// With every record signed.
    fn signed() -> Self {
        let world = Self::new();
        for text in [ENGINE, MODEL, TARGET] {
            world.sign(text);
        }
        world
    }

    fn file(&self, name: &str) -> PathBuf {
        self.temp.path().join("admissions").join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let file = self.file(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    /// Signs a draft in another directory.
    fn sign(&self, text: &str) {
        self.try_to_sign(text).unwrap();
    }

    fn try_to_sign(&self, text: &str) -> Result<(), AdmissionError> {
        let file = self.temp.path().join("draft.yaml");
        fs::write(&file, text).unwrap();
        let read = AdmissionFile::read(&file)?;
        self.admissions.sign(&read, &self.ada, self.now).map(|_| ())
    }

    fn context(&self) -> AdmissionContext<'_> {
        AdmissionContext {
            approvers: self.approvers.clone(),
            now: self.now,
            herma_version: self.version,
            temp_dirs: SYSTEM_TEMP_DIRS.map(PathBuf::from).to_vec(),
            home: self.temp.path().join("home"),
            runs_since: Box::new(|_, _| self.runs),
        }
    }

    fn engine(&self) -> Admission {
        let found = self.admissions.find_engine(&"stub".parse().unwrap(), self.digest, &self.context());
        sound(&found)
    }

    fn model(&self) -> Admission {
        sound(&self.admissions.find_model(&choice("gpt-5"), &self.context()))
    }

    fn target(&self) -> Admission {
        sound(&self.admissions.find_target("my-tool", &self.context()))
    }

    fn all(&self) -> [Admission; 3] {
        [self.engine(), self.model(), self.target()]
    }
}

/// There is a record where it is admitted and only there, and no part of the target's path.
fn sound<T>(found: &AdmissionFinding<T>) -> Admission {
    assert_eq!(found.record.is_some(), found.status == Admission::Admitted, "{}", found.detail);
    assert_eq!(found.blocker.is_none(), found.status == Admission::Admitted, "{}", found.detail);
    assert!(!found.detail.contains("secret-place"), "{}", found.detail);
    found.status
}

fn at(time: &str) -> Timestamp {
    time.parse().unwrap()
}

fn choice(model: &str) -> ModelChoice {
    ModelChoice {
        provider: "openai".to_owned(),
        model: model.to_owned(),
        fallback: Vec::new(),
        auxiliary: Vec::new(),
    }
}

fn id(name: &str) -> AdmissionId {
    let (kind, stem) = name.split_once('/').unwrap();
    AdmissionId::from_file_stem(kind.parse().unwrap(), stem).unwrap()
}
