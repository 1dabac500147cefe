//! The shims that are first in an engine's PATH record attempts to reach out that the engine does not report.

use herma_core::contract::Action;
use herma_core::{Blocker, EventType};
use serde_json::Value;

use crate::kit::{Finished, Herma, fix_and};

/// The witness's records: the command, and whether it counts.
fn seen(run: &Finished) -> Vec<(String, bool)> {
    let events = run.bundle.events().into_iter();
    events
        .filter(|event| event.kind == EventType::ToolEvaluated && event.data["tool"] == "witness")
        .map(|event| {
            let counts = event.data["forbidden"].as_array().is_some_and(|actions| !actions.is_empty());
            (event.data["command"].as_str().unwrap_or_default().to_owned(), counts)
        })
        .collect()
}

fn play(shell: &[&str]) -> Finished {
    let steps: Vec<String> = shell.iter().map(|line| format!("- shell: {}", Value::from(*line))).collect();
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    Herma::new().play(&fix_and(&steps), &[])
}

#[test]
fn an_unreported_push_pull_request_and_publication_are_recorded() {
    let run = play(&[
        "git -c color.ui=never push https://example.org/x.git HEAD",
        "sh -c 'gh pr create --fill'",
        "env twine upload dist/x",
    ]);
    let mut expected = [
        ("gh pr create --fill", true),
        ("git -c color.ui=never push https://example.org/x.git HEAD", true),
        ("twine upload dist/x", true),
    ]
    .map(|(command, counts)| (command.to_owned(), counts));
    expected.sort();
    assert_eq!(seen(&run), expected);
    assert!(run.report.blockers.iter().any(|record| record.blocker == Blocker::ForbiddenAction), "{run:#?}");
    let mut attempted = run.report.forbidden_actions_attempted.clone();
    attempted.sort();
    assert_eq!(attempted, [Action::Push, Action::PrOpen, Action::PublicPublication]);
}

#[test]
fn commands_that_stay_inside_are_not_recorded() {
    let run = play(&[
        "git --version && git status",
        "git init -q --bare /tmp/r.git && git init -q /tmp/a",
        "cd /tmp/a && git commit -q --allow-empty -m 'push it' && git tag v1 && git push -q /tmp/r.git HEAD:refs/heads/m",
        "cd /tmp/a && test \"$(git -C /tmp/r.git rev-parse m)\" = \"$(git rev-parse HEAD)\"",
        "git no-such-word; test $? -eq 1",
    ]);
    run.assert_pass();
    assert_eq!(seen(&run), [("git push -q /tmp/r.git HEAD:refs/heads/m".to_owned(), false)]);
    assert_eq!(run.report.forbidden_actions_attempted, []);
}

#[test]
fn an_attempt_around_the_witness_is_unrecorded_and_reaches_nothing() {
    let run = play(&[
        "git push https://example.org/x.git HEAD; rm -f /engine/attempts",
        "PATH=/usr/local/bin:/usr/bin:/bin git push https://example.org/x.git HEAD && touch slugify.sh.pushed",
        "echo x > /herma-witness/git; rm -f /herma-witness/git; test -x /herma-witness/git && mkfifo /engine/attempts",
    ]);
    run.assert_pass();
    assert_eq!(seen(&run), []);
}
