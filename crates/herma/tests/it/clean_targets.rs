//! Whether a target is clean: its own configuration decides, and the obstacles are named.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use herma_core::Blocker;

use crate::kit::{Herma, ON_REPOSITORY, Repository, fix_and};

/// The words of the one blocker that there must be.
fn blocked(herma: &Herma) -> (String, String) {
    let run = herma.play(&fix_and(&[]), &ON_REPOSITORY);
    run.assert_only(Blocker::DirtyStartingTree);
    let record = &run.report.blockers[0];
    (record.detail.clone(), record.next_step.clone())
}

#[test]
fn untracked_files_and_hermas_own_directory_do_not_make_a_target_dirty() {
    let herma = Herma::new();
    let repository = Repository::of_fixture(&herma, "string-slugify");
    let own = repository.dir.join(".herma");
    fs::create_dir(&own).unwrap();
    fs::write(own.join("notes.md"), "one\n").unwrap();
    repository.commit("notes");
    fs::write(own.join("notes.md"), "two\n").unwrap();
    fs::write(own.join("contract.md"), "new\n").unwrap();
    fs::write(repository.dir.join("notes.swp"), "").unwrap();
    let before = repository.picture();
    let run = herma
        .play(&fix_and(&["- shell: test ! -e notes.swp && grep -q one .herma/notes.md"]), &ON_REPOSITORY);
    run.assert_pass();
    assert_eq!((run.report.target_clean_start, run.report.target_clean_end), (Some(true), Some(true)));
    assert_eq!(repository.picture(), before);

    fs::write(repository.dir.join("slugify.sh"), "changed\n").unwrap();
    let (detail, next_step) = blocked(&herma);
    assert_eq!(detail, "gate target_clean: tracked files of `../repo` have uncommitted changes: slugify.sh");
    assert!(next_step.starts_with("Commit or stash the changes."), "{next_step}");
    repository.git(&["checkout", "-q", "slugify.sh"]);
    // A file that git is to track is no untracked one.
    repository.git(&["add", "notes.swp"]);
    assert!(blocked(&herma).0.ends_with(": notes.swp"));
}

#[test]
fn an_untracked_file_that_appears_during_a_run_still_fails_it() {
    let herma = Herma::new();
    let repository = Repository::of_fixture(&herma, "string-slugify");
    fs::write(repository.dir.join("notes.swp"), "").unwrap();
    for path in ["more.swp", "notes.swp", ".herma-notes"] {
        let appears = format!("- shell: echo x >> '{}'", repository.dir.join(path).display());
        let terms = [ON_REPOSITORY[0], ON_REPOSITORY[1], ("destination", "host")];
        let run = herma.play(&fix_and(&[&appears]), &terms);
        let blockers: Vec<Blocker> = run.report.blockers.iter().map(|record| record.blocker).collect();
        assert!(blockers.contains(&Blocker::SourceMutated), "{path}: {blockers:?}");
        // A file that was there keeps its line in `git status`.
        assert_eq!(blockers.contains(&Blocker::DirtyEndingTree), path != "notes.swp", "{path}: {blockers:?}");
        assert_eq!(run.report.target_clean_end, Some(path == "notes.swp"));
    }
}

#[test]
fn names_are_few_short_harmless_and_without_secrets() {
    let herma = Herma::new();
    let repository = Repository::of_fixture(&herma, "string-slugify");
    let secret = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    for name in ["\u{1b}[31m\u{202e}red", &format!("0-{}", "long".repeat(50)), &format!("1-{secret}")] {
        fs::write(repository.dir.join(name), "").unwrap();
    }
    for number in 2..10 {
        fs::write(repository.dir.join(format!("{number}-plain")), "").unwrap();
    }
    repository.git(&["add", "-A"]);
    let (detail, _) = blocked(&herma);
    assert!(detail.ends_with("3-plain and 6 more"), "{detail}");
    assert!(detail.contains("longlo…, ") && !detail.contains(&secret), "{detail}");
    assert!(!detail.chars().any(char::is_control) && !detail.contains('\u{202e}'), "{detail}");
}

#[test]
fn the_own_configuration_of_a_target_decides_what_is_changed() {
    let herma = Herma::new();
    let repository = Repository::of_fixture(&herma, "string-slugify");
    let file = repository.dir.join("slugify.sh");
    // Checked out with other line ends, and saved again without a change.
    repository.git(&["config", "core.autocrlf", "true"]);
    fs::remove_file(&file).unwrap();
    repository.git(&["checkout", "-q", "slugify.sh"]);
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("\r\n"), "{text:?}");
    fs::write(&file, &text).unwrap();
    herma.play(&fix_and(&[]), &ON_REPOSITORY).assert_pass();
    repository.git(&["config", "core.autocrlf", "false"]);
    assert!(blocked(&herma).0.ends_with(": slugify.sh"));

    repository.git(&["checkout", "-q", "slugify.sh"]);
    let mode = file.metadata().unwrap().permissions().mode();
    fs::set_permissions(&file, Permissions::from_mode(mode ^ 0o111)).unwrap();
    assert!(blocked(&herma).0.ends_with(": slugify.sh"));
    repository.git(&["config", "core.fileMode", "false"]);
    herma.play(&fix_and(&[]), &ON_REPOSITORY).assert_pass();
}
