//! Every command: what it prints for people and for programs, and how it ends.

use std::os::unix::fs::PermissionsExt as _;

use herma_core::Contract;
use serde_json::Value;

use crate::kit::{Ended, Herma, Repository, contract_text};

/// The value's `schema` is a published, versioned one.
fn assert_schema(value: &Value, name: &str) {
    assert_eq!(value["schema"], format!("herma.{name}/v1"), "{value:#}");
}

#[test]
fn every_command_prints_json_with_a_versioned_schema() {
    let herma = Herma::new();
    herma.demo(&[]);
    herma.contract(&[]);
    for (args, schema) in [
        (&["demo"][..], "report"),
        (&["run", "fixture:string-slugify"], "report"),
        (&["show", "last"], "report"),
        (&["runs"], "runs"),
        (&["diff"], "diff"),
        (&["logs"], "logs"),
        (&["verify", "last"], "verify"),
        (&["contract", "check", "contracts/contract.md"], "contract-check"),
        (&["contract", "digest", "contracts/contract.md"], "contract-check"),
        (&["contract", "new", "another"], "written"),
        (&["approver", "init", "bot", "--token"], "approver-shown"),
        (&["approver", "list"], "approvers"),
        (&["approver", "revoke", "bot", "--reason", "over", "--last"], "approver-shown"),
        (&["schema"], "schemas"),
        (&["engines", "list"], "engines"),
        (&["approvals", "list"], "approvals"),
        (&["doctor"], "doctor"),
        (&["completions", "bash"], "completions"),
    ] {
        let json = herma.json(&[args, &["--json"]].concat());
        assert_schema(&json, schema);
        let published = herma.json(&["schema", schema]);
        assert_matches(&json, &published, args);
    }
}

/// Every key that the schema requires is there, and there is none that it does not know.
pub(crate) fn assert_matches(value: &Value, schema: &Value, args: &[&str]) {
    let keys: Vec<&String> = value.as_object().unwrap().keys().collect();
    let known = schema["properties"].as_object().unwrap();
    let required = schema["required"].as_array().unwrap();
    for key in required.iter().map(|key| key.as_str().unwrap()) {
        assert!(keys.iter().any(|there| *there == key), "{args:?}: `{key}` is missing");
    }
    for key in keys {
        assert!(known.contains_key(key), "{args:?}: `{key}` is not in the schema");
    }
}

#[test]
fn every_published_schema_is_printed_and_names_itself() {
    let herma = Herma::new();
    let listed = herma.json(&["schema", "--json"]);
    let names: Vec<String> = listed["schemas"].as_object().unwrap().keys().cloned().collect();
    assert!(names.len() > 10, "{names:?}");
    let plain = herma.run(&["schema"]).stdout;
    for name in &names {
        let schema = herma.json(&["schema", name]);
        assert!(schema["$schema"].as_str().is_some_and(|url| url.contains("json-schema")), "{name}");
        assert_eq!(schema["type"], "object", "{name}");
        assert!(plain.lines().any(|line| line.split_whitespace().next() == Some(name)), "{name}");
    }
}

#[test]
fn the_report_that_is_printed_is_the_report_in_the_bundle() {
    let herma = Herma::new();
    let run = herma.demo(&[]);
    assert_eq!(run.ended.stdout.as_bytes(), run.bundle.read("report.json"));
    let shown = herma.run(&["show", "--json"]);
    assert_eq!(shown.stdout, run.ended.stdout);
    assert_eq!(run.ended.json()["status"], "pass");
}

