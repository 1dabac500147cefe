//! Stage 5, from outside: what lands in a target, and what of it stays as it was.

mod meddling;
mod transaction;

use std::collections::BTreeMap;
use std::path::PathBuf;

use herma_core::report::{LandedIn, OutcomeState};
use herma_core::{EventType, Status};

use self::meddling::{BASES, Meddling, REFS, TREES, write};
use crate::kit::{
    CONTRACT, Finished, HOLD, Herma, ON_TARGET, Owned, assert_said_nowhere, assert_unplaced, fix_and,
    run_tool,
};

type Picture = BTreeMap<PathBuf, (u32, Vec<u8>)>;

/// The new entries. Everything else must be unchanged.
fn added(before: &Picture, mut after: Picture) -> Vec<String> {
    for (path, was) in before {
        assert!(after.remove(path).as_ref() == Some(was), "{} is not as it was", path.display());
    }
    after.keys().map(|path| path.display().to_string()).collect()
}

/// The target holds one commit more under one ref more, and nothing else.
fn assert_landed(owned: &Owned, before: &Picture, run: &Finished, base: &str) {
    run.assert_pass();
    let (report, git) = (&run.report, |args: &[&str]| owned.repository.git(args));
    let landing = report.landing.as_ref().unwrap();
    let reference = format!("refs/heads/herma/{}", report.run_id);
    let commit = git(&["rev-parse", &reference]).trim().to_owned();
    let base = git(&["rev-parse", &format!("{base}^{{commit}}")]).trim().to_owned();
    assert_eq!((&landing.reference, &landing.commit, &landing.base), (&reference, &commit, &base));
    assert_eq!((landing.repository, landing.landed), (LandedIn::Target, true));
    assert_eq!(report.outcome, OutcomeState::Pending);
    assert_eq!((report.source_mutated, report.target_clean_end), (Some(false), Some(true)));

    let show = |format: &str| git(&["show", "-s", &format!("--format={format}"), &commit]).trim().to_owned();
    assert_eq!(show("%P"), base, "one commit, on the base");
    assert_eq!(show("%T"), *report.result_tree.as_ref().unwrap());
    assert_eq!(show("%an <%ae> %cn <%ce>"), "herma <herma@herma.invalid> herma <herma@herma.invalid>");
    assert_eq!(show("%(trailers:key=Herma-Run,valueonly)"), report.run_id.to_string());
    let changed = git(&["diff-tree", "-r", "--no-commit-id", "--name-only", &commit]);
    assert_eq!(changed.lines().collect::<Vec<_>>(), run.changed());

    let packs = [".idx", ".pack"].map(|extension| {
        let new = added(before, owned.picture());
        let mut of_kind = new.into_iter().filter(|path| path.ends_with(extension));
        let found = of_kind.next().unwrap();
        assert_eq!(of_kind.next(), None);
        assert!(found.starts_with("repo/.git/objects/pack/pack-"), "{found}");
        found
    });
    let mut expected = packs.to_vec();
    expected.extend(["repo/.git/refs/heads/herma".to_owned(), format!("repo/.git/{reference}")]);
    assert_eq!(added(before, owned.picture()), expected);
    let complaints = git(&["fsck", "--full", "--strict", "--no-dangling"]);
    assert_eq!(complaints, "");
    assert!(!owned.repository.dir.join(".git/hooks/ran").exists(), "a hook ran");
    assert_unplaced(run);
}

/// Nothing of the run is in the target, which is as this picture has it.
fn assert_not_landed(owned: &Owned, theirs: &Picture, run: &Finished, what: &str) {
    assert_ne!(run.report.status, Status::Pass, "{what}");
    // Where the target itself is gone, herma cannot do its own work.
    let code =
        if owned.repository.dir.join(".git").exists() { i32::from(run.report.status.exit_code()) } else { 4 };
    assert_eq!(run.ended.code, Some(code), "{what}: {:#?}", run.ended);
    assert!(run.report.landing.as_ref().is_none_or(|landing| !landing.landed), "{what}: {:#?}", run.report);
    assert_eq!(run.report.outcome, OutcomeState::NotRequired, "{what}");
    assert_eq!(added(theirs, owned.picture()), [""; 0], "{what}");
    assert_unplaced(run);
}

fn blockers(run: &Finished) -> Vec<&'static str> {
    run.report.blockers.iter().map(|record| record.blocker.as_str()).collect()
}

/// The operator gives an outcome, and no output shows where the target is.
fn speak(herma: &Herma, word: &[&str]) {
    let ended = herma.run_as("alice", word);
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    assert_said_nowhere(&ended);
}

