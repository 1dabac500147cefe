//! A hostile workspace runs no code in herma and gets no pass.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use herma_core::Blocker;
use herma_core::engine::EndedBy;
use herma_core::report::{PathRule as Rule, VerificationStatus};
use herma_git::{ObjectFormat, blob_id, walk};

use crate::kit::{Herma, fix_and, processes_of};

/// A script that plants a program which herma would run if it let the agent's git settings count. It writes into
/// the test's own directory, so the run takes place on the host, where the engine and herma see the same files.
fn with_canary(herma: &Herma, config: &str, attributes: &str) -> String {
    let canary = herma.at("canary");
    let text = format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\ncat\n", canary.display());
    let program = herma.program("canary.sh", &herma.file("canary.txt", text));
    let config = config.replace("CANARY", &program.display().to_string());
    fix_and(&[
        &format!("- append: {{ path: .git/config, text: {config:?} }}"),
        &format!("- write: {{ path: .git/info/attributes, text: {attributes:?} }}"),
        &format!("- write: {{ path: tests/.gitattributes, text: {attributes:?} }}"),
    ])
}

#[test]
fn no_git_setting_of_the_agent_runs_a_program_in_herma() {
    for (config, attributes) in [
        ("[core]\n\tfsmonitor = CANARY\n", ""),
        ("[core]\n\thooksPath = CANARY\n", ""),
        ("[filter \"x\"]\n\tclean = CANARY\n\tsmudge = CANARY\n\trequired = true\n", "* filter=x\n"),
        ("[filter \"x\"]\n\tprocess = CANARY\n\trequired = true\n", "* filter=x\n"),
        ("[diff \"x\"]\n\ttextconv = CANARY\n\tcommand = CANARY\n", "* diff=x\n"),
        ("[diff]\n\texternal = CANARY\n", ""),
        ("[merge \"x\"]\n\tdriver = CANARY\n", "* merge=x\n"),
        ("[core]\n\tpager = CANARY\n\teditor = CANARY\n\tsshCommand = CANARY\n", ""),
        ("[include]\n\tpath = /dev/zero\n", ""),
    ] {
        let herma = Herma::new();
        let run = herma.play(&with_canary(&herma, config, attributes), &[("destination", "host")]);
        run.assert_only(Blocker::DisallowedFile);
        assert!(!herma.at("canary").exists(), "{config}: {:?}", fs::read_to_string(herma.at("canary")));
        let paths: Vec<String> = run.report.path_violations.iter().map(|v| v.path.to_string()).collect();
        assert!(paths.contains(&".git/config".to_owned()), "{config}: {paths:?}");
    }
}

#[test]
fn the_canary_of_these_tests_is_alive() {
    let herma = Herma::new();
    with_canary(&herma, "", "");
    let program = herma.at("canary.sh");
    crate::kit::run_tool(program.to_str().unwrap(), &[], &[]);
    assert!(herma.at("canary").exists());
}

#[test]
fn a_workspace_full_of_traps_for_git_springs_none_of_them() {
    const CANARY: &str = "/tmp/herma-canary-hostile-git";
    for destination in ["sandbox", "host"] {
        let _ = fs::remove_file(CANARY);
        let run = Herma::new().play("hostile-git", &[("destination", destination)]);
        run.assert_only(Blocker::DisallowedFile);
        assert!(!Path::new(CANARY).exists(), "{destination}: {:?}", fs::read_to_string(CANARY));
    }
}

#[test]
fn hooks_of_the_agent_do_not_run_in_herma() {
    let herma = Herma::new();
    let canary = herma.at("canary");
    let names =
        ["pre-commit", "post-checkout", "post-index-change", "reference-transaction", "fsmonitor-watchman"];
    let plant: Vec<String> = names
        .iter()
        .map(|name| {
            format!(
                "echo 'echo {name} >> {0}' > .git/hooks/{name}; chmod 755 .git/hooks/{name}",
                canary.display()
            )
        })
        .collect();
    let script = fix_and(&[&format!("- shell: {:?}", format!("mkdir -p .git/hooks; {}", plant.join("; ")))]);
    let run = herma.play(&script, &[("destination", "host")]);
    run.assert_only(Blocker::DisallowedFile);
    assert_eq!(run.report.path_violations.len(), names.len(), "{:#?}", run.report.path_violations);
    assert!(!canary.exists(), "{:?}", fs::read_to_string(canary));
}

#[test]
fn a_named_pipe_is_refused_and_does_not_block() {
    Herma::new().play("fifo", &[]).assert_disallowed(&[("tests/pipe", Rule::SpecialFile)]);
}

#[test]
fn a_socket_is_refused() {
    let listen =
        "- shell: 'cd tests && python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind(\\\"s\\\")\"'";
    Herma::new().play(&fix_and(&[listen]), &[]).assert_disallowed(&[("tests/s", Rule::SpecialFile)]);
}

#[test]
fn a_device_cannot_be_made_inside() {
    let run = Herma::new().play(&fix_and(&["- shell: mknod tests/null c 1 3"]), &[]);
    run.assert_pass();
    assert_eq!(run.changed(), ["slugify.sh"]);
    assert!(run.engine_said().contains("`mknod tests/null c 1 3` failed"), "{}", run.engine_said());
}

