//! The repository's own configuration runs no program while a patch is applied or taken back.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::Scene;
use crate::kit::{ON_REPOSITORY, fix_and, names};

/// The hooks of git that a checkout, a commit or a ref could run.
const HOOKS: [&str; 12] = [
    "applypatch-msg",
    "pre-applypatch",
    "post-applypatch",
    "pre-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "post-checkout",
    "post-index-change",
    "post-rewrite",
    "reference-transaction",
    "fsmonitor-watchman",
];

/// A program that leaves a file with its name.
fn trap(file: &Path, traces: &Path) -> String {
    let name = file.file_name().unwrap().to_string_lossy();
    fs::write(file, format!("#!/bin/sh\ntouch '{}/{name}'\ncat\n", traces.display())).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn hooks_filters_and_monitors_do_not_run() {
    let terms = [&ON_REPOSITORY[..], &[("allowed_paths", "[\"**\"]")]].concat();
    let script =
        fix_and(&["- shell: echo more > more.sh && echo '* filter=trap diff=trap' > .gitattributes.new"]);
    let scene = Scene::with(&script, &terms, |dir| {
        fs::write(dir.join(".gitattributes"), "*.sh filter=trap diff=trap merge=trap\n").unwrap();
    });
    let traces = scene.herma.at("traces");
    fs::create_dir(&traces).unwrap();
    let traps = scene.herma.at("traps");
    fs::create_dir(&traps).unwrap();
    for hook in HOOKS {
        trap(&scene.repository.dir.join(".git/hooks").join(hook), &traces);
    }
    let set = |key: &str| {
        let program = trap(&traps.join(key), &traces);
        scene.repository.git(&["config", key, &program]);
    };
    for key in [
        "core.fsmonitor",
        "core.sshCommand",
        "core.editor",
        "core.pager",
        "core.askPass",
        "filter.trap.clean",
        "filter.trap.smudge",
        "filter.trap.process",
        "diff.external",
        "diff.trap.textconv",
        "diff.trap.command",
        "merge.trap.driver",
        "gpg.program",
        "credential.helper",
    ] {
        set(key);
    }
    scene.repository.git(&["config", "filter.trap.required", "true"]);
    scene.repository.git(&["config", "commit.gpgSign", "true"]);
    // git of this test may have run some of them.
    let clear = || names(&traces).iter().for_each(|name| fs::remove_file(traces.join(name)).unwrap());
    clear();
    let before = scene.repository.picture();
    for args in [&[][..], &["--undo"], &["--branch", "b"], &["--undo"]] {
        scene.applied(args);
        assert_eq!(names(&traces), [""; 0], "{args:?}");
    }
    assert_eq!(scene.repository.picture(), before);
    // The traps work: a git that is not hardened falls into them.
    scene.repository.git(&["update-ref", "refs/heads/x", "HEAD"]);
    assert_eq!(names(&traces), ["reference-transaction"]);
}

/// `git init --separate-git-dir` and bare repositories: git's directory need not be called `.git`.
#[test]
fn no_hook_is_written_into_a_git_directory_with_another_name() {
    let terms = [&ON_REPOSITORY[..], &[("allowed_paths", "[\"**\"]")]].concat();
    let hook = "data.git/hooks/post-checkout";
    let step = format!("- shell: mkdir -p data.git/hooks && echo exit 1 > {hook} && chmod 755 {hook}");
    let scene = Scene::with(&fix_and(&[&step]), &terms, |_| {});
    let at = |path: &str| scene.repository.dir.join(path);
    fs::rename(at(".git"), at("data.git")).unwrap();
    fs::write(at(".git"), "gitdir: data.git\n").unwrap();
    scene.refused(&[], 3, "`data.git` is a directory of git itself");
    assert!(!at(hook).exists());
    // HEAD, index and work tree are not touched by a branch.
    scene.applied(&["--branch", "b"]);
    assert!(!at(hook).exists());
}
