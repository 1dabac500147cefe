//! The output reaches its reader completely, or the exit code says otherwise.

use serde_json::Value;

use crate::kit::{Ended, Herma};

/// Runs a command whose standard output is this file.
fn into(file: &str, herma: &mut Herma, args: &[&str]) -> Ended {
    let redirect = format!("exec \"$0\" \"$@\" > {file}");
    herma.wrap(&["sh", "-c", &redirect]);
    let ended = herma.run(args);
    herma.wrap(&[] as &[&str]);
    ended
}

#[test]
fn output_that_cannot_be_written_is_no_success() {
    let mut herma = Herma::new();
    herma.demo(&["--destination", "host"]);
    for args in [
        &["demo", "--destination", "host", "--json"][..],
        &["demo", "--destination", "host"],
        &["runs"],
        &["runs", "--all", "--json"],
        &["show"],
        &["diff"],
        &["logs"],
        &["verify", "last"],
        &["schema"],
        &["schema", "report"],
        &["completions", "bash"],
        &["doctor", "--json"],
        &["--help"],
        &["--version"],
        &["nope", "--json"],
    ] {
        let ended = into("/dev/full", &mut herma, args);
        assert_eq!(ended.code, Some(4), "{args:?}: {ended:#?}");
        let said = "error: the output could not be written: No space left on device";
        assert!(ended.stderr.contains(said), "{args:?}: {ended:#?}");
        assert_ne!(into("/dev/null", &mut herma, args).code, Some(4), "{args:?}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut herma = Herma::new();
    herma.wrap(&["bash", "-c", "set -o pipefail; \"$0\" \"$@\" | true"]);
    let ended = herma.run(&["completions", "bash"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:#?}");
}

#[test]
fn unknown_arguments_are_an_error_object_for_programs() {
    let herma = Herma::new();
    for (args, said, next) in [
        (&["run", "--json"][..], "<CONTRACT>", "Usage: herma run"),
        (&["nope", "--json"], "unrecognized subcommand 'nope'", "Usage: herma"),
        (&["--json", "runs", "--limit", "x"], "invalid value 'x' for '--limit", "--help"),
        (&["demo", "--destination", "moon", "--json"], "possible values: host", "--help"),
        (&["--json"], "requires a subcommand", "Usage: herma"),
    ] {
        let ended = herma.run(args);
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(2), ""), "{args:?}: {ended:#?}");
        let json = ended.json();
        assert_eq!((&json["schema"], &json["exit_code"]), (&"herma.error/v1".into(), &2.into()));
        let text = |key: &str| json[key].as_str().unwrap_or_default().to_owned();
        assert!(text("error").contains(said), "{json:#}");
        assert!(text("next_step").contains(next), "{json:#}");
        assert!(!text("error").starts_with("error:") && !text("error").contains('\n'), "{json:#}");
    }
    herma.assert_no_run();
    for args in [&["nope"][..], &["runs", "nope", "--", "--json"]] {
        let ended = herma.run(args);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{args:?}: {ended:#?}");
        assert!(ended.stderr.starts_with("error: "), "{args:?}: {ended:#?}");
    }
    let help = herma.run(&["--help", "--json"]);
    assert_eq!(help.code, Some(0), "{help:#?}");
    assert!(serde_json::from_str::<Value>(&help.stdout).is_err() && help.stdout.contains("Usage:"));
}
