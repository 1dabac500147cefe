//! `herma admit` and `herma admissions`, from outside: drafts, signatures, and what a run makes of them.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::kit::Herma;

/// A home with an approver whose token is in the environment, and a program for `stub`.
fn with_approver() -> Herma {
    let mut herma = Herma::new();
    let made = herma.json(&["approver", "init", "ada", "--token", "--json"]);
    herma.set("HERMA_APPROVER_TOKEN", made["token"].as_str().unwrap());
    herma.file("home/engines/herma-stub", "a program");
    herma.file("repository/README.md", "a repository");
    herma
}

fn engine(herma: &Herma, more: &[&str]) -> Value {
    let args = ["admit", "engine", "stub", "--json"];
    herma.json(&[&args[..], more].concat())
}

const ENGINE: [&str; 17] = [
    "--program",
    "home/engines/herma-stub",
    "--source",
    "https://example.org/owner/stub",
    "--pin",
    "0.1.0",
    "--retrieval",
    "cargo install herma-stub",
    "--license",
    "Apache-2.0",
    "--license-resolved",
    "--identity",
    "stub 0.1.0",
    "--review-trigger",
    "digest_change",
    "--expires",
    "2999-01-31",
];

const TARGET: [&str; 14] = [
    "--path",
    "repository",
    "--owner",
    "Ada Lovelace",
    "--ownership-evidence",
    "she made the first commit",
    "--risk-class",
    "low_risk_noncritical",
    "--rationale",
    "nobody depends on it",
    "--allowed-path",
    "src/**",
    "--review-trigger",
    "runs=50",
];

const MODEL: [&str; 8] = [
    "--credential-source",
    "environment",
    "--network",
    "public",
    "--runtime-provider",
    "bridge",
    "--review-trigger",
    "date=2999-01-31",
];

fn admit(herma: &Herma, kind: &str, name: &str, options: &[&str]) -> Value {
    herma.json(&[&["admit", kind, name, "--json"], options].concat())
}

/// Signs the draft of the installation, with the code of its digest.
fn sign(herma: &Herma, kind: &str, name: &str) -> Value {
    let shown = herma.json(&["admissions", "show", kind, name, "--json"]);
    let code = &shown["digest"].as_str().unwrap()["sha256:".len()..][..6];
    herma.json(&["admit", "sign", kind, name, "--code", code, "--json"])
}

fn status(herma: &Herma, kind: &str, name: &str) -> String {
    let ended = herma.run(&["admissions", "check", kind, name, "--json"]);
    let status = ended.json()["status"].as_str().unwrap().to_owned();
    assert_eq!(ended.code, Some(i32::from(status != "admitted")), "{ended:#?}");
    status
}

fn path(value: &Value) -> PathBuf {
    PathBuf::from(value["file"].as_str().unwrap())
}

#[test]
fn a_draft_is_filled_in_field_by_field_and_admitted_by_a_signature() {
    let herma = with_approver();
    for (kind, name, options) in
        [("engine", "stub", &ENGINE[..]), ("model", "openai/gpt-5", &MODEL), ("target", "my-tool", &TARGET)]
    {
        let draft = admit(&herma, kind, name, &[]);
        assert_eq!(
            (&draft["status"], &draft["schema"]),
            (&"not_admitted".into(), &"herma.admission/v1".into())
        );
        for pair in options.windows(2).filter(|pair| pair[0].starts_with("--")) {
            // One option at a time, with its value where it has one.
            let given = if pair[1].starts_with("--") { &pair[..1] } else { pair };
            assert_ne!(draft["lacks"], Value::Null);
            let lacks = admit(&herma, kind, name, given)["lacks"].clone();
            let field = pair[0].trim_start_matches("--").replace('-', "_");
            assert!(!lacks.to_string().contains(&format!("`{field}`")), "{field}: {lacks}");
        }
        let whole = admit(&herma, kind, name, &[]);
        assert_eq!((&whole["status"], &whole["lacks"]), (&"not_admitted".into(), &Value::Null), "{whole:#}");
        let signed = sign(&herma, kind, name);
        assert_eq!((&signed["status"], &signed["signed"]["approver"]), (&"admitted".into(), &"ada".into()));
        assert_eq!(status(&herma, kind, name), "admitted");
    }
    let list = herma.json(&["admissions", "list", "--json"]);
    let rows = list["admissions"].as_array().unwrap();
    assert_eq!(rows.len(), 3);
    assert!(rows.iter().all(|row| row["status"] == "admitted"), "{list:#}");
    assert_eq!(herma.run(&["admissions", "check"]).code, Some(0));
}

