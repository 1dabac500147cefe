//! Paths that an engine could overstep by, each through a real run in the sandbox.

use herma_core::Blocker;
use herma_core::report::{Mode, PathRule as Rule};

use crate::kit::{Finished, Herma, ON_REPOSITORY, Repository, everything_below, fix_and};

/// A run that fixes the bug and then takes these steps.
fn fix_then(steps: &[&str]) -> Finished {
    Herma::new().play(&fix_and(steps), &[])
}

#[test]
fn a_link_out_of_the_workspace_is_refused() {
    fix_then(&["- symlink: { path: tests/users, target: ../../../../etc/passwd }"])
        .assert_disallowed(&[("tests/users", Rule::SymlinkEscape)]);
    fix_then(&["- symlink: { path: tests/users, target: /etc/passwd }"])
        .assert_disallowed(&[("tests/users", Rule::SymlinkEscape)]);
}

#[test]
fn a_link_that_stays_inside_is_fine() {
    let run = fix_then(&["- symlink: { path: tests/again, target: notes.md }"]);
    run.assert_pass();
    assert_eq!(run.changed(), ["slugify.sh", "tests/again"]);
}

#[test]
fn a_file_written_through_a_linked_parent_counts_where_it_really_is() {
    // `tests` becomes a link to a directory that is not allowed; files written through it are there.
    let run = fix_then(&[
        "- rename: { from: tests, to: elsewhere }",
        "- symlink: { path: tests, target: elsewhere }",
        "- write: { path: tests/new.md, text: through the link }",
    ]);
    run.assert_disallowed(&[
        ("elsewhere/new.md", Rule::NotAllowed),
        ("elsewhere/notes.md", Rule::NotAllowed),
        ("elsewhere/slugify_test.sh", Rule::NotAllowed),
        ("tests", Rule::NotAllowed),
    ]);
}

#[test]
fn a_parent_that_leads_out_of_the_workspace_hides_nothing() {
    let run = fix_then(&[
        "- delete: tests",
        "- symlink: { path: tests, target: /tmp }",
        "- write: { path: tests/outside.md, text: not in the workspace }",
    ]);
    run.assert_disallowed(&[("tests", Rule::NotAllowed), ("tests", Rule::SymlinkEscape)]);
    assert!(!run.changed().iter().any(|path| path.contains("outside.md")), "{:?}", run.changed());
}

#[test]
fn a_rename_out_of_the_allowed_paths_is_refused_at_its_new_name() {
    fix_then(&["- rename: { from: tests/notes.md, to: notes.md }"])
        .assert_disallowed(&[("notes.md", Rule::NotAllowed)]);
}

#[test]
fn a_rename_from_outside_the_allowed_paths_is_refused_at_its_old_name() {
    fix_then(&["- rename: { from: README.md, to: tests/README.md }"])
        .assert_disallowed(&[("README.md", Rule::NotAllowed)]);
}

#[test]
fn a_name_that_differs_only_in_case_is_refused() {
    fix_then(&["- write: { path: tests/NOTES.md, text: twin }"])
        .assert_disallowed(&[("tests/NOTES.md", Rule::CaseTwin)]);
}

#[test]
fn two_dots_lead_nowhere_but_to_the_file_they_name() {
    fix_then(&["- append: { path: tests/../README.md, text: changed }"])
        .assert_disallowed(&[("README.md", Rule::NotAllowed)]);
}

#[test]
fn two_dots_do_not_lead_out_of_the_workspace() {
    let run = fix_then(&["- write: { path: ../beside.txt, text: outside }"]);
    run.assert_pass();
    assert!(run.engine_said().contains("could not write `../beside.txt`"), "{}", run.engine_said());
    assert_eq!(run.changed(), ["slugify.sh"]);
}

#[test]
fn an_absolute_path_outside_the_workspace_cannot_be_written() {
    let herma = Herma::new();
    let outside = herma.at("outside.txt");
    let write = |path: &str| format!("- write: {{ path: {path}, text: outside }}");
    let steps = [write(&outside.display().to_string()), write("/usr/bin/outside"), write("/etc/outside")];
    let run = herma.play(&fix_and(&steps.each_ref().map(String::as_str)), &[]);
    run.assert_pass();
    assert!(!outside.exists());
    for path in ["/usr/bin/outside", "/etc/outside"] {
        assert!(run.engine_said().contains(&format!("could not write `{path}`")), "{}", run.engine_said());
        assert!(!std::path::Path::new(path).exists());
    }
}

