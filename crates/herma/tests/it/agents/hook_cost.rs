//! The cost of a hook for each tool call: `herma hook` at the socket of a run beside a start of herma that does nothing.

#![allow(clippy::disallowed_types, reason = "it starts the hook as an agent does")]
#![allow(clippy::disallowed_macros, reason = "it prints what it measured")]

use std::ffi::OsStr;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use herma_core::contract::Action;
use herma_core::{EventType, Stage};
use herma_evidence::{Bundle, EventLog, Redactor};
use herma_harness::{RunGovernance, SystemClock};
use herma_policy::{Policies, PolicyRequester};

use crate::kit::HERMA;

/// How often each is measured, in turn.
const ROUNDS: usize = 300;
/// The most that a hook may take, in starts of herma that do nothing.
const MOST: f64 = 2.0;

const CALL: &[u8] =
    br#"{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"cargo test --quiet"}}"#;

#[test]
fn every_tool_call_costs_little_for_its_hook() {
    let dir = tempfile::tempdir().unwrap();
    let bundle = Bundle::create(dir.path().join("bundle"), Arc::new(SystemClock), None).unwrap();
    let run = "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap();
    let events = Arc::new(EventLog::create(&bundle, run, Redactor::default()));
    let asker = PolicyRequester {
        run: Some(run),
        engine: "claude".parse().unwrap(),
        contract: "fix-it".to_owned(),
        above: Vec::new(),
        stage: Stage::CopiedRepo,
        forbidden: Action::BUILT_IN.into(),
        network: false,
    };
    let policies = Arc::new(Policies::compile(&[]).unwrap());
    let desk =
        RunGovernance::open(&dir.path().join("governance"), policies, asker, Arc::clone(&events)).unwrap();
    let hook = [OsStr::new(HERMA), OsStr::new("hook"), desk.socket().as_os_str()];
    let mut times: [Vec<Duration>; 2] = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        times[0].push(took(&hook));
        times[1].push(took(&[OsStr::new(HERMA), OsStr::new("--version")]));
    }
    assert_eq!(events.count(EventType::ToolEvaluated), ROUNDS as u64);
    let [hook, nothing] = times.map(|mut times| {
        times.sort();
        times[ROUNDS / 2]
    });
    let ratio = hook.as_secs_f64() / nothing.as_secs_f64();
    println!("a hook takes {hook:?}, a start that does nothing {nothing:?}: {ratio:.2} times as long");
    assert!(ratio < MOST, "{ratio:.2}");
}

/// How long the program takes to read the call and end well.
fn took(argv: &[&OsStr]) -> Duration {
    let began = Instant::now();
    let mut child = Command::new(argv[0])
        .args(&argv[1..])
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that does nothing may have exited before the write.
    let _ = child.stdin.take().unwrap().write_all(CALL);
    let ended = child.wait_with_output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    began.elapsed()
}
