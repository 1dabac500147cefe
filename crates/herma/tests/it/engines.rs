//! `herma engines`, from outside: what is listed, what can be switched, and what that changes for a run.

use herma_core::{Blocker, Gate};
use serde_json::Value;

use crate::kit::{Finished, Herma};

fn row(herma: &Herma, engine: &str) -> Value {
    let listed = herma.json(&["engines", "list", "--json"]);
    assert_eq!(listed["schema"], "herma.engines/v1");
    let rows = listed["engines"].as_array().unwrap();
    rows.iter().find(|row| row["engine"] == engine).unwrap_or_else(|| panic!("{listed:#}")).clone()
}

/// A run of `stub`, and whether the gate `engine_enabled` held.
fn run_of_stub(herma: &Herma) -> (Finished, bool) {
    let contract = herma.contract(&[]);
    let args = ["run", contract.to_str().unwrap(), "--engine", "stub", "--json"];
    let run = herma.finished(&args);
    assert_eq!(run.ended.code, Some(3), "{:#?}", run.ended);
    let missing: Vec<Blocker> = run.report.blockers.iter().map(|record| record.blocker).collect();
    let decision: Value = serde_json::from_str(&run.bundle.text("decision.json")).unwrap();
    let gates = decision["missing_gates"].to_string();
    let on = !missing.contains(&Blocker::EngineDisabled);
    assert_eq!(on, !gates.contains(Gate::EngineEnabled.as_str()), "{decision:#}");
    (run, on)
}

#[test]
fn an_engine_is_off_until_it_is_switched_on_and_off_again_afterwards() {
    let herma = Herma::new();
    let fresh = row(&herma, "stub");
    assert_eq!((&fresh["built_in"], &fresh["enabled"]), (&false.into(), &false.into()));
    assert_eq!((&fresh["digest"], &fresh["proven_stage"]), (&Value::Null, &Value::Null));
    assert_eq!(fresh["admission"], "missing_admission");
    // Without a program there is nothing to switch on.
    for engine in ["stub", "case"] {
        let (fresh, doctor) = (row(&herma, engine), herma.run(&["doctor", engine]));
        let admit = format!("herma admit engine {engine} --program FILE");
        assert!(fresh["next_step"].as_str().unwrap().contains(&format!("`{admit}`")), "{fresh:#}");
        assert!(doctor.stdout.contains(&admit), "{doctor:#?}");
    }
    let (run, on) = run_of_stub(&herma);
    assert!(!on && !run.report.engine_started);
    let next: Vec<_> = run.report.blockers.iter().map(|record| record.next_step.as_str()).collect();
    assert!(next.iter().any(|next| next.contains("`herma engines enable stub`")), "{next:#?}");

    let enabled = herma.run(&["engines", "enable", "stub"]);
    assert_eq!(enabled.code, Some(0), "{enabled:#?}");
    assert!(enabled.stdout.starts_with("`stub` is enabled\n"), "{enabled:#?}");
    assert!(
        enabled.stdout.contains("next: write its admission with `herma admit engine stub"),
        "{enabled:#?}"
    );
    assert_eq!(row(&herma, "stub")["enabled"], true);
    assert!(run_of_stub(&herma).1);
    let again = herma.json(&["engines", "enable", "stub", "--json"]);
    assert_eq!(again["engines"].as_array().unwrap().len(), 1, "{again:#}");

    let disabled = herma.run(&["engines", "disable", "stub"]);
    assert_eq!(
        (disabled.code, disabled.stdout.as_str()),
        (Some(0), "`stub` is disabled: no run of it starts any more\n")
    );
    assert_eq!(row(&herma, "stub")["enabled"], false);
    assert!(!run_of_stub(&herma).1);
}

#[test]
fn a_built_in_engine_has_no_switch() {
    let herma = Herma::new();
    let fake = row(&herma, "fake");
    assert_eq!((&fake["built_in"], &fake["enabled"]), (&true.into(), &true.into()));
    assert_eq!((&fake["admission"], &fake["proven_stage"]), (&"built_in".into(), &3.into()));
    assert!(fake["digest"].as_str().unwrap().starts_with("sha256:"), "{fake:#}");
    for word in ["enable", "disable"] {
        let ended = herma.run(&["engines", word, "fake"]);
        assert_eq!(ended.code, Some(2), "{ended:#?}");
        assert!(ended.stderr.starts_with("error: `fake` is part of herma and always on"), "{ended:#?}");
    }
    assert_eq!(herma.demo(&["--destination", "host"]).ended.code, Some(0));
}

