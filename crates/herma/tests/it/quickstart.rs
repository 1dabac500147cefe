//! `herma quickstart`: from an empty home to a first verified change, with a stand-in for an agent and one for a provider.

mod failures;
mod interrupted;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use herma_core::Digest;
use serde_json::Value;

use crate::kit::{Ended, Herma, KEY, Provider, Repository, everything_below};

/// The model's script for the task, with the stand-in.
const SCRIPT: &str = r#"
name: task
models: [m]
match: { marker: Task file }
turns:
  - call:
      write:
        path: slugify.sh
        text: |
          slugify() {
              printf '%s' "$1" | tr 'A-Z' 'a-z' | tr -cs 'a-z0-9' '-' | sed 's/^-//; s/-$//'
          }
  - say: '<<<AGENT_RESULT {"status":"completed"} AGENT_RESULT>>>'
"#;

/// A machine with a provider, an agent's program and a repository. Nothing of herma is there.
struct World {
    herma: Herma,
    provider: Provider,
    repository: Repository,
}

impl World {
    fn new() -> Self {
        let mut herma = Herma::new();
        herma.set("STAND_IN_KEY", KEY);
        herma.set("USER", "alice");
        herma.file("alice.txt", "the passphrase of alice\n");
        herma.program("home/programs/ca", &case_program());
        let repository = Repository::of_fixture(&herma, "string-slugify");
        Self { herma, provider: Provider::start(&["m", "small"], SCRIPT), repository }
    }

    /// The command with every choice as a flag; a flag in `more` counts more, and `!FLAG` leaves one out.
    fn args(&self, more: &[&str]) -> Vec<String> {
        let at = |path: &str| self.herma.at(path).to_str().unwrap().to_owned();
        let flags = [
            ("--program", at("home/programs/ca")),
            ("--license", "MIT".to_owned()),
            ("--identity", "WorkOS Case".to_owned()),
            ("--provider", "compatible".to_owned()),
            ("--url", self.provider.url.clone()),
            ("--key-env", "STAND_IN_KEY".to_owned()),
            ("--model", "m".to_owned()),
            ("--repo", at("repo")),
            ("--allow", "slugify.sh".to_owned()),
            ("--verify", "sh tests/slugify_test.sh".to_owned()),
            ("--passphrase-file", at("alice.txt")),
        ];
        let mut args = vec!["quickstart".to_owned(), "case".to_owned()];
        for (flag, value) in flags {
            if !more.contains(&flag) && !more.contains(&&*format!("!{flag}")) {
                args.extend([flag.to_owned(), value]);
            }
        }
        args.extend(more.iter().filter(|word| !word.starts_with('!')).map(|word| (*word).to_owned()));
        args
    }

    fn run(&self, more: &[&str]) -> Ended {
        self.herma.start(&self.args(more)).end_patiently()
    }

    /// The page of a dry run.
    fn page(&self, more: &[&str]) -> Value {
        let ended = self.run(&[&["--dry-run", "--json"], more].concat());
        assert_eq!(ended.code, Some(0), "{ended:#?}");
        ended.json()["page"].clone()
    }

    /// Runs it to the end, with the code of its page.
    fn set_up(&self, more: &[&str]) -> Value {
        let page = self.page(more);
        let code = page["code"].as_str().unwrap_or("none");
        let ended = self.run(&[&["--yes", "--json", "--code", code], more].concat());
        assert_eq!(ended.code, Some(0), "{ended:#?}");
        ended.json()
    }

    /// One task in the repository, which must end with a verified change.
    fn change(&self) {
        let repo = self.repository.dir.to_str().unwrap();
        let done =
            self.herma.run_patiently(&["do", "slugify keeps outer whitespace", "--repo", repo, "--json"]);
        assert_eq!(done.code, Some(0), "{done:#?}");
        let report = done.json();
        assert_eq!((&report["status"], &report["engine"]), (&"pass".into(), &"case".into()), "{report:#}");
        assert_eq!(report["changed_files"][0]["path"], "slugify.sh");
    }

