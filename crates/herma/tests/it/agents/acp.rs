//! A real agent that speaks the Agent Client Protocol, known to herma by the operator's settings alone: `OpenCode` as
//! `opencode acp`.

use std::fs;
use std::path::Path;

use herma_core::{Blocker, Event, EventType};
use herma_engines::{Package, opencode};

use super::home::make_removable;
use super::{climbing, rows, transcribing};
use crate::kit::{Finished, Herma, processes_of};

const ENGINE: &str = "acp-opencode";

/// The operator's settings. The model's address and the token come from the run.
fn settings(package: &Package) -> String {
    let program = package.build().program;
    let off =
        ["AUTOUPDATE", "CLAUDE_CODE", "DEFAULT_PLUGINS", "LSP_DOWNLOAD", "MODELS_FETCH", "PROJECT_CONFIG"];
    let off: Vec<String> = off.iter().map(|what| format!("OPENCODE_DISABLE_{what}: '1'")).collect();
    format!(
        r#"
acp:
  opencode:
    package: {{ npm: {}, version: {} }}
    program: {program}
    args: [acp, --pure]
    asks: chat
    sessions: [data]
    hides: [.opencode]
    env:
      OPENCODE_CONFIG: '{{home}}/opencode.json'
      XDG_CONFIG_HOME: '{{home}}/config'
      XDG_DATA_HOME: '{{home}}/data'
      XDG_CACHE_HOME: '{{home}}/cache'
      XDG_STATE_HOME: '{{home}}/state'
      {}
    files:
      opencode.json: |
        {{ "model": "herma/{{model}}", "small_model": "herma/{{model}}", "enabled_providers": ["herma"],
          "share": "disabled", "autoupdate": false, "snapshot": false,
          "permission": {{ "bash": "ask", "webfetch": "deny" }},
          "provider": {{ "herma": {{ "npm": "@ai-sdk/openai-compatible", "name": "herma",
            "options": {{ "baseURL": "{{router}}/v1", "apiKey": "{{env:HERMA_ROUTER_TOKEN}}" }},
            "models": {{ "{{model}}": {{ "name": "{{model}}" }} }} }} }} }}
"#,
        package.name,
        package.version,
        off.join("\n      ")
    )
}

/// A home where the agent is configured, installed by what its settings say of it, admitted and switched on.
fn home() -> Herma {
    let package = &opencode::PACKAGE;
    let mut herma = Herma::new();
    herma.let_in_by_token("robin");
    herma.settings(&settings(package));
    let made = herma.install(ENGINE);
    assert_eq!(made["version"], package.version, "{made:#}");
    // The package says its license; what the program says of itself, only a person knows.
    assert_eq!(made["lacks"], "missing: `license_resolved`, `identity`", "{made:#}");
    make_removable(Path::new(made["tree"].as_str().unwrap()));
    let shown = herma.json(&["admissions", "show", "engine", ENGINE, "--json"]);
    for said in ["npm opencode-ai", "npm install --ignore-scripts opencode-ai@", package.license] {
        assert!(shown.to_string().contains(said), "{said}: {shown:#}");
    }
    let identity = format!("--identity={}", package.version);
    let drafted = herma.json(&["admit", "engine", ENGINE, "--json", &identity, "--license-resolved=true"]);
    assert!(drafted["lacks"].is_null(), "{drafted:#}");
    assert_eq!(herma.sign("engine", ENGINE)["status"], "admitted");
    herma.json(&["engines", "enable", ENGINE, "--json"]);
    herma
}

/// A run in which the model takes these turns.
fn played(herma: &Herma, script: &str) -> Finished {
    fs::write(herma.home().join("case.yaml"), script).unwrap();
    let contract =
        herma.contract(&[("model", "{ provider: rehearsal, model: m }"), ("limits", rows::LIMITS)]);
    let args = ["run", contract.to_str().unwrap(), "--engine", ENGINE, "--json"];
    let finished = herma.finished_by(|| herma.run_patiently(&args));
    assert_eq!(processes_of(finished.report.run_id), [0_u32; 0]);
    finished
}

/// The blockers, except those of hosts that it contacted by itself.
fn blockers(finished: &Finished) -> Vec<Blocker> {
    let all = finished.report.blockers.iter().map(|record| record.blocker);
    all.filter(|blocker| *blocker != Blocker::EgressDenied).collect()
}

#[test]
fn every_row_of_every_agent_holds_also_for_one_that_is_only_configured() {
    let herma = home();
    climbing::proves_five_stages(&herma, ENGINE);
    herma.with_rehearsal();
    let fixed = played(&herma, &rows::FIXES.script());
    assert_eq!(blockers(&fixed), []);
    for kind in [EventType::EngineMessage, EventType::ToolEvaluated] {
        assert!(fixed.bundle.has_event(kind));
    }
    transcribing::it_reads(&herma, &["slugify.sh", "agent    It is done."]);
    // It asks before it runs a command, is denied, and ends its turn there.
    let push = "turns:\n  - call: { shell: git push origin main }";
    let pushed = played(&herma, &rows::FIXES.script().replace("turns:", push));
    assert_eq!(blockers(&pushed), [Blocker::NoDiff, Blocker::ForbiddenAction]);
    let denied = |event: &Event| event.data.get("permission").is_some_and(|said| said == "denied");
    assert!(pushed.bundle.events().iter().any(denied));
    // It continues its session, which is where the settings say.
    let first = played(&herma, &rows::HALVES.script());
    assert_eq!(blockers(&first), [Blocker::VerificationFailed]);
    let run = first.report.run_id.to_string();
    let second = herma.finished_by(|| herma.run_patiently(&["resume", &run, "--json"]));
    assert_eq!(blockers(&second), []);
    assert_eq!(
        (second.report.parent_run, second.changed()),
        (Some(first.report.run_id), vec!["slugify.sh".to_owned()])
    );
    // Without a model it fails, whatever it ends with.
    let turns = "\n  - error: 401\nafterwards: none\n";
    let head = rows::FIXES.script().split("turns:").next().unwrap().to_owned();
    let refused = played(&herma, &format!("{head}turns:{turns}"));
    assert_eq!(blockers(&refused), [Blocker::EngineFailed, Blocker::NoDiff]);
}
