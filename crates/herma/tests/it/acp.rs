//! The engine `acp`, from outside: an agent that only the operator's settings know earns its stages, is answered, and ends as
//! what it is. The agent is a stand-in that speaks the protocol; `agents` drives a real one.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use herma_core::{Blocker, EventType};
use serde_json::Value;

use crate::kit::{Finished, Herma, Repository, processes_of};

const SETTINGS: &str = "\
acp:
  stand-in:
    args: [speak, '{model}']
    asks: chat
    token: STAND_IN_KEY
    env: { MODEL: '{model}', BASE: '{router}' }
    files: { stand-in/config: \"{model}\\n\" }
";

pub(crate) const ENGINE: &str = "acp-stand-in";

const ROUTER: &str =
    "[upstreams.rehearsal]\nprovider = \"scripted\"\nscripts = [\"case.yaml\", \"present.yaml\"]\n";

const PRESENT: &str = "name: present\nmodels: [m]\nrepeat: true\nturns: [say: I am there.]\n";

/// A home where the stand-in is configured, admitted and switched on, and where a script is the model `rehearsal/m`.
pub(crate) fn home() -> Herma {
    home_with(SETTINGS)
}

fn home_with(settings: &str) -> Herma {
    let mut herma = Herma::new();
    herma.let_in_by_token("robin");
    herma.settings(settings);
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
    played_with(herma, turns, limits, &[])
}

fn played_with(herma: &Herma, turns: &str, limits: &str, terms: &[(&str, &str)]) -> Finished {
    let head =
        "name: case\nmodels: [m]\nmatch: { marker: slugify keeps outer and repeated whitespace }\nturns:\n";
    herma.file("home/case.yaml", format!("{head}{turns}"));
    let contract = herma
        .contract(&[&[("model", "{ provider: rehearsal, model: m }"), ("limits", limits)], terms].concat());
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
    prove(&herma, &["1", "2"]);

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
    assert_eq!(data_of(&pushed, EventType::PlanUpdated)[0]["items"], serde_json::json!(["fix it"]));
    // Each call that the model asked for was asked about or told of.
    assert_eq!(tool_calls(&pushed), ((2, 1, 1), (3, 0, 0)));

    let failed = played(&herma, "  - error: 401\n", PATIENT);
    let found: Vec<Blocker> = failed.report.blockers.iter().map(|record| record.blocker).collect();
    assert_eq!(found, [Blocker::EngineFailed, Blocker::NoDiff]);

    // Its settings name no place for sessions, so nothing was kept of it.
    let refused = herma.run(&["resume", &failed.report.run_id.to_string()]);
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    assert!(refused.stderr.contains("the engine `acp-stand-in` cannot continue a session"), "{refused:#?}");

    // At a limit herma asks it to stop before it kills anything.
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

/// The tool calls of the report: asked about, denied and reported; and those that the model requested, of the engine and of
/// herma, with the difference.
fn tool_calls(finished: &Finished) -> ((u64, u64, u64), (u64, u64, i64)) {
    let used = finished.report.tools.as_ref().unwrap();
    let calls = used.model_calls.unwrap();
    ((used.asked, used.denied, used.unasked), (calls.asked_for, calls.at_gates, calls.unreconciled))
}

#[test]
fn an_unreported_call_of_the_model_is_in_the_report_and_blocks_nothing() {
    let herma = home();
    prove(&herma, &["1", "2"]);
    // A model that also calls the tool that herma gives it at the gates. The stand-in tells of no file that it reads.
    let present = "name: present\nmodels: [m]\nrepeat: true\nside: { say: I am there. }\n\
        turns: [call: { shell: echo ready }]\n";
    herma.file("home/present.yaml", present);
    let turns = format!("  - call: {{ read: slugify.sh }}\n  - call: {{ shell: ls }}{FIX}");
    let finished = played(&herma, &turns, PATIENT);
    finished.assert_pass();
    assert_eq!(tool_calls(&finished), ((1, 0, 1), (3, 1, 1)));
    let shown = herma.run(&["show", "--full"]).stdout;
    let line = "2 made, 1 checked by hook (advisory), 0 denied; the model requested 3, 1 more than were made";
    assert!(shown.contains(line), "{shown}");
}

/// Leaves a failing result, and then fixes it: the conversation decides the next step.
const HALVES: &str = r#"
  - call: { write: { path: slugify.sh, text: "slugify() { echo half; }\n" } }
  - say: It is half done.
"#;

#[test]
fn an_agent_continues_its_session_where_the_settings_say_where_it_is() {
    let kept = SETTINGS.replace("env: { ", "sessions: [kept]\n    env: { LOADS: 'yes', ");
    let herma = home_with(&kept);
    prove(&herma, &["1", "2"]);
    let first = played(&herma, &format!("{HALVES}{FIX}"), PATIENT);
    first.assert_only(Blocker::VerificationFailed);
    let run = first.report.run_id.to_string();
    // It is `herma resume RUN --message TEXT` in the words of `herma do`.
    let resume = ["do", "--continue", &run, "the words of a person", "--json"];
    let second = herma.finished_by(|| herma.run_patiently(&resume));
    second.assert_pass();
    let prepared = data_of(&second, EventType::WorkspacePrepared);
    let message = prepared[0]["resumed"]["message"].as_str().unwrap();
    assert!(message.contains("the words of a person"), "{message}");
    assert_eq!(second.report.parent_run, Some(first.report.run_id));
    let said = data_of(&second, EventType::EngineMessage);
    let texts: Vec<&str> = said.iter().filter_map(|said| said["text"].as_str()).collect();
    assert_eq!(texts, ["It is done. "], "what it told again is not told twice");

    // One that does not offer it has nothing to go on with.
    let herma = home_with(&kept.replace("LOADS: 'yes'", "LOADS: 'no'"));
    prove(&herma, &["1", "2"]);
    let run = played(&herma, FIX, PATIENT).report.run_id.to_string();
    let refused = herma.run(&["resume", &run]);
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    assert!(refused.stderr.contains("offers no way to go on with it"), "{refused:#?}");
}

#[test]
fn project_files_that_an_agent_would_run_are_hidden_and_not_reported_missing() {
    let herma = home_with(&SETTINGS.replace("asks:", "hides: [.own]\n    asks:"));
    prove(&herma, &["1", "2", "3"]);
    let repository = Repository::of_fixture(&herma, "string-slugify");
    let own = repository.dir.join(".own");
    fs::create_dir_all(own.join("plugins")).unwrap();
    fs::write(own.join("plugins/x.js"), "runs\n").unwrap();
    repository.commit("what the agent would run");
    // It leaves a file that it may not, unless the directory is empty, cannot be written, and its own git misses nothing.
    let look = r#"'test -z "$(ls -A .own)" && ! touch .own/x && test -z "$(git status --porcelain)" || touch wrong'"#;
    let fix = format!("  - call: {{ shell: {look} }}{FIX}");
    let target = [("target", "{ repo: ../repo }"), ("stage", "3")];
    let hidden = played_with(&herma, &fix, PATIENT, &target);
    hidden.assert_pass();
    assert_eq!(hidden.changed(), ["slugify.sh"]);

    // Behind a link could lie anything of the tree.
    fs::rename(&own, repository.dir.join("elsewhere")).unwrap();
    std::os::unix::fs::symlink("elsewhere", &own).unwrap();
    repository.commit("the same behind a link");
    let blocked = played_with(&herma, FIX, PATIENT, &target);
    blocked.assert_only(Blocker::DirtyStartingTree);
    assert!(!blocked.report.engine_started);
    assert!(
        blocked.report.blockers[0].detail.starts_with("`.own` is a link"),
        "{:?}",
        blocked.report.blockers
    );
}

fn prove(herma: &Herma, stages: &[&str]) {
    for stage in stages {
        let proven = herma.run_patiently(&["prove", "--engine", ENGINE, "--stage", stage, "--json"]);
        assert_eq!(proven.code, Some(0), "{}\n{}", proven.stdout, how_they_ended(herma));
    }
}

/// The result of every run, and the output of its engine: a proof reports only runs that ended otherwise than required.
fn how_they_ended(herma: &Herma) -> String {
    let told = |run| {
        let bundle = herma.bundle(run);
        let report = bundle.report();
        let logs = ["engine/stdout.log", "engine/stderr.log"]
            .map(|log| fs::read_to_string(bundle.dir.join(log)).unwrap_or_default());
        format!("{run}: {:?} {:?} {logs:#?}\n", report.blockers, report.engine_exit)
    };
    herma.runs().into_iter().map(told).collect()
}

#[test]
fn without_an_agent_acp_is_a_name_and_says_what_to_do() {
    let herma = Herma::new();
    let listed = herma.run(&["engines"]).stdout;
    let lines: Vec<&str> = listed.lines().collect();
    let at = lines.iter().position(|line| line.starts_with("acp ")).unwrap();
    assert!(lines[at].contains("not configured"), "{listed}");
    let next = "next: describe an agent under `acp` in settings.yaml in herma's home";
    let mut below = lines[at + 1..].iter().take_while(|line| line.starts_with(' '));
    assert!(below.any(|line| line.trim().ends_with(next)), "{listed}");
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
