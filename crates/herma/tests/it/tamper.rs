//! Whatever is changed in a real bundle is found, and the check that broke is named.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use herma_core::Digest;
use herma_evidence::envelope::{Envelope, Statement};
use herma_evidence::verify::{CheckList, CheckName as C};
use herma_evidence::{InstallationKey, PublicKey, Trust, layout};
use herma_trust::verify_bundle;
use proptest::prelude::*;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

use crate::kit::{Finished, Herma, run_tool};

/// How many bytes are flipped in each file.
const FLIPS: u32 = 200;

/// A bundle of a passed demo, copied away from its home, and the key that signed it.
struct Sample {
    herma: Herma,
    run: Finished,
    copy: TempDir,
    trust: Trust,
}

impl Sample {
    fn new() -> Self {
        let herma = Herma::new();
        let run = herma.demo(&["--destination", "sandbox"]);
        let pem = fs::read_to_string(herma.home().join("keys/installation.pub")).unwrap();
        let trust = Trust { keys: vec![PublicKey::from_pem(&pem).unwrap()], approvers: Vec::new() };
        let sample = Self { herma, run, copy: TempDir::new().unwrap(), trust };
        sample.restore();
        assert!(sample.check().ok(), "{:#?}", sample.check());
        sample
    }

    fn dir(&self) -> PathBuf {
        self.copy.path().join("bundle")
    }

    /// The files of the bundle, by name.
    fn files(&self) -> Vec<String> {
        let mut files = self.run.report.artifacts.keys().cloned().collect::<Vec<_>>();
        files.extend([layout::REPORT, layout::ATTESTATION].map(str::to_owned));
        files
    }

    /// Makes the copy what the bundle is.
    fn restore(&self) {
        let _ = fs::remove_dir_all(self.dir());
        fs::create_dir_all(self.dir().join(layout::ENGINE_DIR)).unwrap();
        for name in self.files() {
            fs::copy(self.run.bundle.dir.join(&name), self.dir().join(&name)).unwrap();
        }
    }

    fn check(&self) -> CheckList {
        verify_bundle(&self.dir(), &self.trust, None, None)
    }

    /// The checks that the copy breaks; both in this process and through the binary, which must agree.
    fn broken(&self) -> Vec<C> {
        let broken: Vec<C> = self.check().failed().map(|check| check.name).collect();
        let key = self.herma.home().join("keys/installation.pub");
        let dir = self.dir();
        let args = ["verify".as_ref(), dir.as_os_str(), "--key".as_ref(), key.as_os_str()];
        let ended = self.herma.run(&args);
        assert_eq!(ended.code, Some(i32::from(!broken.is_empty())), "{broken:?}: {ended:#?}");
        for name in &broken {
            let named = ended
                .stdout
                .lines()
                .any(|line| line.contains("BROKEN") && line.split_whitespace().next() == Some(name.as_str()));
            assert!(named, "{} is not named: {ended:#?}", name.as_str());
        }
        broken
    }
}

#[test]
fn a_flipped_byte_anywhere_is_found() {
    let sample = Sample::new();
    for name in sample.files() {
        let path = sample.dir().join(&name);
        let sound = fs::read(&path).unwrap();
        let expected: &[C] =
            if name == layout::ATTESTATION { &[C::Envelope, C::Signature] } else { &[C::Subjects] };
        let flips = (any::<prop::sample::Index>(), 1..=255u8);
        let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
            cases: if sound.is_empty() { 0 } else { FLIPS },
            failure_persistence: None,
            ..ProptestConfig::default()
        });
        let outcome = runner.run(&flips, |(at, bits)| {
            let mut broken = sound.clone();
            broken[at.index(sound.len())] ^= bits;
            fs::write(&path, &broken).unwrap();
            let list = sample.check();
            let found = list.failed().any(|check| expected.contains(&check.name) && !check.detail.is_empty());
            prop_assert!(!list.ok() && found, "{list:#?}");
            Ok(())
        });
        fs::write(&path, &sound).unwrap();
        outcome.unwrap_or_else(|failure| panic!("{name}: {failure}"));
    }
    assert!(sample.check().ok());
}