#[test]
fn one_ref_with_one_commit_lands_and_reject_leaves_no_trace() {
    let (herma, owned) = Herma::with_target(&[]);
    let before = owned.picture();
    let run = herma.approve_and_play("commit-and-amend");
    assert_landed(&owned, &before, &run, "main");
    assert_eq!(run.changed(), ["slugify.sh", "tests/notes.md"]);
    // The agent's own commits are not in the target, under any name.
    let all = owned.repository.git(&["log", "--all", "--format=%an %s"]);
    assert!(!all.contains("agent") && !all.contains("notes: say"), "{all}");
    let objects = owned.repository.git(&["cat-file", "--batch-all-objects", "--batch-check"]);
    let commits = objects.lines().filter(|line| line.contains(" commit ")).count();
    let named = owned.repository.git(&["rev-list", "--all", "--reflog"]).lines().count();
    assert_eq!(commits, named, "a commit is in the target that no ref or log names");

    let id = run.report.run_id.to_string();
    speak(&herma, &["reject", &id, "--reason", "not what I meant"]);
    assert!(owned.picture() == before, "the target is bit for bit as before");
    herma.assert_verifies(&run.bundle);

    let run = herma.approve_and_play(&fix_and(&[]));
    assert_landed(&owned, &before, &run, "main");
    let landed = owned.picture();
    speak(&herma, &["accept", &run.report.run_id.to_string()]);
    assert!(owned.picture() == landed, "to accept changes nothing in the target");
    herma.assert_verifies(&run.bundle);
}

#[test]
fn a_named_base_is_the_parent_of_what_lands() {
    let (herma, owned) = Herma::with_target(&[]);
    let before = owned.picture();
    let commit = owned.repository.git(&["rev-parse", "main~1"]).trim().to_owned();
    for base in ["feature", "v1", "v2", "refs/heads/loose", commit.as_str()] {
        herma.contract(&[("target", &format!("{{ repo: my-repo, base: {base} }}")), ("stage", "5")]);
        let run = herma.approve_and_play(&fix_and(&[]));
        assert_landed(&owned, &before, &run, base);
        speak(&herma, &["reject", &run.report.run_id.to_string(), "--reason", "the next one"]);
        assert!(owned.picture() == before, "{base}");
    }
}

/// Nothing lands, and nothing of what somebody else did is lost.
fn nothing_lands_after(all: &[Meddling]) {
    let (herma, owned) = Herma::with_target(&[]);
    for Meddling { what, base, does } in all {
        let target =
            base.map_or(ON_TARGET[0].1.to_owned(), |base| format!("{{ repo: my-repo, base: {base} }}"));
        herma.contract(&[("target", &target), ("stage", "5")]);
        let approval = herma.approve();
        herma.script(&fix_and(&[HOLD]));
        let under_way = herma.under_way();
        does(&owned, under_way.run);
        let theirs = owned.picture();
        let run = under_way.go_on();
        assert_not_landed(&owned, &theirs, &run, what);
        assert_eq!(herma.approval(&approval), ("consumed".to_owned(), Some(run.report.run_id)), "{what}");
        owned.put_back();
    }
}

#[test]
fn a_ref_that_somebody_else_made_meanwhile_stays_theirs() {
    nothing_lands_after(REFS);
}

#[test]
fn a_base_that_moved_meanwhile_blocks_the_landing() {
    nothing_lands_after(BASES);
}

#[test]
fn a_target_that_was_changed_meanwhile_gets_nothing_and_loses_nothing() {
    nothing_lands_after(TREES);
}

/// A run of the contract that the gates stop.
fn stopped(herma: &Herma, owned: &Owned, what: &str) -> Finished {
    let before = owned.picture();
    let run = herma.finished(&["run", CONTRACT, "--script", "script.yaml"]);
    assert_not_landed(owned, &before, &run, what);
    assert!(!run.report.engine_started && !run.bundle.has_event(EventType::EngineStarted), "{what}");
    assert_eq!(run.ended.code, Some(3), "{what}: {:#?}", run.ended);
    run
}

#[test]
fn only_an_admitted_repository_is_a_target_of_stage_5() {
    let (herma, owned) = Herma::with_target(&[]);
    herma.script(&fix_and(&[]));
    let other = herma.at("contracts/other");
    std::os::unix::fs::symlink(&owned.repository.dir, &other).unwrap();
    for target in ["{ fixture: string-slugify }", "{ repo: ./other }", "{ repo: never-heard-of }"] {
        herma.contract(&[("target", target), ("stage", "5")]);
        let run = stopped(&herma, &owned, target);
        assert!(blockers(&run).contains(&"target_not_admitted"), "{target}: {:#?}", run.report.blockers);
        let asked = herma.run(&["approvals", "request", CONTRACT, "--reason", "it is time"]);
        assert_ne!(asked.code, Some(0), "{target}: {asked:#?}");
        assert_said_nowhere(&asked);
    }
}