#[test]
fn a_line_break_in_a_name_is_refused() {
    fix_then(&[r"- write: { path: 'tests/two\x0alines', text: x }"])
        .assert_disallowed(&[(r#""tests/two\nlines""#, Rule::UnprintableName)]);
}

#[test]
fn a_name_that_is_not_utf_8_is_refused() {
    fix_then(&[r"- write: { path: 'tests/caf\xe9', text: x }"])
        .assert_disallowed(&[(r#""tests/caf\351""#, Rule::UnprintableName)]);
}

#[test]
fn a_repository_inside_the_repository_is_refused() {
    let run = Herma::new().play("nested-repo", &[]);
    run.assert_disallowed(&[("tests/inner/.git", Rule::NestedRepository)]);
}

#[test]
fn a_git_file_in_any_spelling_is_refused() {
    fix_then(&["- write: { path: tests/.GIT, text: 'gitdir: /tmp' }"])
        .assert_disallowed(&[("tests/.GIT", Rule::NestedRepository)]);
}

/// A repository with a submodule at `tests/lib`, which is allowed by its path alone.
fn with_submodule(herma: &Herma) -> Repository {
    let repository = Repository::of_fixture(herma, "string-slugify");
    let commit = repository.git(&["rev-parse", "HEAD"]).trim().to_owned();
    repository.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{commit},tests/lib")]);
    let name = ["-c", "user.name=owner", "-c", "user.email=owner@herma.invalid"];
    repository.git(&[&name[..], &["commit", "-q", "-m", "a submodule"]].concat());
    std::fs::create_dir(repository.dir.join("tests/lib")).unwrap();
    assert_eq!(repository.git(&["status", "--porcelain"]), "");
    repository
}

#[test]
fn a_file_inside_a_submodule_is_refused() {
    let herma = Herma::new();
    with_submodule(&herma);
    let run = herma.play(&fix_and(&["- write: { path: tests/lib/new.sh, text: x }"]), &ON_REPOSITORY);
    run.assert_disallowed(&[("tests/lib", Rule::Submodule), ("tests/lib/new.sh", Rule::Submodule)]);
}

#[test]
fn an_untouched_submodule_does_not_matter() {
    let herma = Herma::new();
    let repository = with_submodule(&herma);
    let before = repository.picture();
    let run = herma.play(&fix_and(&[]), &ON_REPOSITORY);
    run.assert_pass();
    assert_eq!(run.changed(), ["slugify.sh"]);
    assert_eq!(repository.picture(), before);
}

#[test]
fn a_submodule_that_becomes_a_file_is_refused() {
    let herma = Herma::new();
    with_submodule(&herma);
    let script = fix_and(&["- delete: tests/lib", "- write: { path: tests/lib, text: x }"]);
    herma.play(&script, &ON_REPOSITORY).assert_disallowed(&[("tests/lib", Rule::Submodule)]);
}

#[test]
fn a_change_of_mode_alone_is_a_change() {
    fix_then(&["- chmod: { path: README.md, mode: \"755\" }"])
        .assert_disallowed(&[("README.md", Rule::NotAllowed)]);
    let run = fix_then(&["- chmod: { path: tests/notes.md, mode: \"755\" }"]);
    run.assert_pass();
    let notes = &run.report.changed_files[1];
    assert_eq!(notes.path.to_string(), "tests/notes.md");
    let [old, new] = [&notes.old, &notes.new].map(|entry| entry.as_ref().unwrap());
    assert_eq!((old.mode, new.mode), (Mode::File, Mode::Executable));
    assert_eq!(old.id, new.id);
}

#[test]
fn an_untracked_file_is_a_change_like_any_other() {
    fix_then(&["- write: { path: untracked.txt, text: x }"])
        .assert_disallowed(&[("untracked.txt", Rule::NotAllowed)]);
}

#[test]
fn a_new_file_that_the_ignore_rules_cover_is_recorded_and_does_not_land() {
    let run = fix_then(&["- write: { path: debug.log, text: x }"]);
    run.assert_pass();
    assert_eq!(run.changed(), ["slugify.sh"]);
    let ignored: Vec<String> = run.report.ignored_files.iter().map(ToString::to_string).collect();
    assert_eq!(ignored, ["debug.log"]);
    assert!(!run.bundle.text("patch.diff").contains("debug.log"));
}

#[test]
fn a_secret_in_a_name_is_a_secret_and_not_in_the_evidence() {
    let token = format!("gh{}{}", "p_", "aB3dE5fG7hJ9kL2mN4pQ6rS8tU1vW0xYaB3d");
    let patch = "the patch holds a secret: github_token";
    for (step, also, said) in [
        (
            format!("- write: {{ path: {token}.log, text: x }}"),
            None,
            "the name of an ignored file holds a secret: github_token",
        ),
        (format!("- write: {{ path: tests/{token}.md, text: x }}"), None, patch),
        // git quotes these.
        (format!("- write: {{ path: tests/\u{e4}{token}.md, text: x }}"), None, patch),
        (
            format!("- write: {{ path: 'tests/\\xe4{token}.md', text: x }}"),
            Some(Blocker::DisallowedFile),
            patch,
        ),
        (
            format!("- write: {{ path: 'tests/\\x0a{token}.md', text: x }}"),
            Some(Blocker::DisallowedFile),
            patch,
        ),
        (format!("- write: {{ path: {token}/x.md, text: x }}"), Some(Blocker::DisallowedFile), patch),
        (
            format!("- symlink: {{ path: tests/link, target: /etc/{token} }}"),
            Some(Blocker::DisallowedFile),
            patch,
        ),
        (
            format!("- shell: mkfifo tests/{token}"),
            Some(Blocker::DisallowedFile),
            "the name of a file that cannot be part of the patch holds a secret: github_token",
        ),
    ] {
        // The kit verifies the bundle.
        let run = fix_then(&[&step]);
        let mut found: Vec<_> = run.report.blockers.iter().map(|record| record.blocker).collect();
        found.sort_unstable();
        let mut wanted: Vec<_> = also.into_iter().chain([Blocker::SecretInOutput]).collect();
        wanted.sort_unstable();
        assert_eq!(found, wanted, "{step}: {:#?}", run.report);
        let secret = run.report.blockers.iter().find(|record| record.blocker == Blocker::SecretInOutput);
        assert!(secret.unwrap().detail.starts_with(said), "{step}: {secret:?}");
        // Text without a secret is shown.
        assert_eq!(run.bundle.dir.join("patch.diff").exists(), said != patch, "{step}");
        for (name, (_, bytes)) in everything_below(&run.bundle.dir) {
            assert!(!String::from_utf8_lossy(&bytes).contains(&token), "{step}: {}", name.display());
        }
    }
}

#[test]
fn an_engine_cannot_hide_a_file_by_ignore_rules_of_its_own() {
    let run = fix_then(&[
        "- write: { path: tests/.gitignore, text: '*.hidden' }",
        "- write: { path: README.hidden, text: x }",
        "- write: { path: tests/a.hidden, text: x }",
    ]);
    run.assert_disallowed(&[("README.hidden", Rule::NotAllowed)]);
    assert_eq!(run.changed(), ["README.hidden", "slugify.sh", "tests/.gitignore", "tests/a.hidden"]);
}

#[test]
fn an_ignored_file_that_is_forbidden_still_counts() {
    fix_then(&["- write: { path: .herma/x.log, text: x }"])
        .assert_disallowed(&[(".herma/x.log", Rule::Forbidden)]);
}

#[test]
fn a_commit_that_was_made_and_amended_is_just_the_final_tree() {
    let amended = Herma::new().play("commit-and-amend", &[]);
    amended.assert_pass();
    assert_eq!(amended.changed(), ["slugify.sh", "tests/notes.md"]);
    // The same files, without any commit.
    let text = r#"- append: { path: tests/notes.md, text: "\nA case is a title and the slug that it should give.\n" }"#;
    let plain = fix_then(&[text]);
    assert_eq!(plain.report.changed_files[1], amended.report.changed_files[1]);
}

#[test]
fn a_change_that_was_committed_and_then_undone_is_no_change() {
    let undo = "- shell: 'echo x >> README.md && git commit -q -m x README.md && git revert --no-edit HEAD >/dev/null'";
    let run = fix_then(&[undo]);
    run.assert_pass();
    assert_eq!(run.changed(), ["slugify.sh"]);
}

#[test]
fn a_file_that_was_deleted_and_written_again_as_it_was_is_no_change() {
    Herma::new().play("delete-and-recreate", &[]).assert_only(Blocker::NoDiff);
}

#[test]
fn git_settings_that_the_engine_changed_are_refused() {
    fix_then(&["- shell: git config core.editor true"])
        .assert_disallowed(&[(".git/config", Rule::Forbidden)]);
}

#[test]
fn hooks_that_the_engine_wrote_are_refused() {
    let hook = "- write: { path: .git/hooks/pre-commit, text: exit 0 }";
    fix_then(&[hook]).assert_disallowed(&[(".git/hooks/pre-commit", Rule::Forbidden)]);
}

#[test]
fn alternates_that_the_engine_wrote_are_refused() {
    fix_then(&["- write: { path: .git/objects/info/alternates, text: /tmp/objects }"])
        .assert_disallowed(&[(".git/objects/info/alternates", Rule::Forbidden)]);
}

#[test]
fn attributes_and_excludes_that_the_engine_wrote_into_git_are_refused() {
    let steps = [
        "- write: { path: .git/info/attributes, text: '* -diff' }",
        "- write: { path: .git/info/exclude, text: '*' }",
    ];
    fix_then(&steps).assert_disallowed(&[
        (".git/info/attributes", Rule::Forbidden),
        (".git/info/exclude", Rule::Forbidden),
    ]);
}

#[test]
fn a_git_directory_that_is_gone_or_replaced_hides_nothing() {
    let gone = fix_then(&["- delete: .git", "- append: { path: README.md, text: x }"]);
    gone.assert_only(Blocker::DisallowedFile);
    assert!(gone.changed().contains(&"README.md".to_owned()), "{:?}", gone.changed());
    let replaced = fix_then(&["- delete: .git", "- write: { path: .git, text: 'gitdir: /tmp/other' }"]);
    replaced.assert_only(Blocker::DisallowedFile);
}

#[test]
fn a_link_that_makes_a_forbidden_name_of_something_allowed_is_refused() {
    let steps = [
        "- write: { path: tests/ci/workflows/x.yml, text: 'on: push' }",
        "- symlink: { path: tests/.github, target: ci }",
        "- symlink: { path: tests/vendor, target: ci }",
    ];
    fix_then(&steps)
        .assert_disallowed(&[("tests/.github", Rule::ForbiddenAlias), ("tests/vendor", Rule::Forbidden)]);
}