#[test]
fn missing_fields_are_named_and_no_incomplete_draft_is_signed() {
    let herma = with_approver();
    let draft = herma.run(&["admit", "engine", "stub", "--program", "home/engines/herma-stub"]);
    assert_eq!(draft.code, Some(0), "{draft:#?}");
    let missing = "a draft  missing: `source`, `pin`, `retrieval`, `license`, `license_resolved`, `identity`, \
                   `review_trigger or expires_at`";
    assert!(draft.stdout.contains(missing), "{draft:#?}");
    let signed = herma.run(&["admit", "sign", "engine", "stub", "--code", "000000"]);
    assert_eq!(signed.code, Some(2), "{signed:#?}");
    assert!(signed.stderr.contains("cannot be signed: missing: `source`"), "{signed:#?}");
}

#[test]
fn a_critical_target_is_never_signed() {
    let herma = with_approver();
    let options: Vec<_> =
        TARGET.iter().map(|word| if *word == "low_risk_noncritical" { "critical" } else { *word }).collect();
    let draft = admit(&herma, "target", "my-tool", &options);
    assert_eq!(draft["lacks"], "`risk_class`: only `low_risk_noncritical` is let in, not `critical`");
    let signed = herma.run(&["admit", "sign", "target", "my-tool", "--code", "000000"]);
    assert_eq!(signed.code, Some(2), "{signed:#?}");
}

#[test]
fn a_signature_needs_the_code_of_exactly_this_record() {
    let herma = with_approver();
    let draft = admit(&herma, "target", "my-tool", &TARGET);
    let shown = herma.run(&["admit", "sign", "target", "my-tool"]);
    assert_eq!(shown.code, Some(2), "{shown:#?}");
    let text = fs::read_to_string(path(&draft)).unwrap();
    for line in text.lines() {
        assert!(shown.stdout.contains(line), "the whole record is shown: {line}");
    }
    let code = &draft["digest"].as_str().unwrap()["sha256:".len()..][..6];
    assert!(shown.stdout.contains(&format!("code    {code}")), "{shown:#?}");
    // The record is changed after the code was printed.
    fs::write(path(&draft), text.replace("src/**", "**")).unwrap();
    let signed = herma.run(&["admit", "sign", "target", "my-tool", "--code", code]);
    assert_eq!(signed.code, Some(2), "{signed:#?}");
    assert!(signed.stderr.contains("that is not the code"), "{signed:#?}");
    assert_eq!(status(&herma, "target", "my-tool"), "not_admitted");
}

#[test]
fn without_an_approver_nothing_is_signed() {
    let mut herma = with_approver();
    let draft = admit(&herma, "model", "openai/gpt-5", &MODEL);
    let code = &draft["digest"].as_str().unwrap()["sha256:".len()..][..6].to_owned();
    let other = Herma::new().json(&["approver", "init", "eve", "--token", "--json"])["token"].clone();
    for token in ["", other.as_str().unwrap()] {
        herma.set("HERMA_APPROVER_TOKEN", token);
        let ended = herma.run(&["admit", "sign", "model", "openai/gpt-5", "--code", code]);
        assert_eq!(ended.code, Some(2), "{ended:#?}");
        assert_eq!(status(&herma, "model", "openai/gpt-5"), "not_admitted");
    }
}

