//! `herma export`: archives whose bundles verify where they are unpacked.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use herma_core::{Digest, RunId};

use crate::kit::{Herma, contract_text, everything_below, fix_and, run_tool, until};

/// Unpacks an archive with the system's own tar.
fn unpack(archive: &Path, into: &Path) {
    fs::create_dir(into).unwrap();
    let words: [&OsStr; 4] = ["-xf".as_ref(), archive.as_os_str(), "-C".as_ref(), into.as_os_str()];
    run_tool("tar", &words, &[]);
}

#[test]
fn an_archive_has_the_bundles_and_they_verify() {
    let herma = Herma::new();
    let runs: Vec<RunId> = (0..2).map(|_| herma.demo(&[]).report.run_id).collect();
    let names: Vec<String> = runs.iter().map(ToString::to_string).collect();
    let archive = herma.at("both.tar");
    let output = archive.to_str().unwrap();
    let exported = herma.json(&["export", &names[0], &names[1], "-o", output, "--json"]);
    let bytes = fs::read(&archive).unwrap();
    assert_eq!(exported["bytes"], bytes.len());
    assert_eq!(exported["sha256"], Digest::of(&bytes).to_string());
    assert_eq!(exported["runs"], serde_json::json!(names));
    unpack(&archive, &herma.at("unpacked"));
    for (run, name) in runs.iter().zip(&names) {
        let unpacked = herma.at("unpacked").join(name);
        let ended = herma.run(&["verify".as_ref(), unpacked.as_os_str()]);
        assert_eq!(ended.code, Some(0), "{ended:#?}");
        let contents = |dir: &Path| {
            let files = everything_below(dir).into_iter();
            files.map(|(path, (_, content))| (path, content)).collect::<Vec<_>>()
        };
        assert_eq!(contents(&unpacked), contents(&herma.bundle(*run).dir));
    }

    // The order of the arguments and the time make no difference.
    let again = herma.at("again.tar");
    let ended = herma.run(&["export", &names[1], &names[0], &names[1], "-o", again.to_str().unwrap()]);
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    assert!(ended.stdout.contains(&format!("{} bytes, {}", bytes.len(), Digest::of(&bytes))), "{ended:#?}");
    assert_eq!(fs::read(again).unwrap(), bytes);

    let refused = herma.run(&["export", &names[0], "-o", output]);
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    assert!(refused.stderr.contains("exists: an archive is never overwritten"), "{refused:#?}");
    assert_eq!(fs::read(&archive).unwrap(), bytes);
}

#[test]
fn child_runs_are_exported_with_their_parent_when_that_is_said() {
    let herma = Herma::new();
    let child = contract_text(&[
        ("id", "the-child"),
        ("target", "{ repo: . }"),
        ("limits", "{ total: 30s, idle: 30s }"),
    ]);
    let script = format!(
        "steps:\n  - write: {{ path: /tmp/child.md, text: {child:?} }}\n  \
         - write: {{ path: /tmp/child.yaml, text: {:?} }}\n  \
         - shell: /herma/herma run /tmp/child.md --script /tmp/child.yaml\n",
        fix_and(&[])
    );
    let (contract, script) = (herma.contract(&[]), herma.script(&script));
    let args = ["run".as_ref(), contract.as_os_str(), "--script".as_ref(), script.as_os_str()];
    assert_eq!(herma.run(&args).code, Some(0));
    let runs = herma.runs();
    let parent = runs[0].to_string();
    let export = |name: &str, more: &[&str]| {
        let file = herma.at(name);
        let args = [&["export", &parent, "--json", "-o", file.to_str().unwrap()], more].concat();
        herma.json(&args)["runs"].as_array().unwrap().len()
    };
    assert_eq!((runs.len(), export("alone.tar", &[]), export("family.tar", &["--children"])), (2, 1, 2));
}

#[test]
fn unfinished_and_broken_runs_are_not_exported() {
    let herma = Herma::new();
    let broken = herma.demo(&[]);
    let report = broken.bundle.dir.join("report.md");
    fs::write(&report, "another report\n").unwrap();
    let file = herma.at("x.tar");
    let refused = herma.run(&["export", "last", "-o", file.to_str().unwrap()]);
    assert_eq!(refused.code, Some(3), "{refused:#?}");
    assert!(refused.stderr.contains("does not verify: "), "{refused:#?}");

    let contract = herma.contract(&[]);
    let script = herma.script("steps: [{ say: hello }, { sleep: 10m }]");
    let args = ["run".as_ref(), contract.as_os_str(), "--script".as_ref(), script.as_os_str()];
    let started = herma.start(&args);
    let second = || herma.runs().into_iter().find(|run| *run != broken.report.run_id);
    until("the engine works", || second().is_some_and(|run| herma.said(run, "engine.started")));
    let refused = herma.run(&["export", "last", "-o", file.to_str().unwrap()]);
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    assert!(refused.stderr.contains("is still under way"), "{refused:#?}");
    assert!(!file.exists());
    started.kill();
}
