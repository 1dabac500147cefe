//! Submodules of a target: those that are checked out, clean, at the recorded commit come along as plain directories, and others are
//! named.

use std::fs;

use herma_core::Blocker;
use herma_core::content::{MissingContent, MissingReason};
use herma_core::report::PathRule;

use crate::kit::{Finished, Herma, ON_REPOSITORY, Repository, fix_and};

/// The settings with which git commits, and clones a submodule from a directory.
const OWNER: [&str; 6] =
    ["-c", "user.name=owner", "-c", "user.email=owner@herma.invalid", "-c", "protocol.file.allow=always"];

const ALLOWED: (&str, &str) = ("allowed_paths", "[slugify.sh, lib, \"lib/**\"]");

/// A repository with the submodule `lib`, which has the submodule `inner`.
fn target(herma: &Herma) -> Repository {
    let of = |name: &str, files: &[(&str, &str)]| {
        let repository = Repository { dir: herma.at(name) };
        for (path, content) in files {
            herma.file(&format!("{name}/{path}"), content);
        }
        repository.git(&["init", "-q", "-b", "main"]);
        repository
    };
    let inner = of("inner-origin", &[("deep.txt", "deep\n")]);
    inner.commit("inner");
    let lib =
        of("lib-origin", &[("part.txt", "part\n"), (".gitignore", "*.log\n"), ("run.sh", "echo ran\n")]);
    add(&lib, &inner, "inner");
    lib.commit("lib");
    let target = Repository::of_fixture(herma, "string-slugify");
    add(&target, &lib, "lib");
    target.git(&[&OWNER[..], &["submodule", "update", "-q", "--init", "--recursive"]].concat());
    target.commit("with a submodule");
    target
}

fn add(to: &Repository, from: &Repository, path: &str) {
    let url = from.dir.to_str().unwrap();
    to.git(&[&OWNER[..], &["submodule", "add", "-q", url, path]].concat());
}

fn play(herma: &Herma, steps: &[&str], terms: &[(&str, &str)]) -> Finished {
    herma.play(&fix_and(steps), &[&ON_REPOSITORY[..], &[ALLOWED], terms].concat())
}

fn shell(command: &str) -> String {
    format!("- shell: {command:?}")
}

fn missing(run: &Finished) -> Vec<(String, MissingReason)> {
    let listed = run.report.missing_content.iter().flat_map(|missing| &missing.first);
    listed.map(|MissingContent { path, reason }| (path.to_string(), *reason)).collect()
}

#[test]
fn a_checked_out_submodule_is_a_plain_directory_for_agent_setup_and_verification() {
    let herma = Herma::new();
    let target = target(&herma);
    let before = target.picture();
    let environment = r#"{ history: full, setup: ["mkdir deps && cat lib/part.txt lib/inner/deep.txt > deps/seen"], cache: [deps] }"#;
    let verify = "[\"grep -q deep deps/seen && grep -q part lib/part.txt && sh lib/run.sh\", \
                  \"test ! -e lib/.git && test ! -e lib/inner/.git && test -z \\\"$(git status --porcelain -uno)\\\"\"]";
    let look = shell("cat lib/part.txt lib/inner/deep.txt; git status --porcelain -uno; find lib -name .git");
    let run = play(&herma, &[&look], &[("environment", environment), ("verify", verify)]);
    run.assert_pass();
    assert!(run.engine_said().contains("part\ndeep\n"), "{}", run.engine_said());
    assert!(!run.engine_said().contains(".git"), "{}", run.engine_said());
    assert_eq!((run.changed(), missing(&run)), (vec!["slugify.sh".to_owned()], Vec::new()));
    assert_eq!(target.picture(), before);
    // A file that its own rules ignore is no change of it.
    play(&herma, &[&shell("echo x > lib/test.log; echo x > lib/inner/test.log")], &[]).assert_pass();
}

