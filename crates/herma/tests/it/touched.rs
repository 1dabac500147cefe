//! Changes of a bundle after its signature are shown with a warning.

use std::fs;

use herma_evidence::layout;

use crate::kit::{Finished, Herma};

const WARNING: &str = "WARNING: the evidence was touched after it was signed:";

/// Whether `herma show`, `herma diff`, `herma logs` and `herma logs --raw` warn.
fn warned(herma: &Herma, run: &Finished) -> [bool; 4] {
    let id = run.report.run_id.to_string();
    [&["show"][..], &["diff"], &["logs"], &["logs", "--raw"]].map(|words| {
        let (command, words) = (words[0], [words, &[id.as_str()]].concat());
        let ended = herma.run(&words);
        let is_warned = ended.stderr.contains(WARNING);
        // An unsigned patch is shown, and not handed out as a patch.
        let withheld = command == "diff" && is_warned;
        assert_eq!((ended.code, ended.stdout.is_empty()), (Some(withheld.into()), withheld), "{ended:#?}");
        let json = herma.run(&[&words[..], &["--json"]].concat());
        assert_eq!(json.code, Some(withheld.into()), "{json:#?}");
        assert_eq!(json.stderr.contains(WARNING), is_warned, "{json:#?}");
        assert_eq!(ended.stderr.contains("herma verify"), is_warned, "{ended:#?}");
        if command != "show" {
            let touched = json.json()["touched"].as_array().unwrap().len();
            assert_eq!(touched > 0, is_warned, "{json:#?}");
        }
        if command == "diff" {
            assert_eq!(json.json()["patch"].is_null(), is_warned, "{json:#?}");
        }
        is_warned
    })
}

#[test]
fn a_changed_bundle_is_shown_with_a_warning() {
    let herma = Herma::new();
    let run = herma.demo(&["--destination", "host"]);
    assert_eq!(warned(&herma, &run), [false; 4]);
    let at = |name: &str| run.bundle.dir.join(name);
    let cases = [
        (layout::REPORT, "\"trim-slug\"", "\"trim-snail\"", [true, true, false, false]),
        (layout::PATCH, "+", "+ ", [false, true, false, false]),
        (layout::EVENTS, "engine.started", "engine.message", [true, false, true, false]),
        (layout::TRANSCRIPT, "\"shell\"", "\"other\"", [false, false, true, false]),
        (layout::TEST_LOG, "$ ", "# ", [false, false, false, true]),
        (layout::ATTESTATION, "\"sig\":\"", "\"sig\":\"A", [true; 4]),
    ];
    for (name, from, to, expected) in cases {
        let (path, before) = (at(name), fs::read_to_string(at(name)).unwrap());
        assert!(before.contains(from), "{name}: {before}");
        fs::write(&path, before.replacen(from, to, 1)).unwrap();
        assert_eq!(warned(&herma, &run), expected, "{name}");
        fs::write(&path, before).unwrap();
        assert_eq!(warned(&herma, &run), [false; 4], "{name}");
    }
    fs::remove_file(at(layout::TEST_LOG)).unwrap();
    assert_eq!(warned(&herma, &run), [false, false, false, true]);
    fs::remove_file(at(layout::ATTESTATION)).unwrap();
    assert_eq!(warned(&herma, &run), [true; 4]);
}

#[test]
fn a_bundle_that_another_installation_signed_is_shown_with_a_warning() {
    let (herma, other) = (Herma::new(), Herma::new());
    let run = herma.demo(&["--destination", "host"]);
    other.demo(&["--destination", "host"]);
    fs::copy(other.home().join("keys/installation.key"), herma.home().join("keys/installation.key")).unwrap();
    fs::copy(other.home().join("keys/installation.pub"), herma.home().join("keys/installation.pub")).unwrap();
    assert_eq!(warned(&herma, &run), [true; 4]);
}

#[test]
fn the_bundle_of_another_run_is_found_where_a_run_is_named() {
    let herma = Herma::new();
    let run = herma.demo(&["--destination", "host"]);
    let other = herma.demo(&["--destination", "host"]);
    let id = run.report.run_id.to_string();
    let sound = herma.run(&["verify", &id]);
    assert_eq!(sound.code, Some(0), "{sound:#?}");
    assert!(sound.stdout.contains(&format!("identity       ok  run {id}")), "{sound:#?}");

    let aside = herma.at("aside");
    fs::rename(&run.bundle.dir, &aside).unwrap();
    fs::rename(&other.bundle.dir, &run.bundle.dir).unwrap();
    fs::rename(&aside, &other.bundle.dir).unwrap();
    let ended = herma.run(&["verify", &id]);
    assert_eq!(ended.code, Some(1), "{ended:#?}");
    let broken: Vec<&str> = ended.stdout.lines().filter(|line| line.contains("BROKEN")).collect();
    let said = format!("this is the bundle of run {}, expected that of run {id}", other.report.run_id);
    assert_eq!(broken, [format!("  identity       BROKEN  {said}")], "{ended:#?}");
    // The directory itself is a sound bundle, of which no run is expected.
    let ended = herma.run(&["verify".as_ref(), run.bundle.dir.as_os_str()]);
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    assert!(ended.stdout.contains("identity       -"), "{ended:#?}");

    assert_eq!(warned(&herma, &run), [true; 4]);
    let ended = herma.run(&["accept", &id]);
    assert!(ended.stderr.contains(&said), "{ended:#?}");
    let ended = herma.run(&["reject", &id, "--reason", "no"]);
    assert!(ended.stderr.contains(&said), "{ended:#?}");
    let ended = herma.run(&["resume", &id]);
    assert!(ended.stderr.contains("the evidence of run"), "{ended:#?}");
}