#[test]
fn runs_are_listed_newest_first_and_page_by_page() {
    let herma = Herma::new();
    for script in ["fix", "no-diff", "fix", "rejected", "fix"] {
        herma.run(&["demo", "--destination", "host", "--script", script]);
    }
    let mut newest_first: Vec<String> = herma.runs().iter().map(ToString::to_string).collect();
    newest_first.reverse();
    let mut paged = Vec::new();
    let mut before: Option<String> = None;
    for _ in 0..4 {
        let mut args = vec!["runs", "--all", "--json", "--limit", "2"];
        args.extend(before.iter().flat_map(|before| ["--before", before.as_str()]));
        let page = herma.json(&args);
        let runs = page["runs"].as_array().unwrap().clone();
        paged.extend(runs.iter().map(|run| run["run_id"].as_str().unwrap().to_owned()));
        before = page["next_before"].as_str().map(str::to_owned);
        if before.is_none() {
            break;
        }
    }
    assert_eq!(paged, newest_first);
    assert_eq!(before, None, "the last page names no next one");
    for (status, count) in [("pass", 3), ("fail", 1), ("blocked", 1)] {
        let listed = herma.json(&["runs", "--all", "--json", "--status", status]);
        let runs = listed["runs"].as_array().unwrap();
        assert_eq!(runs.len(), count, "{status}");
        assert!(runs.iter().all(|run| run["status"] == status), "{listed:#}");
    }
    assert_eq!(herma.run(&["runs", "--all"]).stdout.lines().count(), 5);
    assert_eq!(herma.run(&["runs", "--all", "--before", "last"]).stdout.lines().count(), 4);
    let unknown = herma.run(&["runs", "--before", "yesterday"]);
    assert_eq!(unknown.code, Some(2));
    insta::assert_snapshot!(unknown.stderr.trim_end(), @r"
    error: there is no run called `yesterday`
    next: `herma runs` lists the names
    ");
}

#[test]
fn a_kept_workspace_is_shown() {
    let herma = Herma::new();
    let run = ["run", "fixture:string-slugify", "--destination", "host"];
    assert!(!herma.run(&run).stdout.contains("workspace"));
    let told = herma.run(&[&run[..], &["--keep-workspace"]].concat()).stdout;
    let kept = told.lines().find_map(|line| line.strip_prefix("  workspace ")).unwrap();
    assert!(std::path::Path::new(kept).join("slugify.sh").exists(), "{told}");
}

#[test]
fn a_user_without_a_home_is_asked_for_one() {
    let (mut herma, _) = Herma::of_normal_user();
    let without = ["env", "-u", "HOME", "-u", "HERMA_HOME", "-u", "XDG_STATE_HOME"];
    // A number of which the system knows nothing.
    let unknown = ["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups", "--"];
    herma.wrap(&[&unknown[..], &without[..]].concat());
    let ended = herma.run(&["runs"]);
    assert_eq!(ended.code, Some(2), "{ended:#?}");
    assert!(ended.stderr.contains("neither HERMA_HOME nor HOME is set"), "{ended:#?}");
    // Commands that need no home do not ask for one.
    assert_eq!(herma.run(&["schema", "report"]).code, Some(0));
    assert_eq!(herma.run(&["contract", "check", "fixture:string-slugify"]).code, Some(0));
    // One that it knows, and whose home nobody can make.
    let known = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"];
    herma.wrap(&[&known[..], &without[..]].concat());
    let ended = herma.run(&["runs"]);
    assert!(ended.stderr.contains("/.local/state/herma cannot be"), "{ended:#?}");
    assert_eq!(herma.run(&["schema", "report"]).code, Some(0));
}

#[test]
fn a_home_that_is_no_directory_is_bad_input() {
    let mut herma = Herma::new();
    let file = herma.file("file", "no directory");
    herma.set_home(&file);
    let ended = herma.run(&["runs"]);
    assert_eq!(ended.code, Some(2), "{ended:#?}");
    assert!(
        ended.stderr.contains("is not a directory\nnext: set HERMA_HOME to another directory"),
        "{ended:#?}"
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "no directory");
}

#[test]
fn a_home_without_runs_shows_a_next_step() {
    let ended = Herma::new().run(&["runs"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "no runs yet; start with `herma demo`\n"));
}

#[test]
fn a_run_is_found_by_its_name_its_start_its_last_digits_or_as_the_last() {
    let herma = Herma::new();
    let first = herma.demo(&["--destination", "host"]).report.run_id;
    let last = herma.demo(&["--destination", "host"]).report.run_id;
    let found = |name: &str| herma.json(&["show", name, "--json"])["run_id"].as_str().unwrap().to_owned();
    assert_eq!(found(&first.to_string()), first.to_string());
    assert_eq!(found(&first.to_string()[..23]), first.to_string());
    assert_eq!(found(&first.short()), first.to_string());
    assert_eq!(found("last"), last.to_string());
    let ambiguous = herma.run(&["show", "0"]);
    assert_eq!(ambiguous.code, Some(2), "{ambiguous:#?}");
    assert!(ambiguous.stderr.starts_with("error: more than one run is called `0`\n"), "{ambiguous:#?}");
    for command in ["show", "diff", "logs", "verify", "resume", "accept"] {
        let unnamed = herma.run(&[command, ""]);
        assert_eq!(unnamed.code, Some(2), "{unnamed:#?}");
        assert!(unnamed.stderr.starts_with("error: the name of the run is empty\n"), "{unnamed:#?}");
    }
    for command in ["show", "diff", "logs", "verify"] {
        let unknown = herma.run(&[command, "ffffffff"]);
        assert_eq!(unknown.code, Some(2), "{unknown:#?}");
        assert!(unknown.stderr.starts_with("error: there is no run called `ffffffff`\n"), "{unknown:#?}");
    }
}

#[test]
fn a_run_that_cannot_be_resumed_says_why() {
    let herma = Herma::new();
    herma.demo(&[]);
    for (args, why) in [
        (&["resume", "last"][..], "error: the engine `fake` cannot continue a session\n"),
        (&["resume", "ffffffff"], "error: there is no run called `ffffffff`\n"),
        (
            &["resume", "last", "--message", "use AKIAQWERTYUIOPASDFGH for it"],
            "error: the message holds what looks like a secret (",
        ),
        (&["resume", "last", "--message", &"a".repeat(16_385)], "error: the message has 16385 bytes,"),
    ] {
        let refused = herma.run(args);
        assert_eq!(refused.code, Some(2), "{refused:#?}");
        assert!(refused.stderr.starts_with(why), "{refused:#?}");
        assert!(refused.stderr.contains("\nnext: "), "{refused:#?}");
    }
    assert_eq!(herma.runs().len(), 1);
}

#[test]
fn diff_prints_a_patch_that_git_applies() {
    let herma = Herma::new();
    let repository = Repository::of_fixture(&herma, "string-slugify");
    let run = herma.demo(&[]);
    let diff = herma.run(&["diff", "last"]);
    assert_eq!(diff.stdout, run.bundle.text("patch.diff"));
    let patch = herma.file("patch.diff", &diff.stdout);
    repository.git(&["apply", patch.to_str().unwrap()]);
    assert_eq!(repository.git(&["status", "--porcelain"]), " M slugify.sh\n");
    let withheld = herma.run(&["demo", "--script", "secret"]);
    assert_eq!(withheld.code, Some(1));
    let diff = herma.run(&["diff"]);
    assert_eq!((diff.code, diff.stdout.as_str()), (Some(0), ""));
    assert!(diff.stderr.starts_with("no patch is shown: withheld"), "{diff:#?}");
}

fn digest(herma: &Herma, text: &str) -> String {
    herma.file("digest.md", text);
    let ended = herma.run(&["contract", "digest", "digest.md"]);
    assert_eq!(ended.code, Some(0), "{text}\n{ended:#?}");
    assert!(ended.stdout.starts_with("sha256:") && ended.stdout.len() == 72, "{ended:#?}");
    ended.stdout
}

#[test]
fn a_digest_stays_with_order_and_comments_and_changes_with_meaning() {
    let herma = Herma::new();
    let text = contract_text(&[]);
    let original = digest(&herma, &text);
    let (front, brief) = text.strip_prefix("---\n").unwrap().split_once("\n---\n").unwrap();
    let moved = front.replacen("stage: 2\n", "", 1) + "\nstage: 2 # the second rung";
    let quoted = front.replace("id: trim-slug", "id: 'trim-slug'");
    for same in [moved, quoted, format!("# a comment\n\n{front}"), format!("{front}\nrequire_diff: true")] {
        assert_eq!(digest(&herma, &format!("---\n{same}\n---\n{brief}")), original, "{same}");
    }
    for (key, value) in [
        ("id", "another"),
        ("title", "another"),
        ("target", "{ fixture: odd-names }"),
        ("stage", "3"),
        ("allowed_paths", "[/slugify.sh]"),
        ("forbidden_paths", "[x]"),
        ("lift_paths", "[Cargo.lock]"),
        ("forbidden_actions", "[tag]"),
        ("verify", "[\"true\"]"),
        ("success", "[another]"),
        ("require_diff", "false"),
        ("risk", "medium"),
        ("authority", "somebody"),
        ("rollback", "another"),
        ("limits", "{ total: 3m, startup: 10s, idle: 30s }"),
        ("model", "{ provider: p, model: m }"),
        ("destination", "host"),
        ("egress", "[example.org]"),
        ("toolchains", "[python]"),
        ("needs", "[resume]"),
        ("tests_may_change", "true"),
    ] {
        assert_ne!(digest(&herma, &contract_text(&[(key, value)])), original, "{key}");
    }
    assert_ne!(digest(&herma, &format!("{text} ")), original, "the brief is exact");
}

#[test]
fn a_new_contract_checks_out_and_is_never_overwritten() {
    let herma = Herma::new();
    let made = herma.run(&["contract", "new", "tidy", "--fixture", "odd-names"]);
    assert_eq!(made.code, Some(0), "{made:#?}");
    let text = std::fs::read_to_string(herma.at("tidy.md")).unwrap();
    let checked = herma.json(&["contract", "check", "tidy.md", "--json"]);
    assert_eq!((&checked["contract_id"], &checked["stage"]), (&"tidy".into(), &2.into()));
    // An agent needs a model; `fake` does not.
    let warnings = checked["warnings"].as_array().unwrap();
    assert!(warnings.len() == 1 && warnings[0].as_str().unwrap().contains("names none under `model`"));
    let again = herma.run(&["contract", "new", "tidy"]);
    assert_eq!(again.code, Some(2), "{again:#?}");
    assert_eq!(std::fs::read_to_string(herma.at("tidy.md")).unwrap(), text);
    let elsewhere = herma.run(&["contract", "new", "tidy", "-o", "other.md", "--repo", "../repo"]);
    assert_eq!(elsewhere.code, Some(0), "{elsewhere:#?}");
    assert_eq!(herma.json(&["contract", "check", "other.md", "--json"])["stage"], 3);
    // A word alone would be the name of an admission, and what is given is a path.
    assert_eq!(herma.run(&["contract", "new", "near", "--repo", "shop"]).code, Some(0));
    assert!(std::fs::read_to_string(herma.at("near.md")).unwrap().contains("repo: ./shop"));
}

#[test]
fn a_contract_that_would_be_blocked_says_so_when_it_is_checked() {
    let herma = Herma::new();
    herma.contract(&[("stage", "5"), ("verify", "[]"), ("model", "{ provider: p, model: m }")]);
    let blockers = || {
        let checked = herma.json(&["contract", "check", "contracts/contract.md", "--json"]);
        let warnings = checked["warnings"].as_array().unwrap().iter().filter_map(Value::as_str);
        warnings.map(|warning| warning.split(':').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let all = [
        "missing_test_command",
        "stage_unproven",
        "approval_void",
        "model_not_admitted",
        "provider_unavailable",
    ];
    assert_eq!(blockers(), all);
    // Without a model the last one is about agents alone.
    let and_model = |expected: &[&'static str]| [expected, &all[4..]].concat();
    for (stage, expected) in [("1", &[][..]), ("3", &[]), ("4", &all[1..3]), ("6", &all[1..2])] {
        herma.contract(&[("stage", stage)]);
        assert_eq!(blockers(), and_model(expected), "stage {stage}");
    }
    for (term, expected) in [
        (("destination", "kubernetes"), "destination_unready"),
        (("target", "{ fixture: no-such-fixture }"), "target_not_admitted"),
        (("risk", "critical"), "critical_repository"),
    ] {
        herma.contract(&[term]);
        assert_eq!(blockers(), and_model(&[expected]));
    }
}

#[test]
fn init_writes_a_first_contract_once() {
    let herma = Herma::new();
    let outside = herma.run(&["init", "contracts"]);
    assert_eq!(outside.code, Some(2), "{outside:#?}");
    Repository::of_fixture(&herma, "string-slugify");
    let json = herma.json(&["init", "repo", "--json"]);
    assert_schema(&json, "written");
    // Files below .herma/ make no target dirty: nothing has to be committed first.
    assert!(!json["next_step"].as_str().unwrap().contains("commit it"), "{json:#}");
    let file = herma.at("repo/.herma/contracts/first.md");
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(herma.json(&["contract", "check", json["file"].as_str().unwrap(), "--json"])["stage"], 3);
    std::fs::write(&file, format!("{text}more\n")).unwrap();
    let again = herma.run(&["init", "repo"]);
    assert_eq!(again.code, Some(2), "{again:#?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), format!("{text}more\n"));
    // The recommended command works.
    assert!(again.stderr.contains("`herma init repo --id NAME`"), "{again:#?}");
    let model = ["--model", "anthropic/claude-sonnet-4-5"];
    let task =
        ["--title", "the \"slug\" is wrong: see #7", "--brief", "Remove the dash.\n\n---\nAt the end."];
    herma.json(&[&["init", "repo", "--id", "second", "--json"], &task[..], &model].concat());
    let second = std::fs::read(herma.at("repo/.herma/contracts/second.md")).unwrap();
    let contract = Contract::parse(&second).unwrap();
    assert_eq!(contract.terms.title, task[1]);
    assert_eq!(contract.brief.trim_end(), task[3]);
    let chosen = contract.terms.model.unwrap();
    assert_eq!(format!("{}/{}", chosen.provider, chosen.model), model[1]);
}

#[test]
fn completions_are_there_for_the_usual_shells() {
    let herma = Herma::new();
    for shell in ["bash", "zsh", "fish"] {
        let ended = herma.run(&["completions", shell]);
        assert_eq!(ended.code, Some(0));
        for command in ["verify", "doctor", "contract"] {
            assert!(ended.stdout.contains(command), "{shell}: {command}");
        }
    }
    let script = herma.file("completions.bash", herma.run(&["completions", "bash"]).stdout);
    crate::kit::run_tool("bash", &["-n".as_ref(), script.as_os_str()], &[]);
}

#[test]
fn the_doctor_lists_found_and_missing_parts() {
    let mut herma = Herma::new();
    let well = herma.json(&["doctor", "--json"]);
    assert_eq!(well["ok"], true);
    let item = |report: &Value, name: &str| {
        let items = report["items"].as_array().unwrap();
        items.iter().find(|item| item["name"] == name).unwrap_or_else(|| panic!("{name}: {report:#}")).clone()
    };
    for name in ["home", "key", "git", "destination host", "destination sandbox", "engine fake"] {
        assert_eq!(item(&well, name)["ok"], true, "{name}");
    }
    herma.set("PATH", herma.at("contracts"));
    let ended = herma.run(&["doctor", "--json"]);
    assert_eq!(ended.code, Some(1), "without git herma cannot work: {ended:#?}");
    let ill = ended.json();
    assert_eq!(ill["ok"], false);
    assert!(item(&ill, "installation")["next_step"].as_str().unwrap().contains("install git"));
}

#[test]
fn verdicts_have_their_exit_codes() {
    let herma = Herma::new();
    let code = |args: &[&str]| herma.run(args).code;
    assert_eq!(code(&["demo", "--destination", "host"]), Some(0));
    assert_eq!(code(&["demo", "--destination", "host", "--script", "breaks-test"]), Some(1));
    assert_eq!(code(&["demo", "--destination", "host", "--script", "rejected"]), Some(3));
    assert_eq!(code(&["verify", "last"]), Some(0), "a bundle that says `blocked` holds like any other");
    assert_eq!(code(&["demo", "--fixture", "none"]), Some(2));
    assert_eq!(code(&["--help"]), Some(0));
    assert_eq!(code(&["--version"]), Some(0));
}

#[test]
fn output_that_is_not_for_a_terminal_has_no_escapes() {
    let mut herma = Herma::new();
    let check = |ended: &Ended| {
        assert!(!ended.stdout.contains('\u{1b}') && !ended.stderr.contains('\u{1b}'), "{ended:#?}");
    };
    for color in ["", "1"] {
        herma.set("NO_COLOR", color);
        check(&herma.run(&["demo", "--script", "noisy"]));
        for args in
            [&["runs"][..], &["show"], &["logs"], &["doctor"], &["verify", "last"], &["--help"], &["rnu"]]
        {
            check(&herma.run(args));
        }
    }
}

#[test]
fn a_run_prints_its_steps_in_plain_lines() {
    let ended = Herma::new().run(&["demo", "--destination", "host"]);
    let phases =
        ["starting", "checking the gates", "the engine works", "verifying on a fresh checkout", "signing"];
    let at: Vec<usize> = phases.iter().map(|phase| ended.stderr.find(phase).unwrap()).collect();
    assert!(at.is_sorted(), "{}", ended.stderr);
    assert!(ended.stdout.contains("Why this can be trusted") && ended.stdout.contains("The bundle holds."));
}

#[test]
fn the_demo_says_when_there_is_no_confinement() {
    let mut herma = Herma::new();
    let tools = herma.at("tools");
    std::fs::create_dir(&tools).unwrap();
    std::os::unix::fs::symlink(crate::kit::on_path("git"), tools.join("git")).unwrap();
    herma.set("PATH", tools);
    let ended = herma.run(&["demo"]);
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    assert!(ended.stdout.contains("WITHOUT CONFINEMENT: bubblewrap is not installed"), "{ended:#?}");
}

#[test]
fn the_home_and_the_key_are_the_owners_alone() {
    let herma = Herma::new();
    herma.demo(&["--destination", "host"]);
    let mode = |path: &str| herma.home().join(path).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(""), 0o700);
    assert_eq!(mode("keys/installation.key"), 0o600);
    assert_eq!(mode("runs"), 0o700);
}

#[test]
fn the_calls_of_an_engine_are_shown_with_the_forbidden_ones() {
    let herma = Herma::new();
    let steps = [
        "- tool: { name: shell, command: git push origin main }",
        "- tool: { name: shell, command: \"echo one\\necho two\" }",
        "- connect: { to: \"example.org:443\" }",
    ];
    herma.play(&crate::kit::fix_and(&steps), &[]);
    let shown = herma.run(&["show", "--full"]).stdout;
    for line in [
        "    tool    shell  git push origin main  FORBIDDEN: push",
        "    tool    shell  echo one …",
        "    egress  example.org:443  denied not_listed",
    ] {
        assert!(shown.lines().any(|there| there == line), "{line}\n{shown}");
    }
}