#[test]
fn a_program_in_the_workspace_does_not_become_the_test_runner() {
    let terms = [("allowed_paths", "[/slugify.sh, /sh, /git, \"/tests/**\"]")];
    let run = Herma::new().play("path-shim", &terms);
    run.assert_only(Blocker::VerificationFailed);
    assert_eq!(run.report.verification[0].status, VerificationStatus::Failed);
}

#[test]
fn a_test_that_the_engine_rewrote_does_not_make_a_pass() {
    let run = Herma::new().play("edits-test", &[]);
    run.assert_only(Blocker::VerificationFailed);
    assert_eq!(run.report.changed_tests.len(), 1, "{:#?}", run.report);
    assert_eq!(run.report.changed_tests[0].to_string(), "tests/slugify_test.sh");
}

#[test]
fn a_rewritten_test_that_the_contract_allows_is_listed() {
    let herma = Herma::new();
    let run = herma.play("edits-test", &[("tests_may_change", "true")]);
    run.assert_pass();
    assert_eq!(run.report.changed_tests[0].to_string(), "tests/slugify_test.sh");
    assert!(run.bundle.text("report.md").contains("tests/slugify_test.sh"));
    let shown = herma.run(&["show", "last"]);
    assert!(shown.stdout.contains("tests/slugify_test.sh"), "{shown:#?}");
}

#[test]
fn a_daemon_is_dead_after_the_run_and_changes_nothing() {
    for destination in ["sandbox", "host"] {
        let herma = Herma::new();
        let run = herma.play("daemon", &[("destination", destination)]);
        run.assert_pass();
        assert_eq!(run.changed(), ["slugify.sh"]);
        assert_eq!(processes_of(run.report.run_id), [0; 0], "{destination}");
    }
}

#[test]
fn a_file_swapped_for_a_link_during_the_walk_never_shows_files_outside() {
    const OUTSIDE: &str = "/etc/passwd";
    let secret = fs::read(OUTSIDE).unwrap();
    let secret = blob_id(ObjectFormat::Sha1, secret.len() as u64, &secret[..]).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    fs::create_dir_all(root.join("sub")).unwrap();
    let outside = dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::copy(OUTSIDE, outside.join("file")).unwrap();
    fs::write(root.join("file"), "inside").unwrap();
    fs::write(root.join("sub/file"), "inside").unwrap();
    let stop = AtomicBool::new(false);
    let (mut seen, mut refused) = (0_u32, 0_u32);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                swap(&root.join("file"), Path::new(OUTSIDE));
                swap(&root.join("sub"), &outside);
            }
        });
        for _ in 0..4000 {
            match walk(&root, ObjectFormat::Sha1) {
                Ok(found) => {
                    seen += 1;
                    let leaked = found.entries.iter().find(|(_, entry)| entry.id == secret);
                    if leaked.is_some() {
                        stop.store(true, Ordering::Relaxed);
                    }
                    assert!(leaked.is_none(), "the walk hashed {OUTSIDE}: {leaked:?}");
                }
                Err(_) => refused += 1,
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(seen > 0 && refused > 0, "the swap never met the walk: {seen} walks, {refused} refusals");
}

/// Puts a link where something was, and the thing back.
fn swap(path: &Path, target: &Path) {
    let aside = path.with_extension("aside");
    let link = path.with_extension("link");
    std::os::unix::fs::symlink(target, &link).unwrap();
    fs::rename(path, &aside).unwrap();
    fs::rename(&link, path).unwrap();
    fs::remove_file(path).unwrap();
    fs::rename(&aside, path).unwrap();
}

/// Each line is judged, which takes longer than saying it.
#[test]
fn an_engine_that_says_more_than_anybody_can_hear_meets_its_limit() {
    let endless = r#"- shell: "yes '{\"type\":\"tool\",\"name\":\"shell\",\"command\":\"ls\"}'""#;
    let run = Herma::new().play(&fix_and(&[endless]), &[("limits", "{ total: 3s }")]);
    run.assert_only(Blocker::LifecycleTimeout);
    assert_eq!(run.report.engine_exit.unwrap().ended_by, EndedBy::TotalLimit);
}

#[test]
fn endless_output_is_truncated_and_the_run_continues() {
    let run = Herma::new().play(&fix_and(&["- flood: { bytes: 100MiB }"]), &[]);
    run.assert_pass();
    let kept = run.bundle.dir.join("engine/stdout.log").metadata().unwrap().len();
    assert!(kept < 80 << 20, "{kept} bytes were kept");
}

#[test]
fn output_that_is_no_text_is_kept_and_does_not_matter() {
    let run = Herma::new().play("noisy", &[]);
    run.assert_pass();
    assert!(run.engine_said().contains("AGENT v9.9"));
    assert!(run.report.engine_exit.unwrap().unread_lines >= 4);
}

#[test]
fn directories_without_permissions_are_removed_all_the_same() {
    let lock = "- shell: mkdir -p tests/a/b && echo x > tests/a/b/c && chmod 000 tests/a/b tests/a";
    for destination in ["sandbox", "host"] {
        let herma = Herma::new();
        // Whatever the verdict is, `play` sees that only the bundle is left.
        let run = herma.play(&fix_and(&[lock]), &[("destination", destination)]);
        assert!(run.ended.code.is_some_and(|code| code != 4), "{destination}: {:#?}", run.ended);
    }
}
