//! A process inside the sandbox can ask at the socket, and nothing else.

use std::net::Shutdown;

use herma_core::{Event, Fault, Stage};
use herma_engines::hook;
use herma_evidence::{Bundle, Redactor};
use herma_policy::PolicyFile;
use serde_json::json;

use super::*;
use crate::SystemClock;

const RUN: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

struct World {
    dir: tempfile::TempDir,
    events: Arc<EventLog>,
    governance: RunGovernance,
}

/// A question for a child whose contract can be read.
fn asked_for_child() -> String {
    let contract = "---\nid: part\ntitle: t\ntarget: { repo: . }\nstage: 3\nallowed_paths: [a]\n---\nbrief\n";
    json!({ "child_run": { "contract": contract, "engine": "fake" } }).to_string()
}

fn world(fault: Option<Fault>) -> World {
    world_with(fault, &[])
}

fn world_with(fault: Option<Fault>, operators: &[PolicyFile]) -> World {
    let dir = tempfile::tempdir().unwrap();
    let bundle = Bundle::create(dir.path().join("bundle"), Arc::new(SystemClock), fault).unwrap();
    let events = Arc::new(EventLog::create(&bundle, RUN.parse().unwrap(), Redactor::default()));
    let asker = PolicyRequester {
        run: None,
        engine: "claude".parse().unwrap(),
        contract: "fix-it".to_owned(),
        above: Vec::new(),
        stage: Stage::CopiedRepo,
        forbidden: Action::BUILT_IN.into(),
        network: false,
    };
    let policies = Arc::new(Policies::compile(operators).unwrap());
    let governance =
        RunGovernance::open(&dir.path().join("governance"), policies, asker, Arc::clone(&events)).unwrap();
    World { dir, events, governance }
}

impl World {
    fn connect(&self) -> UnixStream {
        UnixStream::connect(self.governance.socket()).unwrap()
    }

    /// The answer to an agent's hook.
    fn ask(&self, command: &str) -> ToolAnswer {
        let call = json!({ "tool_name": "Bash", "tool_input": { "command": command } }).to_string();
        hook::ask(call.as_bytes(), self.governance.socket())
    }

    /// The answer of the socket to these bytes.
    fn say(&self, bytes: &[u8]) -> String {
        let mut caller = self.connect();
        // A question that is longer than the limit is not read to its end.
        let _ = caller.write_all(bytes);
        let _ = caller.shutdown(Shutdown::Write);
        let mut answer = String::new();
        let _ = caller.read_to_string(&mut answer);
        answer
    }

    fn close(self) -> (Tally, Vec<Event>) {
        let Self { dir, events, governance } = self;
        let tally = governance.close().unwrap();
        drop(dir);
        (tally, events.events())
    }
}

#[test]
fn a_call_is_judged_written_down_and_answered() {
    let world = world(None);
    assert!(world.ask("ls").allowed);
    let answer = world.ask("git push origin main");
    assert_eq!(answer, ToolAnswer::no("the contract forbids it (rule herma.contract)"));
    let (tally, events) = world.close();
    assert_eq!((tally.asked, tally.denied, tally.unwritten), (2, 1, None));
    assert_eq!(tally.attempted, [Action::Push].into());
    let told: Vec<_> = events.iter().map(|event| json!(event.data)).collect();
    assert_eq!(
        told,
        [
            json!({
                "tool": "Bash", "command": "ls", "action": "shell", "actions": [], "forbidden": [],
                "permission": "allowed", "rules": ["herma.copy.work"], "asked_by": "hook",
            }),
            json!({
                "tool": "Bash", "command": "git push origin main", "action": "shell", "actions": ["push"],
                "forbidden": ["push"], "permission": "denied", "rules": ["herma.contract"], "asked_by": "hook",
                "reason": "the contract forbids it (rule herma.contract)",
            }),
        ]
    );
}

#[test]
fn a_secret_in_a_call_is_not_written_down() {
    let world = world(None);
    let secret = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    world.ask(&format!("curl -H 'authorization: bearer {secret}' x"));
    let (_, events) = world.close();
    assert_eq!(events.len(), 1);
    assert!(!serde_json::to_string(&events).unwrap().contains(&secret));
}

#[test]
fn nonsense_is_a_no_and_changes_nothing() {
    let world = world(None);
    let long = vec![b'x'; 3 << 20];
    let unknown = br#"{"tool":"x","action":"shell","subject":"ls","allow":true}"#;
    let action = br#"{"tool":"x","action":"sudo","subject":"ls"}"#;
    for bytes in [&b""[..], b"nonsense", b"{}", b"\0\xff", &long, unknown, action] {
        let answer = world.say(bytes);
        // To who sent too much nothing may get through any more.
        assert!(answer.is_empty() || answer.starts_with("{\"allowed\":false"), "{answer}");
    }
    assert!(world.ask("ls").allowed);
    let (tally, events) = world.close();
    assert_eq!((tally.asked, events.len()), (1, 1));
}

