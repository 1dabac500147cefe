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
fn files_that_only_a_global_ignore_file_covers_are_named_with_a_next_step() {
    let herma = Herma::new();
    let repository = Repository::of_fixture(&herma, "string-slugify");
    fs::create_dir_all(herma.at("user/.config/git")).unwrap();
    fs::write(herma.at("user/.config/git/ignore"), "*.swp\n").unwrap();
    fs::write(repository.dir.join("notes.swp"), "").unwrap();
    let (detail, next_step) = blocked(&herma);
    assert!(detail.ends_with("without the user's global configuration: notes.swp"), "{detail}");
    assert!(next_step.contains(".git/info/exclude"), "{next_step}");
    fs::write(repository.dir.join(".git/info/exclude"), "*.swp\n").unwrap();
    herma.play(&fix_and(&[]), &ON_REPOSITORY).assert_pass();
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