    /// The digest of every file of the home that is a record, a setting or a credential.
    fn records(&self) -> BTreeMap<PathBuf, Digest> {
        let bookkeeping = ["store.db", "own-digest.json", "active", "proving", "runs", "trust/checked-runs"];
        let is_record = |path: &PathBuf| {
            let path = path.to_str().unwrap();
            !bookkeeping.iter().any(|start| path.starts_with(start))
        };
        let all = everything_below(self.herma.home()).into_iter();
        all.filter(|(path, _)| is_record(path)).map(|(path, (_, bytes))| (path, Digest::of(&bytes))).collect()
    }
}

/// The stand-in for an agent that a person brings.
fn case_program() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/case/stand_in_ca.py"))
}

fn states(output: &Value) -> Vec<(&str, &str)> {
    let steps = output["steps"].as_array().unwrap();
    steps.iter().map(|step| (step["step"].as_str().unwrap(), step["state"].as_str().unwrap())).collect()
}

#[test]
fn three_commands_lead_to_a_verified_change_and_a_second_set_up_changes_nothing() {
    let world = World::new();
    let output = world.set_up(&[]);
    assert_eq!((&output["ready"], &output["engine"]), (&true.into(), &"case".into()), "{output:#}");
    let names = ["approver", "agent", "model", "admit", "prove", "repository"];
    assert_eq!(states(&output), names.map(|name| (name, "done")), "{output:#}");
    world.change();
    // Nothing has to be done again, with the same flags and without any.
    let before = world.records();
    for args in [
        world.args(&["--yes", "--json"]),
        vec![
            "quickstart".into(),
            "--json".into(),
            "--repo".into(),
            world.repository.dir.display().to_string(),
        ],
    ] {
        let again = world.herma.start(&args).end_patiently();
        assert_eq!(again.code, Some(0), "{again:#?}");
        let again = again.json();
        assert_eq!(again["page"], Value::Null);
        assert!(states(&again).iter().take(5).all(|(_, state)| *state == "current"), "{again:#}");
        assert_eq!(world.records(), before, "{args:?}");
    }
    // Each record has a signature of its own.
    for (kind, name) in [("engine", "case"), ("model", "compatible/m")] {
        let check = world.herma.run(&["admissions", "check", kind, name]);
        assert_eq!(check.code, Some(0), "{check:#?}");
    }
    let revoked = world.herma.run(&["admissions", "revoke", "model", "compatible/m", "--reason", "a test"]);
    assert_eq!(revoked.code, Some(0), "{revoked:#?}");
    assert_eq!(world.herma.run(&["admissions", "check", "engine", "case"]).code, Some(0));
}

