//! A user who can write files and has no approver's key lets nothing in.

use std::fs;

use herma_core::admission::AdmissionDraft;
use herma_core::report::Admission;
use herma_trust::AdmissionError;

use super::{ENGINE, FILES, MODEL, TARGET, World, at, id, sound};

#[test]
fn a_draft_in_a_repository_is_never_read() {
    let world = World::new();
    for (name, text) in FILES {
        let file =
            world.temp.path().join("repository/.herma").join("admissions").join(format!("{name}.yaml"));
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    assert_eq!(world.all(), [Admission::MissingAdmission; 3]);
    assert!(world.admissions.programs().is_empty());
}

#[test]
fn a_changed_file_is_invalid_whatever_it_says_now() {
    let world = World::signed();
    for (name, text) in FILES {
        world.write(&format!("{name}.yaml"), &format!("{text}# changed\n"));
    }
    assert_eq!(world.all(), [Admission::InvalidAdmission; 3]);
    for (name, text) in FILES {
        // Without its last line: for a target that is incomplete as well.
        let shorter = text.trim_end().rsplit_once('\n').unwrap().0;
        world.write(&format!("{name}.yaml"), &format!("{shorter}\n"));
    }
    assert_eq!(world.all(), [Admission::InvalidAdmission; 3]);
    for (name, _) in FILES {
        world.write(&format!("{name}.yaml"), "kind: engine\nprogram: [");
    }
    assert_eq!(world.all(), [Admission::InvalidAdmission; 3]);
}

#[test]
fn any_flipped_bit_of_file_or_signature_is_found() {
    let world = World::signed();
    let look: [fn(&World) -> Admission; 3] = [World::engine, World::model, World::target];
    for ((name, _), look) in FILES.into_iter().zip(look) {
        for suffix in [".yaml", ".signed.json"] {
            let file = world.file(&format!("{name}{suffix}"));
            let whole = fs::read(&file).unwrap();
            for at in 0..whole.len() {
                let mut bytes = whole.clone();
                bytes[at] ^= 1 << (at % 8);
                fs::write(&file, &bytes).unwrap();
                assert_ne!(look(&world), Admission::Admitted, "{name}{suffix}, byte {at}");
            }
            fs::write(&file, &whole).unwrap();
            assert_eq!(look(&world), Admission::Admitted);
        }
    }
}

#[test]
fn a_signature_counts_for_its_own_file_only() {
    let world = World::signed();
    let other = TARGET.replace("my-tool", "other");
    world.write("target/other.yaml", &other);
    fs::copy(world.file("target/my-tool.signed.json"), world.file("target/other.signed.json")).unwrap();
    let found = world.admissions.find_target("other", &world.context());
    assert_eq!(sound(&found), Admission::InvalidAdmission);
    // The same bytes under another name are about something else.
    fs::copy(world.file("target/my-tool.yaml"), world.file("target/other.yaml")).unwrap();
    let found = world.admissions.find_target("other", &world.context());
    assert_eq!(sound(&found), Admission::Mismatch);
    for (name, model) in [("engine/stub", MODEL), ("model/openai+gpt-5", TARGET), ("target/my-tool", ENGINE)]
    {
        world.write(&format!("{name}.yaml"), model);
    }
    assert_eq!(world.all(), [Admission::Mismatch; 3]);
}

#[test]
fn only_a_trusted_approver_admits() {
    let world = World::signed();
    // An approver of another installation, with a key of its own.
    let stranger = World::signed();
    for (name, _) in FILES {
        let file = format!("{name}.signed.json");
        fs::copy(stranger.file(&file), world.file(&file)).unwrap();
    }
    assert_eq!(world.all(), [Admission::InvalidAdmission; 3]);

    let world = World::signed();
    world.approvers.revoke(&"ada".parse().unwrap(), "the key was lost", world.now).unwrap();
    assert_eq!(world.all(), [Admission::InvalidAdmission; 3]);
}

#[test]
fn what_was_revoked_stays_revoked_also_if_the_signature_is_put_back() {
    let mut world = World::signed();
    for (name, _) in FILES {
        let signature = world.file(&format!("{name}.signed.json"));
        let bytes = fs::read(&signature).unwrap();
        world.admissions.revoke(&id(name), &"it misbehaved".parse().unwrap(), world.now).unwrap();
        assert!(!signature.exists());
        let again = world.admissions.revoke(&id(name), &"again".parse().unwrap(), world.now);
        assert!(matches!(again, Err(AdmissionError::NotSigned(_))), "{again:?}");
        fs::write(&signature, bytes).unwrap();
    }
    assert_eq!(world.all(), [Admission::NotAdmitted; 3]);
    for (name, _) in FILES {
        fs::remove_file(world.file(&format!("{name}.signed.json"))).unwrap();
    }
    assert_eq!(world.all(), [Admission::NotAdmitted; 3]);
    // A signature of the same moment is not a later one.
    assert!(matches!(world.try_to_sign(TARGET), Err(AdmissionError::Clock(_))));
    world.now = at("2026-06-02T00:00:00Z");
    for (_, text) in FILES {
        world.sign(text);
    }
    assert_eq!(world.all(), [Admission::Admitted; 3]);
    for (name, _) in FILES {
        world.write(&format!("{name}.revoked.json"), "{}");
    }
    assert_eq!(world.all(), [Admission::InvalidAdmission; 3], "what cannot be read is not passed over");
}

/// Put together here, so that no scanner trips over this file.
fn secrets() -> [String; 3] {
    let body = |n: usize| "aB3dE5fG7hJ9kL2mN4pQ6rS8tU1vW0xY".chars().cycle().take(n).collect::<String>();
    [
        format!("gh{}{}", "p_", body(36)),
        format!("AK{}", "IAQ2X4Z6B3C5D7E2F4"),
        format!("client_secret is {}{}", "sk-proj-", body(48)),
    ]
}

#[test]
fn a_secret_is_refused_in_every_field_and_the_field_is_named() {
    let mut named = 0;
    for (name, text) in FILES {
        let world = World::new();
        let draft = AdmissionDraft::parse(text.as_bytes()).unwrap();
        for field in draft.fields() {
            let Some(value) = field.texts().next() else { continue };
            for secret in secrets() {
                let key = field.key;
                let in_place = text.replacen(&format!("{key}: {value}"), &format!("{key}: {secret}"), 1);
                let in_list =
                    text.replacen(&format!("{key}: [\"{value}\"]"), &format!("{key}: [\"{secret}\"]"), 1);
                let in_path = text.replacen(&format!("{key}: {value}"), &format!("{key}: /{secret}"), 1);
                for text in [in_place, in_list, in_path].into_iter().filter(|changed| changed != text) {
                    world.write(&format!("{name}.yaml"), &text);
                    let error = world.try_to_sign(&text).expect_err(&text).to_string();
                    assert!(!error.contains(&secret), "{error}");
                    assert!(error.contains(&format!("`{key}`: it holds a secret")), "{error}");
                    named += 1;
                }
            }
        }
        // A spelling that a scan of the file does not see.
        let hidden = secrets()[0].replacen('h', "\\x68", 1);
        for (key, value) in [("license", "Apache-2.0"), ("model", "gpt-5"), ("owner", "Ada Lovelace")] {
            let spelled = text.replace(&format!("\n{key}: {value}\n"), &format!("\n{key}: \"{hidden}\"\n"));
            if spelled != text {
                let error = world.try_to_sign(&spelled).unwrap_err().to_string();
                assert!(error.contains(&format!("`{key}`: it holds a secret")), "{error}");
            }
        }
        let commented = format!("{text}# {}\n", secrets()[0]);
        assert!(world.try_to_sign(&commented).unwrap_err().to_string().contains("holds a secret"));
    }
    assert!(named > 30, "{named}");
}

#[test]
fn what_is_signed_is_not_changed_under_the_signature() {
    let world = World::signed();
    for (name, text) in FILES {
        let draft = AdmissionDraft::parse(text.as_bytes()).unwrap();
        let error = world.admissions.write_draft(&draft);
        assert!(matches!(error, Err(AdmissionError::IsSigned(_))), "{name}: {error:?}");
        let error = world.try_to_sign(&format!("{text}# another\n"));
        assert!(matches!(error, Err(AdmissionError::IsSigned(_))), "{name}: {error:?}");
        world.sign(text);
    }
    assert_eq!(world.all(), [Admission::Admitted; 3]);
}

#[test]
fn what_is_signed_is_what_was_read_and_not_what_lies_there_now() {
    let world = World::new();
    world.write("target/my-tool.yaml", TARGET);
    let shown = world.admissions.read(&id("target/my-tool")).unwrap();
    world.write("target/my-tool.yaml", &TARGET.replace("src/**", "**"));
    world.admissions.sign(&shown, &world.ada, world.now).unwrap();
    let found = world.admissions.find_target("my-tool", &world.context());
    assert_eq!(found.record.unwrap().allowed_paths.as_slice()[0].as_str(), "src/**");
}

#[test]
fn files_that_are_no_files_are_invalid_and_nothing_waits_for_them() {
    let world = World::signed();
    let elsewhere = world.temp.path().join("elsewhere.yaml");
    for (name, text) in FILES {
        fs::write(&elsewhere, text).unwrap();
        let file = world.file(&format!("{name}.yaml"));
        fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &file).unwrap();
    }
    assert_eq!(world.all(), [Admission::InvalidAdmission; 3]);
    for (name, _) in FILES {
        let file = world.file(&format!("{name}.yaml"));
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
    }
    assert_eq!(world.all(), [Admission::InvalidAdmission; 3]);
}