#[test]
fn the_binary_finds_a_flipped_byte_in_every_file() {
    let sample = Sample::new();
    for name in sample.files() {
        let path = sample.dir().join(&name);
        let mut bytes = fs::read(&path).unwrap();
        let Some(middle) = bytes.len().checked_sub(1).map(|last| last / 2) else { continue };
        bytes[middle] ^= 1;
        fs::write(&path, &bytes).unwrap();
        assert_ne!(sample.broken(), [], "{name}");
        sample.restore();
    }
}

#[test]
fn an_irregular_or_large_file_is_neither_waited_for_nor_read() {
    let sample = Sample::new();
    for name in [layout::CONTRACT, layout::REPORT, layout::ATTESTATION, layout::TEST_LOG] {
        let path = sample.dir().join(name);
        let traps: [(&str, &dyn Fn()); 4] = [
            ("a FIFO", &|| mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap()),
            ("a link", &|| symlink(sample.run.bundle.dir.join(name), &path).unwrap()),
            ("a link to what never ends", &|| symlink("/dev/zero", &path).unwrap()),
            ("a hole without end", &|| File::create(&path).unwrap().set_len(1 << 42).unwrap()),
        ];
        for (trap, set) in traps {
            fs::remove_file(&path).unwrap();
            set();
            assert_eq!(sample.broken()[0], C::Files, "{name} is {trap}");
            sample.restore();
        }
    }
}

#[test]
fn no_text_of_a_bundle_makes_a_line_of_its_own() {
    let sample = Sample::new();
    let forged = "The bundle holds.";
    let report = serde_json::json!({ format!("x`\n{forged}\n"): 1 });
    fs::write(sample.dir().join(layout::REPORT), report.to_string()).unwrap();
    let detail = sample.check().failed().map(|check| check.detail.clone()).collect::<String>();
    assert!(detail.contains(&format!("\n{forged}\n")), "the report's text is not repeated: {detail}");
    let ended = sample.herma.run(&["verify".as_ref(), sample.dir().as_os_str()]);
    assert_eq!(ended.code, Some(1));
    assert!(!ended.stdout.lines().any(|line| line == forged), "{ended:#?}");
}

#[test]
fn a_byte_more_or_less_is_found_in_every_file() {
    let sample = Sample::new();
    for name in sample.files() {
        let path = sample.dir().join(&name);
        let sound = fs::read(&path).unwrap();
        fs::write(&path, [&sound[..], b"\n"].concat()).unwrap();
        assert!(!sample.check().ok(), "{name} with one byte more");
        if let Some((_, shorter)) = sound.split_last() {
            fs::write(&path, shorter).unwrap();
            assert!(!sample.check().ok(), "{name} with one byte less");
        }
        fs::write(&path, &sound).unwrap();
    }
}

#[test]
fn a_missing_file_is_found_whichever_it_is() {
    let sample = Sample::new();
    for name in sample.files() {
        fs::remove_file(sample.dir().join(&name)).unwrap();
        assert!(sample.broken().contains(&C::Files), "{name}");
        sample.restore();
    }
}

#[test]
fn an_extra_file_directory_or_link_is_found() {
    let sample = Sample::new();
    for name in ["extra.txt", "engine/extra.log", ".hidden", "model-calls.jsonl"] {
        fs::write(sample.dir().join(name), "").unwrap();
        assert!(sample.broken().contains(&C::Files), "{name}");
        fs::remove_file(sample.dir().join(name)).unwrap();
    }
    fs::write(sample.dir().join(layout::OUTCOME), "").unwrap();
    assert_eq!(sample.broken(), [C::Outcome], "the run asks for none, and an empty file is none");
    sample.restore();
    fs::create_dir(sample.dir().join("empty")).unwrap();
    assert!(sample.broken().contains(&C::Files));
    sample.restore();
    let report = sample.dir().join(layout::REPORT);
    let elsewhere = sample.copy.path().join("report.json");
    fs::rename(&report, &elsewhere).unwrap();
    symlink(&elsewhere, &report).unwrap();
    assert!(sample.broken().contains(&C::Files), "a link to the same bytes");
}