#[test]
fn a_code_signs_exactly_the_page_that_it_was_printed_with() {
    let world = World::new();
    let page = world.page(&[]);
    let records = page["records"].as_array().unwrap();
    let names: Vec<_> = records.iter().map(|record| record["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["case", "compatible/m"]);
    // A dry run signs nothing, enables nothing and keeps no key.
    let engine = world.herma.json(&["engines", "list", "--json"]);
    let case = engine["engines"].as_array().unwrap().iter().find(|row| row["engine"] == "case").unwrap();
    assert_eq!((&case["enabled"], &case["admission"]), (&false.into(), &"missing_admission".into()));
    assert!(!world.herma.home().join("router.toml").exists());
    // The code of another page signs nothing.
    let other = world.page(&["--model", "small"]);
    assert_ne!(page["code"], other["code"]);
    let ended = world.run(&["--yes", "--json", "--code", other["code"].as_str().unwrap()]);
    assert_eq!(ended.code, Some(2), "{ended:#?}");
    assert!(ended.json()["error"].as_str().unwrap().contains("that is not the code"), "{ended:#?}");
    for row in world.herma.json(&["admissions", "list", "--json"])["admissions"].as_array().unwrap() {
        assert_eq!(row["status"], "not_admitted", "{row:#}");
    }
    // Without a terminal and without a code nothing is signed either.
    let ended = world.run(&["--yes"]);
    assert_eq!(ended.code, Some(2), "{ended:#?}");
    assert!(ended.stderr.contains("there is no terminal to type the code at"), "{ended:#?}");
    // The bytes that were shown are the bytes that are signed.
    world.set_up(&[]);
    for record in records {
        let (kind, name) = (record["kind"].as_str().unwrap(), record["name"].as_str().unwrap());
        let shown = world.herma.json(&["admissions", "show", kind, name, "--json"]);
        assert_eq!(shown["digest"], record["digest"]);
        assert_eq!(
            fs::read_to_string(shown["file"].as_str().unwrap()).unwrap(),
            record["text"].as_str().unwrap()
        );
    }
}

#[test]
fn at_a_terminal_three_answers_lead_to_a_verified_change() {
    let world = World::new();
    let program = world.herma.at("home/programs/ca");
    let args = [
        "quickstart",
        "case",
        "--program",
        program.to_str().unwrap(),
        "--license=MIT",
        "--identity=WorkOS Case",
        "--url",
        &world.provider.url,
        "--key-env=STAND_IN_KEY",
        "--allow=slugify.sh",
        "--verify=sh tests/slugify_test.sh",
    ];
    let mut at = world.herma.at_terminal(&world.repository.dir, &args);
    at.answer("New passphrase for alice", "correct horse");
    at.answer("Repeat passphrase:", "correct horse");
    at.answer("Which one? A number, or Enter for 1:", "");
    at.wait_for("Type the code ");
    let shown = at.shown();
    let code = shown.rsplit("Type the code ").next().unwrap()[..6].to_owned();
    at.answer(" to continue", &code);
    let ended = at.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stdout);
    assert!(!ended.stdout.contains("correct horse"), "a passphrase is not shown: {}", ended.stdout);
    assert!(ended.stdout.contains("herma do 'say what to change'"), "{}", ended.stdout);
    world.change();
}

#[test]
fn a_typed_key_is_kept_in_a_file_of_its_owner_and_shown_nowhere() {
    let world = World::new();
    let program = world.herma.at("home/programs/ca");
    let args = [
        "quickstart",
        "case",
        "--program",
        program.to_str().unwrap(),
        "--license=MIT",
        "--identity=WorkOS Case",
        "--url",
        &world.provider.url,
        "--ask-key",
        "--passphrase-file",
        "../alice.txt",
        "--allow=slugify.sh",
        "--verify=sh tests/slugify_test.sh",
    ];
    let mut at = world.herma.at_terminal(&world.repository.dir, &args);
    at.answer("API key of compatible", KEY);
    at.wait_for("Type the code ");
    let code = at.shown().rsplit("Type the code ").next().unwrap()[..6].to_owned();
    at.answer(" to continue", &code);
    let ended = at.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stdout);
    assert!(!ended.stdout.contains(KEY), "{}", ended.stdout);
    let file = world.herma.home().join("compatible.key");
    assert_eq!(fs::read_to_string(&file).unwrap(), format!("{KEY}\n"));
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    for (path, (_, bytes)) in everything_below(world.herma.home()) {
        let holds = String::from_utf8_lossy(&bytes).contains(KEY);
        assert_eq!(holds, path.to_str() == Some("compatible.key"), "{}", path.display());
    }
}

#[test]
fn a_configuration_keeps_its_comments_and_a_command_gives_the_key() {
    let world = World::new();
    let before = "# mine\n[upstreams.other] # at home\nprovider = \"anthropic\"\nkey = { env = \"OTHER\" }\n";
    world.herma.file("home/router.toml", before);
    let command = format!("echo {KEY}");
    world.set_up(&["!--key-env", "--key-command", &command, "--upstream", "local"]);
    let text = fs::read_to_string(world.herma.home().join("router.toml")).unwrap();
    assert!(text.starts_with(before), "{text}");
    assert!(text.contains("key = { file = \"local.key\" }"), "{text}");
    world.change();
}

#[test]
fn a_repository_is_admitted_with_the_same_code_if_a_flag_asks_for_it() {
    let world = World::new();
    let more = ["--stage5", "slug", "--owner", "alice", "--rationale", "a test"];
    let ended = world.run(&[&["--dry-run", "--json"], &more[..]].concat());
    assert_eq!(ended.code, Some(2), "{ended:#?}");
    assert!(ended.json()["error"].as_str().unwrap().contains("ownership_evidence"), "{ended:#?}");
    let output = world.set_up(&[&more[..], &["--ownership-evidence", "CODEOWNERS"]].concat());
    assert_eq!(output["page"]["records"].as_array().unwrap().len(), 3, "{output:#}");
    let check = world.herma.run(&["admissions", "check", "target", "slug"]);
    assert_eq!(check.code, Some(0), "{check:#?}");
}