#[test]
fn a_draft_in_a_repository_counts_only_once_it_was_signed_in() {
    let herma = with_approver();
    let file = "repository/.herma/admissions/my-tool.yaml";
    let elsewhere = ["admit", "target", "my-tool", "--output", file];
    let refused = herma.run(&elsewhere);
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    assert!(refused.stderr.contains("repository/.herma does not exist"), "{refused:#?}");
    assert!(!herma.at("repository/.herma").exists());
    fs::create_dir_all(herma.at("repository/.herma")).unwrap();
    let draft = admit(&herma, "target", "my-tool", &[&TARGET[..], &["--output", file]].concat());
    assert_eq!(draft["status"], "not_admitted");
    assert_eq!(herma.json(&["admissions", "list", "--json"])["admissions"], Value::Array(Vec::new()));
    assert_eq!(herma.run(&["admissions", "check", file]).code, Some(0), "it could be signed");
    assert_eq!(herma.run(&["admissions", "check", "target", "my-tool"]).code, Some(2), "it is not there");
    let code = &draft["digest"].as_str().unwrap()["sha256:".len()..][..6];
    let signed = herma.json(&["admit", "sign", file, "--code", code, "--json"]);
    assert_eq!(signed["status"], "admitted");
    assert_eq!(fs::read(herma.at(file)).unwrap(), fs::read(path(&signed)).unwrap(), "byte for byte");
    // Later changes of the draft have no effect.
    herma.file(file, "kind: target\nname: my-tool\n");
    assert_eq!(status(&herma, "target", "my-tool"), "admitted");
}

#[test]
fn a_signed_admission_does_not_change_until_it_is_revoked() {
    let herma = with_approver();
    admit(&herma, "target", "my-tool", &TARGET);
    let signed = sign(&herma, "target", "my-tool");
    let before = fs::read(path(&signed)).unwrap();
    let changed = herma.run(&["admit", "target", "my-tool", "--allowed-path", "**"]);
    assert_eq!(changed.code, Some(2), "{changed:#?}");
    assert!(changed.stderr.contains("herma admissions revoke target my-tool --reason"), "{changed:#?}");
    assert_eq!(fs::read(path(&signed)).unwrap(), before);

    let revoked =
        herma.json(&["admissions", "revoke", "target", "my-tool", "--reason", "too wide", "--json"]);
    assert_eq!(revoked["status"], "not_admitted");
    assert_eq!(herma.run(&["admissions", "revoke", "target", "my-tool", "--reason", "again"]).code, Some(2));
    admit(&herma, "target", "my-tool", &["--allowed-path", "docs/**"]);
    sign(&herma, "target", "my-tool");
    assert_eq!(status(&herma, "target", "my-tool"), "admitted");
}

#[test]
fn another_program_takes_the_admission_away() {
    let herma = with_approver();
    engine(&herma, &ENGINE);
    sign(&herma, "engine", "stub");
    assert_eq!(status(&herma, "engine", "stub"), "admitted");
    herma.file("home/engines/herma-stub", "another program");
    assert_eq!(status(&herma, "engine", "stub"), "mismatch");
    fs::remove_file(herma.at("home/engines/herma-stub")).unwrap();
    assert_eq!(status(&herma, "engine", "stub"), "mismatch");
}

#[test]
fn a_program_in_a_temporary_directory_is_not_admitted() {
    let herma = with_approver();
    herma.file("clone/herma-stub", "a program");
    let mut options = ENGINE;
    options[1] = "clone/herma-stub";
    engine(&herma, &options);
    let signed = sign(&herma, "engine", "stub");
    assert_eq!(signed["status"], "not_admitted", "{signed:#}");
    assert!(signed["detail"].as_str().unwrap().contains("temporary directory"), "{signed:#}");
}