#[test]
fn two_events_that_change_places_are_found() {
    let sample = Sample::new();
    let path = sample.dir().join(layout::EVENTS);
    let text = fs::read_to_string(&path).unwrap();
    let count = text.lines().count();
    for at in 0..count - 1 {
        let mut lines: Vec<&str> = text.lines().collect();
        lines.swap(at, at + 1);
        fs::write(&path, lines.join("\n") + "\n").unwrap();
        let list = sample.check();
        let broken: Vec<C> = list.failed().map(|check| check.name).collect();
        assert!(broken.contains(&C::Chain) && broken.contains(&C::Subjects), "line {at}: {list:#?}");
    }
    assert_ne!(sample.broken(), []);
}

/// Signs what is in the directory now, as somebody with another key would.
fn sign_anew(dir: &Path, key: &InstallationKey) {
    let attestation = dir.join(layout::ATTESTATION);
    let envelope = Envelope::parse(&fs::read(&attestation).unwrap()).unwrap();
    let statement = envelope.statement().unwrap();
    let digests: BTreeMap<String, Digest> = statement
        .subjects()
        .map(|(name, _)| (name.to_owned(), Digest::of(&fs::read(dir.join(name)).unwrap())))
        .collect();
    let statement = Statement::new(digests, statement.predicate.clone());
    let envelope = Envelope::seal(&statement, |bytes| (key.key_id(), key.sign(bytes))).unwrap();
    fs::write(attestation, envelope.to_bytes().unwrap()).unwrap();
}

#[test]
fn a_signature_of_another_key_is_found() {
    let sample = Sample::new();
    let other = InstallationKey::load_or_create(&sample.copy.path().join("other")).unwrap();
    sign_anew(&sample.dir(), &other);
    assert_eq!(sample.broken(), [C::Signature]);
    // Under the name of the right key it is no better.
    sample.restore();
    let attestation = sample.dir().join(layout::ATTESTATION);
    let text = fs::read_to_string(&attestation).unwrap();
    sign_anew(&sample.dir(), &other);
    let forged = fs::read_to_string(&attestation).unwrap();
    let right = sample.trust.keys[0].key_id().to_string();
    assert!(text.contains(&right));
    fs::write(&attestation, forged.replace(&other.key_id().to_string(), &right)).unwrap();
    assert_eq!(sample.broken(), [C::Signature]);
}

#[test]
fn a_report_that_was_replaced_and_hashed_again_is_found_without_the_key() {
    let sample = Sample::new();
    let failed = sample.herma.finished(&["demo", "--script", "breaks-test"]);
    let report = fs::read_to_string(sample.dir().join(layout::REPORT)).unwrap();
    // A fail dressed up as a pass: every digest is right, only the signature cannot be.
    let other = InstallationKey::load_or_create(&sample.copy.path().join("other")).unwrap();
    let longer = report.replace("\"engine_version\": \"", "\"engine_version\": \"9");
    assert_ne!(longer, report);
    fs::write(sample.dir().join(layout::REPORT), longer).unwrap();
    sign_anew(&sample.dir(), &other);
    assert!(sample.broken().contains(&C::Signature));
    sample.restore();
    fs::copy(failed.bundle.dir.join(layout::REPORT), sample.dir().join(layout::REPORT)).unwrap();
    assert!(sample.broken().contains(&C::Subjects));
}

#[test]
fn the_bundle_of_one_run_does_not_pass_with_the_attestation_of_another() {
    let sample = Sample::new();
    let other = sample.herma.demo(&[]);
    fs::copy(other.bundle.dir.join(layout::ATTESTATION), sample.dir().join(layout::ATTESTATION)).unwrap();
    assert!(sample.broken().contains(&C::Subjects));
}