#[test]
fn an_engine_that_is_not_there_is_refused_and_the_others_are_named() {
    let herma = Herma::new();
    for word in ["enable", "disable"] {
        let ended = herma.run(&["engines", word, "no-such-engine"]);
        assert_eq!(ended.code, Some(2), "{ended:#?}");
        assert_eq!(
            ended.stderr,
            "error: herma has no engine `no-such-engine`\nnext: there are: fake, stub, codex, claude, opencode, pi, hermes, case, acp\n"
        );
        let json = herma.run(&["engines", word, "no-such-engine", "--json"]).json();
        assert_eq!((&json["schema"], &json["exit_code"]), (&"herma.error/v1".into(), &2.into()));
        assert_eq!(herma.run(&["engines", word, "../stub"]).code, Some(2));
    }
}

#[test]
fn the_list_has_a_line_for_each_engine_and_what_it_lacks() {
    let herma = Herma::new();
    let listed = herma.run(&["engines", "list"]).stdout;
    let lines: Vec<&str> = listed.lines().filter(|line| !line.starts_with(' ')).collect();
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let [fake, stub, codex, ..] = lines[..] else { panic!("{listed}") };
    assert!(listed.contains("install it with `herma engines install codex`"), "{codex}");
    assert_eq!(herma.run(&["engines"]).stdout, listed, "without a word they are listed");
    assert_eq!(words(fake)[..5], ["fake", "0.1.0", "built", "in", "enabled"], "{fake}");
    assert!(fake.ends_with("built_in           stages 1 to 3"), "{fake}");
    assert_eq!(words(stub)[..4], ["stub", "0.1.0", "external", "disabled"], "{stub}");
    assert_eq!(words(codex)[..5], ["codex", "not", "installed", "external", "disabled"], "{codex}");
    assert!(stub.ends_with("no program            missing_admission  no stage proven"), "{stub}");
}

/// A switch is one engine's: a copy of its file under another name, or rubbish, switches nothing on.
#[test]
fn a_switch_that_was_not_made_by_herma_is_off() {
    let herma = Herma::new();
    let dir = herma.marked_home().join("engines");
    std::fs::create_dir_all(&dir).unwrap();
    for text in ["", "true", "{}", r#"{"engine":"fake","enabled_at":"2026-01-01T00:00:00Z"}"#] {
        std::fs::write(dir.join("stub.json"), text).unwrap();
        assert_eq!(row(&herma, "stub")["enabled"], false, "{text}");
    }
}

#[test]
fn missing_preconditions_of_an_agent_are_shown_with_the_command_that_fixes_them() {
    let herma = Herma::new();
    let ended = herma.run(&["doctor", "codex", "--json"]);
    assert_eq!(ended.code, Some(1), "{ended:#?}");
    let json = ended.json();
    let rows = json["items"].as_array().unwrap().iter();
    let found: Vec<_> =
        rows.map(|row| (row["name"].as_str().unwrap(), row["next_step"].as_str().unwrap_or("ok"))).collect();
    let expected = [
        ("program", "herma engines install codex"),
        ("admission", "herma admit engine codex, then herma admit sign engine codex"),
        ("switch", "herma engines enable codex"),
        ("sandbox", "ok"),
        ("proven stage", "herma prove --engine codex --stage 1"),
        (
            "model",
            "write the upstream into router.toml in herma's home, then herma admit model PROVIDER/MODEL",
        ),
    ];
    assert_eq!(found, expected);
    assert_eq!(herma.run(&["doctor", "no-such-engine"]).code, Some(2));
    // One that is only configured is installed in the same way, where its package is named.
    for (package, next) in [
        ("", "name its package in settings.yaml"),
        ("package: { pypi: some, version: 1.2.3 },", "herma engines install acp-some"),
    ] {
        herma.settings(&format!("acp: {{ some: {{ program: bin/some, {package} args: [acp] }} }}\n"));
        let json = herma.run(&["doctor", "acp-some", "--json"]).json();
        assert!(json["items"][0]["next_step"].as_str().unwrap().starts_with(next), "{json:#}");
        let version = if package.is_empty() { "configured" } else { "not installed" };
        let row = row(&herma, "acp-some");
        assert_eq!(row["version"], version);
        assert!(row["next_step"].as_str().unwrap().contains(next), "{row:#}");
        let everything = herma.run(&["doctor", "--json"]).json();
        let items = everything["items"].as_array().unwrap();
        let item = items.iter().find(|item| item["name"] == "engine acp-some").unwrap();
        assert!(item["ok"] == false && item["required"] == false, "{item:#}");
        assert_eq!(item["next_step"], json["items"][0]["next_step"]);
    }
}