#[test]
fn bad_input_is_refused_with_the_field_named_and_leaves_nothing() {
    let herma = with_approver();
    for (args, why) in [
        (&["admit", "target", "my-tool", "--owner", "ada at 10.0.0.7"][..], "`owner`: it holds an address"),
        (
            &["admit", "target", "my-tool", "--rationale", "see localhost"],
            "`rationale`: it holds `localhost`",
        ),
        (&["admit", "engine", "stub", "--license", "https://x.org"], "`license`: it holds a URL"),
        (
            &["admit", "engine", "stub", "--source", "https://me@x.org"],
            "`source`: it holds a URL with a user",
        ),
        (&["admit", "engine", "stub", "--program", "nowhere"], "cannot be found"),
        (&["admit", "engine", "stub", "--pin", "a\u{202e}b"], "characters that are not seen"),
        (&["admit", "engine", "fake"], "part of herma itself"),
        (&["admit", "engine", "no-such"], "herma has no engine `no-such`"),
        (&["admit", "model", "gpt-5"], "PROVIDER/MODEL"),
        (&["admit", "target", "../x"], "a target's name"),
        (&["admit", "model", "a/b", "--review-trigger", "someday"], "is not a review trigger"),
        (&["admissions", "show", "target", "nothing"], "there is no admission of target `nothing`"),
        (&["admissions", "show", "motor", "nothing"], "is not a kind of admission"),
        (&["admit", "sign", "nowhere.yaml"], "there is no file nowhere.yaml"),
    ] {
        let ended = herma.run(args);
        assert_eq!(ended.code, Some(2), "{args:?}: {ended:#?}");
        assert!(ended.stderr.contains(why), "{args:?}: {ended:#?}");
    }
    assert_eq!(herma.json(&["admissions", "list", "--json"])["admissions"], Value::Array(Vec::new()));
}

#[test]
fn a_file_that_cannot_be_read_is_listed_and_check_says_why() {
    let herma = with_approver();
    herma.file("home/admissions/target/my-tool.yaml", "kind: target\nname: my-tool\nownr: ada\n");
    herma.file("home/admissions/target/My Tool.yaml", "");
    let list = herma.json(&["admissions", "list", "--json"]);
    let rows = list["admissions"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().all(|row| row["status"] == "invalid_admission"), "{list:#}");
    let ended = herma.run(&["admissions", "check", "target", "my-tool"]);
    assert_eq!(ended.code, Some(2), "{ended:#?}");
    assert!(
        ended.stderr.contains("line 3, column 1: unknown key `ownr`; did you mean `owner`?"),
        "{ended:#?}"
    );
    assert_eq!(herma.run(&["admissions", "check"]).code, Some(1));
}

#[test]
fn a_blocked_run_never_shows_the_path_of_its_target() {
    let herma = with_approver();
    admit(&herma, "target", "my-tool", &TARGET);
    let file = "home/admissions/target/my-tool.yaml";
    let whole = fs::read_to_string(herma.at(file)).unwrap();
    let real = fs::canonicalize(herma.at("repository")).unwrap();
    let real = real.to_str().unwrap();
    assert!(whole.contains(real), "only the admission holds it");
    let cases = [
        (whole.clone(), "not_admitted", "target_not_admitted"),
        (whole.replace("low_risk_noncritical", "critical"), "not_admitted", "critical_repository"),
        (whole.replace("owner: \"Ada Lovelace\"", "owner:"), "not_admitted", "unowned_repository"),
        (whole.replace("name: \"my-tool\"", "name: another"), "mismatch", "target_not_admitted"),
        (format!("{whole}{real}: here\n"), "invalid_admission", "target_not_admitted"),
        (whole.replace("path: \"", "path: \"\u{202e}"), "invalid_admission", "target_not_admitted"),
    ];
    for (text, status, blocker) in cases {
        herma.file(file, &text);
        let run = herma.play("fix", &[("target", "{ repo: my-tool }"), ("stage", "3")]);
        assert_eq!(run.ended.code, Some(3), "{run:#?}");
        let report = run.ended.json();
        assert_eq!(report["target_admission"], status, "{text}");
        assert!(report["blockers"].to_string().contains(blocker), "{blocker}: {:#}", report["blockers"]);
        assert_eq!(report["engine_started"], false);
        assert!(!run.ended.stdout.contains(real) && !run.ended.stderr.contains(real), "{run:#?}");
        for entry in fs::read_dir(&run.bundle.dir).unwrap() {
            let file = entry.unwrap().path();
            if file.is_file() {
                let text = String::from_utf8_lossy(&fs::read(&file).unwrap()).into_owned();
                assert!(!text.contains(real), "{}", file.display());
            }
        }
    }
}
