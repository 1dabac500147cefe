//! A bundle as somebody makes it who has a signing key of their own: every digest is right, whatever the files say.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use herma_core::report::Artifact;
use herma_core::{Contract, Digest, Event, Report};
use herma_evidence::envelope::{Envelope, Predicate, Statement};
use herma_evidence::{InstallationKey, layout, render_markdown};
use tempfile::TempDir;

/// The files of a bundle, the report among them as a value.
pub(crate) struct Forge {
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    pub(crate) report: Report,
    /// Whether `report.md` is made anew from the report.
    pub(crate) renders: bool,
}

/// A bundle on disk, and the public key that it is to be verified with.
pub(crate) struct Forged {
    temp: TempDir,
    pub(crate) bytes: usize,
}

impl Forge {
    /// The files of the bundle in `dir`.
    pub(crate) fn of(dir: &Path) -> Self {
        let read = |name: &str| fs::read(dir.join(name)).unwrap();
        let report = herma_evidence::report::parse(&read(layout::REPORT)).unwrap();
        let files = report.artifacts.keys().map(|name| (name.clone(), read(name))).collect();
        Self { files, report, renders: true }
    }

    pub(crate) fn text(&self, name: &str) -> String {
        String::from_utf8(self.files[name].clone()).unwrap()
    }

    pub(crate) fn put(&mut self, name: &str, bytes: impl Into<Vec<u8>>) {
        self.files.insert(name.to_owned(), bytes.into());
    }

    /// Changes the events, and chains them again.
    pub(crate) fn events(&mut self, change: impl FnOnce(&mut Vec<Event>)) {
        let text = self.text(layout::EVENTS);
        let mut events: Vec<Event> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        change(&mut events);
        let (mut log, mut prev) = (Vec::new(), Digest::of(b""));
        for (seq, mut event) in events.into_iter().enumerate() {
            (event.seq, event.prev) = (seq as u64, prev);
            let line = serde_json_canonicalizer::to_vec(&event).unwrap();
            prev = Digest::of(&line);
            log.extend_from_slice(&line);
            log.push(b'\n');
        }
        self.put(layout::EVENTS, log);
    }

    /// Changes a file of JSON.
    pub(crate) fn json(&mut self, name: &str, change: impl FnOnce(&mut serde_json::Value)) {
        let mut value: serde_json::Value = serde_json::from_slice(&self.files[name]).unwrap();
        change(&mut value);
        let mut bytes = serde_json::to_vec_pretty(&value).unwrap();
        bytes.push(b'\n');
        self.put(name, bytes);
    }

    /// Makes the events tell of as many changes as the report lists.
    pub(crate) fn count_changes(&mut self) {
        let changed = self.report.changed_files.len();
        self.events(|events| {
            for event in events.iter_mut().filter(|event| event.data.contains_key("changed")) {
                event.data.insert("changed".to_owned(), changed.into());
            }
        });
    }

    /// Puts another contract in place, and names it wherever the old one was named.
    pub(crate) fn contract(&mut self, text: &str) {
        let old = self.report.contract_digest.to_string();
        let digest = Contract::parse(text.as_bytes()).ok().and_then(|contract| contract.digest().ok());
        self.put(layout::CONTRACT, text);
        let Some(digest) = digest else { return };
        self.report.contract_digest = digest;
        let decision = self.text(layout::DECISION).replace(&old, &digest.to_string());
        self.put(layout::DECISION, decision);
        self.events(|events| {
            let created = events.iter_mut().find(|event| event.data.contains_key("contract_digest"));
            created.unwrap().data.insert("contract_digest".to_owned(), digest.to_string().into());
        });
    }

    /// Writes and signs the bundle.
    pub(crate) fn sign(mut self) -> Forged {
        let temp = TempDir::new().unwrap();
        let dir = temp.path().join("bundle");
        fs::create_dir_all(dir.join(layout::ENGINE_DIR)).unwrap();
        let listed = std::mem::take(&mut self.report.artifacts);
        let artifact = |name: &str, bytes: &[u8]| Artifact {
            sha256: Digest::of(bytes),
            size: bytes.len() as u64,
            written_at: listed.get(name).map_or(self.report.run_started_at, |artifact| artifact.written_at),
        };
        let mut artifacts: BTreeMap<String, Artifact> =
            self.files.iter().map(|(name, bytes)| (name.clone(), artifact(name, bytes))).collect();
        if self.renders {
            artifacts.remove(layout::REPORT_MD);
            self.report.artifacts = artifacts.clone();
            let text = render_markdown(&self.report).into_bytes();
            artifacts.insert(layout::REPORT_MD.to_owned(), artifact(layout::REPORT_MD, &text));
            self.files.insert(layout::REPORT_MD.to_owned(), text);
        }
        self.report.artifacts = artifacts;
        let mut report = serde_json::to_vec_pretty(&self.report).unwrap();
        report.push(b'\n');
        self.files.insert(layout::REPORT.to_owned(), report);
        let key = InstallationKey::load_or_create(&temp.path().join("keys")).unwrap();
        fs::write(temp.path().join("key.pub"), key.public().to_pem().unwrap()).unwrap();
        let digests = self.files.iter().map(|(name, bytes)| (name.clone(), Digest::of(bytes))).collect();
        let Report { run_id, contract_digest, status, herma_version, trust_head, .. } = self.report;
        let predicate = Predicate { run_id, contract_digest, status, herma_version, trust_head };
        let envelope = Envelope::seal(&Statement::new(digests, predicate), |b| (key.key_id(), key.sign(b)));
        self.files.insert(layout::ATTESTATION.to_owned(), envelope.unwrap().to_bytes().unwrap());
        for (name, bytes) in &self.files {
            fs::write(dir.join(name), bytes).unwrap();
        }
        Forged { temp, bytes: self.files.values().map(Vec::len).sum() }
    }
}

impl Forged {
    pub(crate) fn dir(&self) -> PathBuf {
        self.temp.path().join("bundle")
    }

    pub(crate) fn key(&self) -> PathBuf {
        self.temp.path().join("key.pub")
    }
}