#[test]
fn a_machine_that_has_never_seen_the_store_verifies_with_the_public_key() {
    let sample = Sample::new();
    let elsewhere = Herma::new();
    let key = elsewhere.at("signer.pub");
    fs::copy(sample.herma.home().join("keys/installation.pub"), &key).unwrap();
    let dir = sample.dir();
    let args = ["verify".as_ref(), dir.as_os_str(), "--key".as_ref(), key.as_os_str()];
    let ended = elsewhere.run(&args);
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    assert!(!elsewhere.home().exists(), "verifying made a home");
}

#[test]
fn a_key_and_a_bundle_are_all_that_a_stranger_needs() {
    let sample = Sample::new();
    let key = sample.herma.home().join("keys/installation.pub");
    let (mut stranger, _) = Herma::of_normal_user();
    let bundle = stranger.at("bundle");
    run_tool("cp", &["-r".as_ref(), sample.dir().as_os_str(), bundle.as_os_str()], &[]);
    run_tool("chmod", &["-R".as_ref(), "a+rX".as_ref(), bundle.as_os_str()], &[]);
    fs::write(stranger.at("key.pub"), fs::read(key).unwrap()).unwrap();
    let nobody = ["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups", "--"];
    let without = ["env", "-u", "HOME", "-u", "HERMA_HOME", "-u", "XDG_STATE_HOME"];
    stranger.wrap(&[&nobody[..], &without[..]].concat());
    let ended = stranger.run(&["verify", "bundle", "--key", "key.pub"]);
    assert_eq!(ended.code, Some(0), "{ended:#?}");
}

#[test]
fn an_unknown_signer_is_a_failure() {
    let sample = Sample::new();
    let dir = sample.dir();
    // No key at all.
    let elsewhere = Herma::new();
    let ended = elsewhere.run(&["verify".as_ref(), dir.as_os_str()]);
    assert_eq!(ended.code, Some(1), "{ended:#?}");
    assert!(ended.stdout.contains("signature      BROKEN  the signer sha256:"), "{ended:#?}");
    assert!(ended.stderr.contains("--key"), "{ended:#?}");
    // The key of an installation that did not sign it.
    elsewhere.demo(&["--destination", "host"]);
    let ended = elsewhere.run(&["verify".as_ref(), dir.as_os_str()]);
    assert_eq!(ended.code, Some(1), "{ended:#?}");
    // The same key, named.
    let key = elsewhere.home().join("keys/installation.pub");
    let ended = elsewhere.run(&["verify".as_ref(), dir.as_os_str(), "--key".as_ref(), key.as_os_str()]);
    assert_eq!(ended.code, Some(1), "{ended:#?}");
    assert!(ended.stdout.contains("signature      BROKEN"), "{ended:#?}");
}

#[test]
fn a_bundle_is_found_by_a_relative_path_too() {
    let herma = Herma::new();
    let run = herma.demo(&[]);
    let relative = run.bundle.dir.strip_prefix(herma.at("")).unwrap();
    let ended = herma.run(&["verify".as_ref(), relative.as_os_str()]);
    assert_eq!(ended.code, Some(0), "{ended:#?}");
}

#[test]
fn a_directory_without_a_bundle_is_bad_input() {
    let herma = Herma::new();
    let file = herma.file("file", "");
    let ended = herma.run(&["verify".as_ref(), file.as_os_str()]);
    assert_eq!(ended.code, Some(2), "{ended:#?}");
    let empty = herma.at("contracts");
    let ended = herma.run(&["verify".as_ref(), empty.as_os_str()]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:#?}");
    assert!(ended.stderr.contains("is not a bundle's directory"), "{ended:#?}");
    let run = herma.demo(&["--destination", "host"]);
    let above = run.bundle.dir.parent().unwrap();
    let ended = herma.run(&["verify".as_ref(), above.as_os_str()]);
    assert_eq!(ended.code, Some(2), "{ended:#?}");
    assert!(ended.stderr.contains(&format!("did you mean {}?", run.bundle.dir.display())), "{ended:#?}");
}
