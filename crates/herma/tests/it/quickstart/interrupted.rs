//! Ctrl-C at any moment leaves a home in which the same command continues.

use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use super::World;

#[test]
fn a_set_up_that_is_interrupted_anywhere_continues() {
    let world = World::new();
    let code = world.page(&[])["code"].as_str().unwrap().to_owned();
    let more = ["--yes", "--json", "--code", &code];
    let mut cut = 0;
    // Later and later, until it is through.
    for round in 0..200_u64 {
        let started = world.herma.start(&world.args(&more));
        thread::sleep(Duration::from_millis(20 + round * round * 4));
        // A command that is over gets no signal.
        let mut started = started;
        if started.is_alive() {
            started.signal(if round % 2 == 0 { Signal::INT } else { Signal::KILL });
        }
        let ended = started.end_patiently();
        if ended.code == Some(0) {
            assert_eq!(ended.json()["ready"], true, "{ended:#?}");
            break;
        }
        assert!(ended.code == Some(3) || ended.signal.is_some(), "round {round}: {ended:#?}");
        cut += 1;
    }
    assert!(cut > 2, "it was interrupted {cut} times only");
    let trust = world.herma.run(&["trust", "check"]);
    assert_eq!(trust.code, Some(0), "{trust:#?}");
    world.change();
}

#[test]
fn ctrl_c_at_a_question_ends_it_and_the_terminal_shows_again_what_is_typed() {
    let world = World::new();
    let args = world.args(&["!--passphrase-file"]);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut at = world.herma.at_terminal(&world.repository.dir, &args);
    at.wait_for("New passphrase for alice");
    at.interrupt();
    at.wait_for("stopped while waiting for an answer");
    let ended = at.end();
    assert_eq!(ended.code, Some(3), "{}", ended.stdout);
    assert!(world.herma.json(&["approver", "list", "--json"])["approvers"].as_array().unwrap().is_empty());
    world.set_up(&[]);
}
