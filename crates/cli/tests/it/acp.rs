//! The engine `acp`, from outside: an agent that only the operator's settings know earns its stages, is answered, and ends as
//! what it is. The agent is a stand-in that speaks the protocol; `agents` drives a real one.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use herma_model::{Blocker, EventType};
use serde_json::Value;

use crate::kit::{Finished, Herma, processes_of};

const SETTINGS: &str = "\
acp:
  stand-in:
    args: [speak, '{model}']
    asks: chat
    token: STAND_IN_KEY
    env: { MODEL: '{model}', BASE: '{router}' }
    files: { stand-in/config: \"{model}\\n\" }
";

const ENGINE: &str = "acp-stand-in";

const ROUTER: &str =
    "[upstreams.rehearsal]\nprovider = \"scripted\"\nscripts = [\"case.yaml\", \"present.yaml\"]\n";

const PRESENT: &str = "name: present\nmodels: [m]\nrepeat: true\nturns: [say: I am there.]\n";

/// A home where the stand-in is configured, admitted and switched on, and where a script is the model `rehearsal/m`.
fn home() -> Herma {
    let mut herma = Herma::new();
    herma.let_in_by_token("robin");
    herma.settings(SETTINGS);
    let program = herma.file("home/programs/stand-in", include_str!("acp/stand_in.py"));
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let program = program.to_str().unwrap();
    let words = ["admit", "engine", ENGINE, "--json", "--program", program, "--identity=stand-in 1"];
    let more = [
        "--source=a test",
        "--pin=1",
        "--retrieval=none",
        "--license=Apache-2.0",
        "--license-resolved=true",
        "--review-trigger=digest_change",
    ];
    let drafted = herma.json(&[&words[..], &more].concat());
    assert!(drafted["lacks"].is_null(), "{drafted:#}");
    assert_eq!(herma.sign("engine", ENGINE)["status"], "admitted");
    herma.json(&["engines", "enable", ENGINE, "--json"]);
    herma.file("home/router.toml", ROUTER);
    herma.file("home/present.yaml", PRESENT);
    let words =
        ["admit", "model", "rehearsal/m", "--json", "--network", "loopback", "--credential-source", "none"];
    herma.json(&[&words[..], &["--review-trigger", "herma_version=0.1"]].concat());
    assert_eq!(herma.sign("model", "rehearsal/m")["status"], "admitted");
    herma
}

/// A run in which the model takes these turns.
fn played(herma: &Herma, turns: &str, limits: &str) -> Finished {
    let head =
        "name: case\nmodels: [m]\nmatch: { marker: slugify keeps outer and repeated whitespace }\nturns:\n";
    herma.file("home/case.yaml", format!("{head}{turns}"));
    let contract = herma.contract(&[("model", "{ provider: rehearsal, model: m }"), ("limits", limits)]);
    let args = ["run", contract.to_str().unwrap(), "--engine", ENGINE, "--json"];
    let finished = herma.finished_by(|| herma.run_patiently(&args));
    assert_eq!(processes_of(finished.report.run_id), [0_u32; 0]);
    finished
}

fn data_of(finished: &Finished, kind: EventType) -> Vec<Value> {
    let events = finished.bundle.events();
    events.into_iter().filter(|event| event.kind == kind).map(|event| Value::Object(event.data)).collect()
}

const PATIENT: &str = "{ total: 5m, startup: 1m, idle: 1m }";

const FIX: &str = r#"
  - call:
      write:
        path: slugify.sh
        text: |
          slugify() {
              printf '%s' "$1" | tr 'A-Z' 'a-z' | tr -cs 'a-z0-9' '-' | sed 's/^-//; s/-$//'
          }
  - say: It is done.
"#;

#[test]
fn an_agent_that_only_the_settings_know_earns_its_stages_and_is_answered_by_herma() {
    let herma = home();
    for stage in ["1", "2"] {
        let proven = herma.run_patiently(&["prove", "--engine", ENGINE, "--stage", stage, "--json"]);
        assert_eq!(proven.code, Some(0), "{proven:#?}");
    }

    // A push is refused, the model hears of it, and that it was tried stays in the verdict.
    let turns = format!("  - call: {{ shell: ls }}\n  - call: {{ shell: git push origin main }}{FIX}");
    let pushed = played(&herma, &turns, PATIENT);
    pushed.assert_only(Blocker::ForbiddenAction);
    assert_eq!(pushed.changed(), ["slugify.sh"]);
    let calls = data_of(&pushed, EventType::ToolEvaluated);
    let told: Vec<_> =
        calls.iter().map(|call| (&call["tool"], &call["command"], &call["permission"])).collect();
    let expected = [
        ("shell", "ls", "allowed".into()),
        ("shell", "git push origin main", "denied".into()),
        ("edit", "slugify.sh", Value::Null),
    ];
    let expected: Vec<(Value, Value, Value)> =
        expected.map(|(tool, command, said)| (tool.into(), command.into(), said)).into();
    assert_eq!(told, expected.iter().map(|(a, b, c)| (a, b, c)).collect::<Vec<_>>());
    let said = data_of(&pushed, EventType::EngineMessage);
    assert!(said.iter().any(|said| said["session"] == "stand-in"), "{said:#?}");
    assert!(said.iter().any(|said| said["text"] == "It is done. "), "{said:#?}");
    assert!(said.iter().any(|said| said["input_tokens"] == 7), "{said:#?}");
    assert_eq!(data_of(&pushed, EventType::PlanUpdated)[0]["items"], serde_json::json!(["mend it"]));

    let failed = played(&herma, "  - error: 401\n", PATIENT);
    let found: Vec<Blocker> = failed.report.blockers.iter().map(|record| record.blocker).collect();
    assert_eq!(found, [Blocker::EngineFailed, Blocker::NoDiff]);

    // At a limit it is told to stop, before anything is killed.
    let endless =
        played(&herma, "  - { say: On and on., forever: ping }\n", "{ total: 3s, startup: 1m, idle: 1m }");
    let found: Vec<Blocker> = endless.report.blockers.iter().map(|record| record.blocker).collect();
    assert!(found.contains(&Blocker::TimeoutTotal), "{found:?}");
    assert!(endless.bundle.text("engine/stdout.log").contains("\"cancelled\""));

    // Another argument is another engine: nothing of what was let in holds for it.
    herma.settings(&SETTINGS.replace("speak", "shout"));
    let changed = played(&herma, FIX, PATIENT);
    let found: Vec<Blocker> = changed.report.blockers.iter().map(|record| record.blocker).collect();
    assert!(found.contains(&Blocker::EngineDigestMismatch), "{found:?}");
    assert!(!changed.report.engine_started);
}

#[test]
fn without_an_agent_acp_is_a_name_and_says_what_to_do() {
    let herma = Herma::new();
    let listed = herma.run(&["engines"]).stdout;
    let lines: Vec<&str> = listed.lines().collect();
    let at = lines.iter().position(|line| line.starts_with("acp ")).unwrap();
    assert!(lines[at].contains("not configured"), "{listed}");
    let next = "next: describe an agent under `acp` in settings.yaml in herma's home";
    assert!(lines[at + 1].trim().ends_with(next), "{listed}");
    let admitted = herma.run(&["admit", "engine", "acp", "--program", "/bin/true"]);
    assert_eq!(admitted.code, Some(2), "{admitted:#?}");
    assert!(admitted.stderr.starts_with("error: `acp` is not configured\n"), "{admitted:#?}");
    let doctor = herma.run(&["doctor", "acp", "--json"]).json();
    assert_eq!(
        doctor["items"][0]["next_step"],
        "describe an agent under `acp` in settings.yaml in herma's home"
    );
    herma.settings(SETTINGS);
    let listed = herma.run(&["engines"]).stdout;
    assert!(listed.contains("\nacp-stand-in ") && !listed.contains("\nacp "), "{listed}");
}