#[test]
fn a_change_inside_a_submodule_is_refused_and_never_part_of_the_tree_unseen() {
    let herma = Herma::new();
    target(&herma);
    for (work, paths) in [
        ("echo other > lib/part.txt", &["lib", "lib/part.txt"][..]),
        ("echo new > lib/new.txt", &["lib", "lib/new.txt"]),
        ("rm lib/part.txt", &["lib"]),
        ("chmod +x lib/part.txt", &["lib", "lib/part.txt"]),
        ("echo other > lib/inner/deep.txt", &["lib", "lib/inner/deep.txt"]),
        ("rm lib/part.txt && ln -s ../slugify.sh lib/part.txt", &["lib", "lib/part.txt"]),
        ("rm -r lib && echo file > lib", &["lib"]),
        ("rm -r lib", &["lib"]),
    ] {
        let run = play(&herma, &[&shell(work)], &[]);
        let violations: Vec<_> = paths.iter().map(|path| (*path, PathRule::Submodule)).collect();
        run.assert_disallowed(&violations);
    }
    let setup = [("environment", "{ setup: [\"echo other > lib/part.txt\"] }")];
    let run = play(&herma, &[], &setup);
    run.assert_only(Blocker::EnvironmentFailed);
    assert!(run.report.blockers[0].detail.contains("lib/part.txt"), "{:#?}", run.report.blockers);
}

#[test]
fn a_command_that_changes_a_submodule_fails_verification() {
    let herma = Herma::new();
    target(&herma);
    let run = play(&herma, &[], &[("verify", "[\"echo other > lib/part.txt\"]")]);
    run.assert_only(Blocker::VerificationChangedFiles);
    let changed = run.report.verification[0].changed_files.as_ref().unwrap();
    assert_eq!(changed.first[0].to_string(), "lib/part.txt");
}

#[test]
fn a_submodule_that_is_not_there_as_recorded_is_named_before_the_agent_starts() {
    let herma = Herma::new();
    let target = target(&herma);
    let git = |args: &[&str]| target.git(&[&OWNER[..], args].concat());
    // The next commit moves the submodule; the contract's base is the one before.
    fs::write(target.dir.join("lib/part.txt"), "moved\n").unwrap();
    Repository { dir: target.dir.join("lib") }.commit("moved");
    target.commit("moves the submodule");
    let base = [("target", "{ repo: ../repo, base: HEAD~1 }"), ("verify", "[\"test ! -e lib/part.txt\"]")];
    let run = herma.play(&fix_and(&[]), &[&ON_REPOSITORY[1..], &base].concat());
    run.assert_pass();
    assert_eq!(missing(&run), [("lib".to_owned(), MissingReason::SubmoduleAtOtherCommit)]);
    git(&["-C", "lib", "submodule", "deinit", "-q", "-f", "inner"]);
    let run = play(&herma, &[], &[("verify", "[\"test -e lib/part.txt && test ! -e lib/inner/deep.txt\"]")]);
    run.assert_pass();
    assert_eq!(missing(&run), [("lib/inner".to_owned(), MissingReason::SubmoduleNotCheckedOut)]);
    git(&["submodule", "deinit", "-q", "-f", "lib"]);
    let run = play(&herma, &[], &[("verify", "[\"test ! -e lib/part.txt\"]")]);
    run.assert_pass();
    assert_eq!(missing(&run), [("lib".to_owned(), MissingReason::SubmoduleNotCheckedOut)]);
    let contract = herma.contract(&[&ON_REPOSITORY[..], &[ALLOWED]].concat());
    let plain = herma.run(&[
        "run",
        contract.to_str().unwrap(),
        "--script",
        herma.script(&fix_and(&[])).to_str().unwrap(),
    ]);
    let said = plain.stderr.find("`lib` (submodule, not checked out").expect(&plain.stderr);
    assert!(plain.stderr.find("engine.started").is_none_or(|started| said < started), "{plain:#?}");
    assert!(run.bundle.text("report.md").contains("not checked out"), "{}", run.bundle.text("report.md"));
    herma.assert_verifies(&run.bundle);
    // A link in its place leads to no other repository.
    fs::remove_dir(target.dir.join("lib")).unwrap();
    std::os::unix::fs::symlink(herma.at("lib-origin"), target.dir.join("lib")).unwrap();
    play(&herma, &[], &[]).assert_only(Blocker::TargetNotAdmitted);
}