#[test]
fn each_engine_declares_every_capability_and_the_list_has_them_in_a_line() {
    let herma = Herma::new();
    let (yes, translated, no) = ("native", "translated", "unsupported");
    for (engine, declared) in [
        ("fake", [no, yes, no, no, no, yes]),
        ("stub", [no, yes, no, no, no, yes]),
        ("codex", [yes, yes, no, yes, no, no]),
        ("claude", [yes, yes, no, yes, no, no]),
        ("opencode", [yes, yes, no, translated, no, no]),
        ("pi", [yes, yes, no, translated, no, no]),
        ("hermes", [translated, translated, no, translated, no, no]),
        ("case", [no, no, no, no, no, yes]),
        ("acp", [no, yes, yes, no, no, no]),
    ] {
        let names = ["resume", "structured_events", "acp", "tool_hooks", "mcp", "reviewer"];
        let declared: serde_json::Map<String, Value> =
            names.iter().zip(declared).map(|(name, word)| ((*name).to_owned(), word.into())).collect();
        assert_eq!(row(&herma, engine)["capabilities"], Value::from(declared), "{engine}");
    }
    herma.settings("acp: { some: { program: bin/some, args: [acp], sessions: [data] } }\n");
    assert_eq!(row(&herma, "acp-some")["capabilities"]["resume"], yes);
    let listed = herma.run(&["engines"]).stdout;
    let below = |engine: &str| {
        let mut lines = listed.lines().skip_while(|line| !line.starts_with(&format!("{engine} ")));
        lines.nth(1).unwrap_or_else(|| panic!("{listed}")).to_owned()
    };
    assert_eq!(
        below("opencode"),
        "        native: resume, structured_events; translated: tool_hooks; unsupported: acp, mcp, reviewer"
    );
    assert_eq!(
        below("case"),
        "        native: reviewer; unsupported: resume, structured_events, acp, tool_hooks, mcp"
    );
    for engine in ["fake", "stub", "codex", "claude", "opencode", "pi", "hermes", "case", "acp-some"] {
        assert!(below(engine).len() <= 100, "{}", below(engine));
    }
}

/// A run of a contract that needs this, with this engine: what its gate `engine_registered` says, if it does not hold.
fn needing(herma: &Herma, needs: &str, engine: &str) -> (Finished, Option<(String, String)>) {
    let contract = herma.contract(&[("needs", needs)]);
    let args = ["run", contract.to_str().unwrap(), "--engine", engine, "--destination", "host", "--json"];
    let run = herma.finished(&args);
    let decision: Value = serde_json::from_str(&run.bundle.text("decision.json")).unwrap();
    let missing = decision["missing_gates"].as_array().unwrap().iter();
    let gate = missing.clone().find(|missing| missing["gate"] == "engine_registered");
    let said = |key: &str| gate.and_then(|gate| gate[key].as_str()).unwrap_or_default().to_owned();
    let why = gate.map(|_| (said("reason"), said("next_step")));
    (run, why)
}

#[test]
fn a_contract_whose_engine_lacks_a_capability_is_blocked_and_names_engines_that_have_it() {
    let herma = Herma::new();
    let (run, why) = needing(&herma, "[tool_hooks, structured_events]", "fake");
    assert_eq!((run.ended.code, run.report.engine_started), (Some(3), false), "{:#?}", run.ended);
    let (reason, next) = why.unwrap();
    assert_eq!(
        reason,
        "`fake` lacks what the contract needs: `tool_hooks` (engines that have it: codex, claude, opencode, pi, hermes)"
    );
    assert_eq!(
        next,
        "Use an engine that has all that the contract `needs`: codex, claude, opencode, pi, hermes."
    );
    let report: Value = serde_json::from_str(&run.bundle.text("report.json")).unwrap();
    let expected = serde_json::json!({ "structured_events": "native", "tool_hooks": "unsupported" });
    assert_eq!(report["needs"], expected);
    assert_eq!(herma.run(&["verify", "last"]).code, Some(0));

    let (run, why) = needing(&herma, "[mcp, acp]", "fake");
    assert_eq!(run.ended.code, Some(3), "{:#?}", run.ended);
    let (reason, next) = why.unwrap();
    assert_eq!(
        reason,
        "`fake` lacks what the contract needs: `acp` (engines that have it: acp); `mcp`, which no engine has"
    );
    assert_eq!(next, "Take it out of the contract's `needs`: no engine has all of them.");
    let checked = herma.json(&["contract", "check", "contracts/contract.md", "--json"]);
    let warnings = serde_json::json!([
        "engine_not_admitted: unless the engine has `mcp`; see `herma engines`",
        "engine_not_admitted: unless the engine has `acp`; see `herma engines`",
        "provider_unavailable: with any engine that asks a model: the contract names none under `model`",
    ]);
    assert_eq!(checked["warnings"], warnings);
}

