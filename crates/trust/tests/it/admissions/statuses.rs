//! Each status of each kind, and each rule for targets.

use std::fs;
use std::path::PathBuf;

use herma_core::admission::{AdmissionDraft, AdmissionKind};
use herma_core::contract::ModelChoice;
use herma_core::report::Admission;
use herma_core::{Blocker, Digest};
use herma_trust::AdmissionError;

use super::{ENGINE, FILES, MODEL, TARGET, World, at, choice, id, sound};

#[test]
fn what_was_signed_and_not_changed_is_admitted() {
    let world = World::signed();
    assert_eq!(world.all(), [Admission::Admitted; 3]);
    let found = world.admissions.find_target("my-tool", &world.context());
    assert_eq!(found.digest, Some(Digest::of(TARGET.as_bytes())));
    assert_eq!(found.record.unwrap().path.to_str(), Some("/srv/secret-place/my-tool"));
    assert_eq!(fs::read_to_string(world.file("target/my-tool.yaml")).unwrap(), TARGET, "the bytes stay");
}

#[test]
fn without_a_file_the_admission_is_missing() {
    let world = World::new();
    assert_eq!(world.all(), [Admission::MissingAdmission; 3]);
    // Names that no admission can have are missing too, and lead nowhere.
    for name in ["", "../target/my-tool", "My Tool", "a/b", "."] {
        assert_eq!(sound(&world.admissions.find_target(name, &world.context())), Admission::MissingAdmission);
        assert_eq!(
            sound(&world.admissions.find_model(&choice(name), &world.context())),
            Admission::MissingAdmission
        );
    }
}

#[test]
fn a_draft_admits_nothing_complete_or_not() {
    let world = World::new();
    for (name, text) in FILES {
        world.write(&format!("{name}.yaml"), text);
    }
    assert_eq!(world.all(), [Admission::NotAdmitted; 3]);
    for (name, _) in FILES {
        let draft = AdmissionDraft::new(id(name));
        world.admissions.write_draft(&draft).unwrap();
        let error = world.admissions.sign(&world.admissions.read(&id(name)).unwrap(), &world.ada, world.now);
        assert!(matches!(error, Err(AdmissionError::Incomplete { .. })), "{error:?}");
    }
    assert_eq!(world.all(), [Admission::NotAdmitted; 3]);
}

#[test]
fn time_version_and_runs_end_an_admission() {
    let mut world = World::signed();
    world.now = at("2027-01-30T23:59:59Z");
    assert_eq!(world.all(), [Admission::Admitted; 3]);
    world.now = at("2027-01-31T00:00:00Z");
    assert_eq!(world.all(), [Admission::Expired; 3]);
    let detail = world.admissions.find_model(&choice("gpt-5"), &world.context()).detail;
    assert!(detail.ends_with("review is due: 2027-01-31 has come"), "{detail}");

    let mut world = World::signed();
    world.runs = Some(3);
    assert_eq!(world.all(), [Admission::Admitted; 3]);
    world.runs = Some(4);
    assert_eq!(world.all(), [Admission::Expired, Admission::Admitted, Admission::Admitted]);
    world.runs = None;
    assert_eq!(world.engine(), Admission::Expired, "what cannot be counted is due");

    let mut world = World::signed();
    world.version = "0.2.0";
    assert_eq!(world.all(), [Admission::Admitted, Admission::Admitted, Admission::Expired]);

    let mut world = World::signed();
    world.now = at("2026-05-31T00:00:00Z");
    assert_eq!(world.all(), [Admission::InvalidAdmission; 3], "signed in the future");
}

#[test]
fn another_program_or_none_is_a_mismatch() {
    let mut world = World::signed();
    for digest in [Some(Digest::of(b"another")), None] {
        world.digest = digest;
        assert_eq!(world.engine(), Admission::Mismatch);
        let found = world.admissions.find_engine(&"stub".parse().unwrap(), digest, &world.context());
        assert_eq!(found.blocker, Some(Blocker::EngineDigestMismatch));
    }
}