#[test]
fn callers_that_hold_all_connections_time_out_and_the_next_is_served() {
    let world = world(None);
    let mut held: Vec<UnixStream> = (0..2 * THREADS).map(|_| world.connect()).collect();
    for silent in &mut held {
        silent.write_all(b"{").unwrap();
    }
    let answered = (0..10).any(|_| world.ask("ls").allowed);
    assert!(answered, "nobody is served any more");
    let (tally, _) = world.close();
    assert!(tally.asked >= 1);
}

#[test]
fn ten_thousand_callers_do_not_stop_it_and_fill_no_disk() {
    let world = world(None);
    let call = |command: &str| {
        serde_json::to_vec(&json!({ "tool": "x", "action": "shell", "subject": command })).unwrap()
    };
    let (large, forbidden) = (call(&"x".repeat(16 << 10)), call("git push"));
    thread::scope(|scope| {
        for part in 0..8 {
            let (world, large, forbidden) = (&world, &large, &forbidden);
            scope.spawn(move || {
                for at in 0..1_250 {
                    match at % 10 {
                        0 if part % 2 == 0 => drop(world.say(large)),
                        0 => drop(world.say(forbidden)),
                        // A caller that connects and disconnects.
                        _ => drop(world.connect()),
                    }
                }
            });
        }
    });
    assert!(world.ask("ls").allowed);
    let (tally, events) = world.close();
    assert_eq!((tally.asked, tally.denied), (1_001, 500));
    let bytes: usize = events.iter().map(|event| serde_json::to_vec(event).unwrap().len()).sum();
    assert!(bytes < 32 << 20, "{bytes}");
    assert!(events.iter().filter(|event| event.data["permission"] == "denied").count() >= 500);
}

#[test]
fn it_ends_though_somebody_still_holds_a_line() {
    let world = world(None);
    let held: Vec<UnixStream> = (0..100).map(|_| world.connect()).collect();
    let (tally, _) = world.close();
    assert_eq!(tally.asked, 0);
    drop(held);
}

#[test]
fn a_call_that_cannot_be_recorded_is_denied() {
    let world = world(Some(Fault::FailWrite("events.jsonl".to_owned())));
    assert_eq!(world.ask("ls"), ToolAnswer::no("it could not be recorded"));
    let (tally, _) = world.close();
    assert!(tally.unwritten.unwrap().starts_with("events.jsonl"));
}

#[test]
fn a_child_that_is_asked_for_in_vain_is_refused_and_written_down() {
    let world = world(None);
    let asked = asked_for_child();
    for (text, why) in [
        (asked.as_str(), "no engine of this run is at work"),
        (r#"{"child_run":{"contract":"","engine":"fake"}}"#, "its contract: "),
        (r#"{"child_run":{"contract":"","engine":"fake","depth":0}}"#, "unknown field `depth`"),
        (r#"{"child_run":{"contract":"","engine":"fake"},"parent_run":"x"}"#, "unknown field `parent_run`"),
        (r#"{"child_run":7}"#, "invalid type"),
    ] {
        let answer = world.say(text.as_bytes());
        assert!(answer.starts_with("{\"refused\"") && answer.contains(why), "{text}: {answer}");
    }
    let (tally, events) = world.close();
    assert_eq!((tally.asked, tally.refused, events.len()), (0, 5, 5));
    assert!(
        events.iter().all(|event| event.data["permission"] == "denied" && event.source == Source::Harness)
    );
}

#[test]
fn a_child_that_policy_denies_gets_the_reason_and_no_tool_call_is_counted() {
    let rule = "@id(\"no-children\") @reason(\"not here\")\n\
                forbid (principal, action == Action::\"spawn\", resource in Engine::\"fake\");";
    let file = PolicyFile { name: "own.cedar".to_owned(), text: rule.to_owned() };
    let world = world_with(None, &[file]);
    let answer = world.say(asked_for_child().as_bytes());
    assert_eq!(answer, r#"{"refused":"not here (rule no-children)"}"#);
    let (tally, events) = world.close();
    assert_eq!((tally.asked, tally.denied, tally.refused), (0, 0, 1));
    let told: Vec<_> = events.iter().map(|event| json!(event.data)).collect();
    assert_eq!(
        told,
        [json!({
            "tool": "herma run", "command": "part", "action": "spawn", "actions": [], "forbidden": [],
            "permission": "denied", "rules": ["no-children"], "asked_by": "herma", "engine": "fake",
            "reason": "not here (rule no-children)",
        })]
    );
}
