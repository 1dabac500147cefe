//! `herma router probe` as a process.

use std::fs;

use crate::kit::{Ended, Herma, names};

/// Asks `rehearsal/m`, which answers every question with this turn.
fn probed(turn: &str, args: &[&str]) -> Ended {
    let herma = Herma::new();
    let script = format!("name: script\nrepeat: true\nturns:\n  - {turn}\n");
    fs::write(herma.marked_home().join("script.yaml"), script).unwrap();
    let config = "[upstreams.rehearsal]\nprovider = \"scripted\"\nscripts = [\"script.yaml\"]\n";
    fs::write(herma.home().join("router.toml"), config).unwrap();
    let ended = herma.run(&[&["router", "probe", "rehearsal/m"], args].concat());
    assert_eq!(names(herma.home()), ["herma-home", "router.toml", "script.yaml"], "a probe leaves nothing");
    ended
}

#[test]
fn a_model_that_answers_is_shown_with_its_capabilities() {
    let ended = probed("say: I am ready.", &[]);
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    for part in ["rehearsal/m", "content      yes", "streaming    yes", "chat, responses, messages"] {
        assert!(ended.stdout.contains(part), "{part}: {ended:#?}");
    }
    let ended = probed("call: { shell: ls }", &["--api", "messages", "--json"]);
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    let said = ended.json();
    assert_eq!(said["schema"], "herma.router-probe/v1");
    assert_eq!((&said["upstream"], &said["model"]), (&"rehearsal".into(), &"m".into()));
    assert_eq!(said["capabilities"]["endpoints"], serde_json::json!(["messages"]));
    assert_eq!(said["blocker"], serde_json::Value::Null);
}

#[test]
fn a_model_that_would_block_a_run_is_shown_with_the_blocker() {
    for (turn, blocker) in [
        ("think: Hm.", "provider_reasoning_only"),
        ("error: 503", "provider_unavailable"),
        ("error: 404", "provider_unavailable"),
    ] {
        let ended = probed(turn, &[]);
        assert_eq!(ended.code, Some(3), "{ended:#?}");
        assert!(ended.stdout.contains(&format!("blocked: {blocker}: ")), "{ended:#?}");
        let ended = probed(turn, &["--json"]);
        assert_eq!((ended.code, &ended.json()["blocker"]["blocker"]), (Some(3), &blocker.into()));
    }
    let ended = probed("say: I am ready.", &["--config", "elsewhere.toml"]);
    assert_eq!(ended.code, Some(2), "{ended:#?}");
}