#[test]
fn a_program_in_a_temporary_directory_is_discovery_not_admission() {
    for program in ["/tmp/stub", "/var/tmp/a/stub", "/dev/shm/stub", "/run/user/0/stub"] {
        let world = World::new();
        world.sign(&ENGINE.replace("/opt/stub/herma-stub", program));
        assert_eq!(world.engine(), Admission::NotAdmitted, "{program}");
    }
    // herma's own home lasts as long as the admission in it.
    let world = World::new();
    let inside = world.temp.path().join("home/engines/stub");
    world.sign(&ENGINE.replace("/opt/stub/herma-stub", inside.to_str().unwrap()));
    assert_eq!(world.engine(), Admission::Admitted);
    // A link from a place that lasts to one that does not.
    let world = World::new();
    let (link, real) = (world.temp.path().join("link"), world.temp.path().join("real"));
    fs::write(&real, "").unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    world.sign(&ENGINE.replace("/opt/stub/herma-stub", link.to_str().unwrap()));
    let mut context = world.context();
    context.temp_dirs = vec![real.clone()];
    let found = world.admissions.find_engine(&"stub".parse().unwrap(), world.digest, &context);
    assert_eq!(sound(&found), Admission::NotAdmitted);
    context.temp_dirs = vec![PathBuf::from("/elsewhere")];
    let found = world.admissions.find_engine(&"stub".parse().unwrap(), world.digest, &context);
    assert_eq!(sound(&found), Admission::Admitted);
}

#[test]
fn every_model_that_a_contract_names_must_be_admitted() {
    let world = World::signed();
    let find = |choice: &ModelChoice| sound(&world.admissions.find_model(choice, &world.context()));
    for other in ["gpt-5-mini", "GPT-5", "gpt-5 ", "gpt"] {
        assert_eq!(find(&choice(other)), Admission::MissingAdmission, "{other}");
        let fallback = ModelChoice { fallback: vec![other.to_owned()], ..choice("gpt-5") };
        assert_eq!(find(&fallback), Admission::MissingAdmission, "{other}");
        let auxiliary = ModelChoice { auxiliary: vec![other.to_owned()], ..choice("gpt-5") };
        assert_eq!(find(&auxiliary), Admission::MissingAdmission, "{other}");
    }
    let elsewhere = ModelChoice { provider: "bridge".to_owned(), ..choice("gpt-5") };
    assert_eq!(find(&elsewhere), Admission::MissingAdmission, "the bridge is not the provider");
    world.sign(&MODEL.replace("gpt-5", "gpt-5-mini"));
    for (fallback, status) in [
        ("gpt-5-mini", Admission::Admitted),
        ("openai/gpt-5-mini", Admission::Admitted),
        ("bridge/gpt-5-mini", Admission::MissingAdmission),
        ("openai/openai/gpt-5-mini", Admission::MissingAdmission),
        ("/gpt-5-mini", Admission::MissingAdmission),
        ("openai/", Admission::MissingAdmission),
    ] {
        let choice = ModelChoice { fallback: vec![fallback.to_owned()], ..choice("gpt-5") };
        assert_eq!(find(&choice), status, "{fallback}");
    }
}

#[test]
fn each_target_rule_has_its_blocker() {
    for (from, to, blocker) in [
        ("low_risk_noncritical", "critical", Blocker::CriticalRepository),
        ("low_risk_noncritical", "moderate", Blocker::CriticalRepository),
        ("owner: Ada Lovelace", "owner:", Blocker::UnownedRepository),
        ("she made the first commit", "", Blocker::UnownedRepository),
        ("/srv/secret-place/my-tool", "", Blocker::TargetNotAdmitted),
        ("nobody depends on it", "", Blocker::TargetNotAdmitted),
        ("[\"src/**\"]", "", Blocker::TargetNotAdmitted),
        ("{ herma_version: \"0.1\" }", "", Blocker::TargetNotAdmitted),
        ("required: true", "required: false", Blocker::TargetNotAdmitted),
    ] {
        let world = World::new();
        let text = TARGET.replace(from, to);
        assert_ne!(text, TARGET);
        let signed = world.try_to_sign(&text);
        assert!(matches!(signed, Err(AdmissionError::Incomplete { .. })), "{to}: {signed:?}");
        world.write("target/my-tool.yaml", &text);
        let found = world.admissions.find_target("my-tool", &world.context());
        assert_eq!((sound(&found), found.blocker), (Admission::NotAdmitted, Some(blocker)), "{from} {to}");
    }
}

#[test]
fn programs_come_from_every_file_that_can_be_read() {
    let world = World::new();
    world.write("engine/stub.yaml", ENGINE);
    world.write("engine/other.yaml", ENGINE);
    world.write("engine/broken.yaml", "kind: engine\nprogram: [");
    world.write("engine/x%2f.yaml", ENGINE);
    let programs = world.admissions.programs();
    assert_eq!(programs.len(), 1, "{programs:?}");
    assert_eq!(programs[&"stub".parse().unwrap()], PathBuf::from("/opt/stub/herma-stub"));
    let listed = world.admissions.list().unwrap();
    assert_eq!(listed.len(), 4);
    assert!(listed.iter().all(|listed| listed.kind == AdmissionKind::Engine));
}