#[test]
fn a_report_says_how_what_the_contract_needs_is_supported() {
    let herma = Herma::new();
    let (run, why) = needing(&herma, "[structured_events]", "fake");
    assert_eq!((run.ended.code, why), (Some(0), None), "{:#?}", run.ended);
    let report: Value = serde_json::from_str(&run.bundle.text("report.json")).unwrap();
    assert_eq!(report["needs"], serde_json::json!({ "structured_events": "native" }));
    assert!(herma.run(&["show", "--full"]).stdout.contains("| needs | `structured_events`: native |"));
    assert_eq!(herma.run(&["verify", "last"]).code, Some(0));

    // Other gates are missing; this one holds, and the translation is reported all the same.
    let (run, why) = needing(&herma, "[tool_hooks, resume]", "pi");
    assert_eq!((run.ended.code, why), (Some(3), None), "{:#?}", run.ended);
    let report: Value = serde_json::from_str(&run.bundle.text("report.json")).unwrap();
    assert_eq!(report["needs"], serde_json::json!({ "resume": "native", "tool_hooks": "translated" }));
    let words = "`tool_hooks`: translated, by a program of herma's";
    assert!(run.bundle.text("report.md").contains(words), "{}", run.bundle.text("report.md"));
    assert!(herma.run(&["show", "--full"]).stdout.contains(words));
    assert_eq!(herma.run(&["verify", "last"]).code, Some(0));
    assert!(herma.demo(&["--destination", "host"]).report.needs.is_empty());
}

#[test]
fn an_impossible_installation_is_refused_before_anything_is_fetched() {
    let herma = Herma::new();
    let refused = |args: &[&str], error: &str| {
        let ended = herma.run(&[&["engines", "install"], args].concat());
        assert_eq!(ended.code, Some(2), "{ended:#?}");
        assert!(ended.stderr.contains(error), "{ended:#?}");
    };
    refused(&["no-such-engine"], "herma has no engine `no-such-engine`");
    refused(&["stub"], "the engine `stub` is installed from no registry");
    refused(&["codex", "--pin", "latest"], "`latest` is not one exact version");
    // An agent that is only configured is installed where its settings name its package.
    refused(&["acp"], "describe an agent under `acp` in settings.yaml");
    let agent = |package: &str| format!("acp: {{ some: {{ program: bin/some, {package} args: [acp] }} }}\n");
    herma.settings(&agent(""));
    refused(&["acp-some"], "`package: { npm: NAME, version: 1.2.3 }`");
    herma.settings(&agent("package: { npm: some, version: 1.2.3 },"));
    refused(&["acp-some", "--pin", "latest"], "`latest` is not one exact version");
    herma.file("user/.npmrc", "registry=http://r.example/\n");
    refused(&["acp-some"], "`http://r.example/`, which is not an https address");
    refused(&["codex"], "`http://r.example/`, which is not an https address");
    herma.assert_no_run();
    assert!(!herma.home().join("installed").exists());
}

/// An agent could not do anything without a model, so a contract that names none is blocked before it starts.
#[test]
fn an_agent_that_asks_a_model_does_not_run_without_one() {
    let herma = Herma::new();
    let contract = herma.contract(&[]);
    let finished = herma.finished(&["run", contract.to_str().unwrap(), "--engine", "claude", "--json"]);
    assert!(!finished.report.engine_started);
    let said: Vec<&str> = finished.report.blockers.iter().map(|record| record.detail.as_str()).collect();
    assert!(
        said.iter().any(|why| why.contains("`claude` asks a model, and the contract names none")),
        "{said:#?}"
    );
}

#[test]
fn a_run_with_a_mistyped_engine_is_no_run_and_names_the_one_that_was_meant() {
    let herma = Herma::new();
    let ended = herma.run(&["run", "fixture:string-slugify", "--engine", "cluade"]);
    assert_eq!(ended.code, Some(2), "{ended:#?}");
    let said = "error: herma has no engine `cluade`\nnext: did you mean `claude`? there are: fake, ";
    assert!(ended.stderr.starts_with(said), "{ended:#?}");
    herma.assert_no_run();
}