/// git's messages about a broken repository name its files.
#[test]
fn a_target_that_cannot_be_read_is_blocked_by_its_name() {
    let (herma, owned) = Herma::with_target(&[]);
    herma.script(&fix_and(&[]));
    for (what, file) in [
        ("no setting can be read", ".git/config"),
        ("HEAD is nothing", ".git/HEAD"),
        ("the index is nothing", ".git/index"),
        ("the packed refs are nothing", ".git/packed-refs"),
        ("the branch is nothing", ".git/refs/heads/main"),
    ] {
        write(&owned, file, "[not what git wrote\n");
        let run = stopped(&herma, &owned, what);
        assert!(blockers(&run).contains(&"target_not_admitted"), "{what}: {:#?}", run.report.blockers);
        let asked = herma.run(&["approvals", "request", CONTRACT, "--reason", "it is time"]);
        assert_ne!(asked.code, Some(0), "{what}: {asked:#?}");
        assert_said_nowhere(&asked);
        owned.put_back();
    }
    let git_dir = owned.repository.dir.join(".git");
    std::fs::rename(&git_dir, owned.repository.dir.join("elsewhere")).unwrap();
    let run = herma.finished(&["run", CONTRACT, "--script", "script.yaml"]);
    assert!(blockers(&run).contains(&"target_not_admitted"), "{:#?}", run.report.blockers);
    assert_unplaced(&run);
}

#[test]
fn the_admission_narrows_what_a_contract_allows() {
    let (herma, owned) = Herma::with_target(&["--allowed-path", "/slugify.sh", "--forbidden-action", "tag"]);
    let before = owned.picture();
    let run = herma.approve_and_play("commit-and-amend");
    assert_not_landed(&owned, &before, &run, "a path that only the contract allows");
    assert_eq!(blockers(&run), ["disallowed_file"]);
    let run = herma.approve_and_play(&fix_and(&["- tool: { name: shell, command: git tag v3 }"]));
    assert_not_landed(&owned, &before, &run, "an action that only the contract allows");
    assert_eq!(blockers(&run), ["forbidden_action"]);
    let run = herma.approve_and_play(&fix_and(&[]));
    assert_landed(&owned, &before, &run, "main");
}

#[test]
fn a_base_that_cannot_be_copied_uses_no_approval() {
    let (herma, owned) = Herma::with_target(&[]);
    herma.script(&fix_and(&[]));
    let approval = herma.approve();
    // One file of the base has lost its content.
    let lose = "cd \"$1\" && mv .git/objects/pack lost && for pack in lost/*.pack; do git unpack-objects -q < $pack; done \
                && rm -r lost && blob=$(git rev-parse main:slugify.sh) \
                && rm -f .git/objects/$(echo $blob | cut -c1-2)/$(echo $blob | cut -c3-)";
    let dir = owned.repository.dir.as_os_str();
    run_tool("sh", &["-c".as_ref(), lose.as_ref(), "sh".as_ref(), dir], &[]);
    let ended = herma.run(&["run", CONTRACT, "--script", "script.yaml"]);
    assert_eq!(ended.code, Some(4), "{ended:#?}");
    assert_eq!(herma.approval(&approval), ("granted".to_owned(), None));
}

#[test]
fn an_admission_that_is_gone_after_the_approval_stops_the_run() {
    let (herma, owned) = Herma::with_target(&[]);
    herma.script(&fix_and(&[]));
    let approval = herma.approve();
    let admissions = herma.home().join("admissions/target");
    for (what, name, from, to) in [
        ("other paths", "my-repo.yaml", "\"**\"", "\"*\""),
        ("another rationale", "my-repo.yaml", "a test", "no test"),
        ("another signature", "my-repo.signed.json", "\"signature\": \"", "\"signature\": \"AA"),
    ] {
        let file = admissions.join(name);
        let signed = std::fs::read_to_string(&file).unwrap();
        let text = signed.replacen(from, to, 1);
        assert_ne!(text, signed, "{what}");
        std::fs::write(&file, text).unwrap();
        let run = stopped(&herma, &owned, what);
        assert!(blockers(&run).contains(&"target_not_admitted"), "{what}: {:#?}", run.report.blockers);
        std::fs::write(&file, signed).unwrap();
    }
    assert_eq!(herma.approval(&approval), ("granted".to_owned(), None), "no blocked run used it");

    let revoked = herma.run(&["admissions", "revoke", "target", "my-repo", "--reason", "no more"]);
    assert_eq!(revoked.code, Some(0), "{revoked:#?}");
    let run = stopped(&herma, &owned, "revoked");
    assert!(blockers(&run).contains(&"target_not_admitted"), "{:#?}", run.report.blockers);
    assert_eq!(herma.approval(&approval), ("granted".to_owned(), None));
}

#[test]
fn an_admission_whose_review_is_due_after_the_approval_stops_the_run() {
    let (herma, owned) = Herma::with_target(&["--review-trigger", "runs=1"]);
    let approval = herma.approve();
    herma.demo(&["--destination", "host"]);
    herma.script(&fix_and(&[]));
    let run = stopped(&herma, &owned, "the review is due");
    assert!(blockers(&run).contains(&"target_not_admitted"), "{:#?}", run.report.blockers);
    assert_eq!(herma.approval(&approval), ("granted".to_owned(), None));
}
