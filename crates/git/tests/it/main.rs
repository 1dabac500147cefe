//! herma's own git work against the real git.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod hostile_names;
mod kit;
mod landing;
mod landing_back;
mod landing_kit;
mod landing_refused;
mod plain;
mod waiting;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;

use herma_core::RepoPath;
use herma_core::report::{ChangedFile, Mode};
use herma_git::{
    AgentHead, ControlFiles, GitDir, NewFile, ObjectFormat, SourceRepo, copy_changes, lay_out,
    make_agent_repository, tree_id, walk,
};
use kit::{Scene, git_in, path};

/// Files of every kind, with names that git has to quote.
const FILES: &[(&[u8], Mode, &[u8])] = &[
    (b"README.md", Mode::File, b"hello\n"),
    (b"a-b", Mode::File, b"sorts before a/\n"),
    (b"a/deep/er/file", Mode::File, b""),
    (b"a.b", Mode::File, b"sorts between\n"),
    (b"bin/run", Mode::Executable, b"#!/bin/sh\n"),
    (b"caf\xc3\xa9 with spaces", Mode::File, b"\x00\x01binary"),
    (b"link", Mode::Symlink, b"a/deep"),
    (b"not\xffutf8", Mode::File, b"x"),
    (b"quote\"and\ttab", Mode::File, b"y"),
];

fn import(scene: &Scene, format: ObjectFormat) -> (GitDir, herma_git::Baseline) {
    let git_dir = GitDir::create(&scene.git, &scene.dir.path().join("git"), format, None).unwrap();
    let paths: Vec<RepoPath> = FILES.iter().map(|(name, ..)| path(name)).collect();
    let files: Vec<_> = paths
        .iter()
        .zip(FILES)
        .map(|(path, (_, mode, content))| NewFile { path, mode: *mode, content })
        .collect();
    let baseline = git_dir.import(&files).unwrap();
    (git_dir, baseline)
}

#[test]
fn a_tree_comes_back_as_it_went_in_and_has_the_name_that_git_gives() {
    for format in [ObjectFormat::Sha1, ObjectFormat::Sha256] {
        let scene = Scene::new();
        let (git_dir, baseline) = import(&scene, format);
        let entries = git_dir.entries(&baseline.tree).unwrap();
        let workspace = scene.make("workspace");
        lay_out(&git_dir, &entries, &[&workspace]).unwrap();
        let found = walk(&workspace, format).unwrap();
        let expected: BTreeMap<_, _> = entries.iter().map(|e| (e.path.clone(), e.entry.clone())).collect();
        assert_eq!(found.entries, expected);
        assert_eq!(tree_id(format, &found.entries.iter().collect::<Vec<_>>()), baseline.tree);
    }
}

#[test]
fn the_agent_finds_a_clean_repository_with_one_parentless_commit() {
    for format in [ObjectFormat::Sha1, ObjectFormat::Sha256] {
        let scene = Scene::new();
        let (git_dir, baseline) = import(&scene, format);
        let entries = git_dir.entries(&baseline.tree).unwrap();
        let workspace = scene.make("workspace");
        lay_out(&git_dir, &entries, &[&workspace]).unwrap();
        make_agent_repository(&git_dir, AgentHead::Baseline(&baseline), &entries, &workspace, &[], &[])
            .unwrap();
        assert_eq!(git_in(&workspace, &["status", "--porcelain"]), "");
        assert_eq!(git_in(&workspace, &["rev-list", "--parents", "--all"]).trim(), baseline.commit);
        git_in(&workspace, &["fsck", "--strict"]);
        assert_eq!(git_in(&workspace, &["remote"]), "");
        assert!(!workspace.join(".git/objects/info/alternates").exists());
    }
}

#[test]
fn hidden_directories_do_not_look_removed() {
    for format in [ObjectFormat::Sha1, ObjectFormat::Sha256] {
        let scene = Scene::new();
        let (git_dir, baseline) = import(&scene, format);
        let entries = git_dir.entries(&baseline.tree).unwrap();
        let workspace = scene.make("workspace");
        lay_out(&git_dir, &entries, &[&workspace]).unwrap();
        make_agent_repository(
            &git_dir,
            AgentHead::Baseline(&baseline),
            &entries,
            &workspace,
            &[],
            &["a", "missing"],
        )
        .unwrap();
        fs::remove_dir_all(workspace.join("a")).unwrap();
        fs::create_dir(workspace.join("a")).unwrap();
        assert_eq!(git_in(&workspace, &["status", "--porcelain"]), "");
        fs::write(workspace.join("README.md"), "changed\n").unwrap();
        git_in(&workspace, &["add", "-A"]);
        git_in(&workspace, &["commit", "-qam", "all of it"]);
        assert_eq!(git_in(&workspace, &["show", "--format=", "--name-status"]), "M\tREADME.md\n");
        git_in(&workspace, &["fsck", "--strict"]);
    }
}

#[test]
fn a_commit_leaves_the_control_files_alone_and_a_setting_does_not() {
    let scene = Scene::new();
    let (git_dir, baseline) = import(&scene, ObjectFormat::Sha1);
    let entries = git_dir.entries(&baseline.tree).unwrap();
    let workspace = scene.make("workspace");
    lay_out(&git_dir, &entries, &[&workspace]).unwrap();
    make_agent_repository(&git_dir, AgentHead::Baseline(&baseline), &entries, &workspace, &[], &[]).unwrap();
    let before = ControlFiles::read(&workspace).unwrap();
    fs::write(workspace.join("README.md"), "changed\n").unwrap();
    git_in(&workspace, &["commit", "-qam", "one"]);
    git_in(&workspace, &["commit", "-q", "--amend", "-m", "two"]);
    git_in(&workspace, &["gc", "-q"]);
    assert_eq!(ControlFiles::read(&workspace).unwrap().changed_since(&before), []);

    git_in(&workspace, &["config", "core.fsmonitor", "touch /tmp/x"]);
    fs::create_dir_all(workspace.join(".git/hooks")).unwrap();
    fs::write(workspace.join(".git/hooks/pre-commit"), "exit 1\n").unwrap();
    fs::write(workspace.join(".git/objects/info/alternates"), "/elsewhere\n").unwrap();
    let changed = ControlFiles::read(&workspace).unwrap().changed_since(&before);
    let expected =
        [".git/config", ".git/hooks/pre-commit", ".git/objects/info/alternates"].map(|p| path(p.as_bytes()));
    assert_eq!(changed, expected);

    fs::remove_dir_all(workspace.join(".git")).unwrap();
    symlink("/etc", workspace.join(".git")).unwrap();
    let changed = ControlFiles::read(&workspace).unwrap().changed_since(&before);
    assert!(changed.contains(&path(b".git/config")), "a replaced .git shows: {changed:?}");
}

#[test]
fn the_patch_of_collected_changes_gives_the_collected_tree() {
    let scene = Scene::new();
    let (git_dir, baseline) = import(&scene, ObjectFormat::Sha1);
    let entries = git_dir.entries(&baseline.tree).unwrap();
    let (workspace, fresh) = (scene.make("workspace"), scene.make("fresh"));
    lay_out(&git_dir, &entries, &[&workspace, &fresh]).unwrap();
    fs::write(workspace.join("README.md"), "changed\n").unwrap();
    fs::remove_dir_all(workspace.join("a")).unwrap();
    fs::write(workspace.join("a"), "a file where a directory was").unwrap();
    fs::remove_file(workspace.join("link")).unwrap();
    fs::create_dir(workspace.join("link")).unwrap();
    fs::write(workspace.join("link/inside"), [0, 159, 146, 150]).unwrap();

    let found = walk(&workspace, ObjectFormat::Sha1).unwrap();
    let old: BTreeMap<_, _> = entries.iter().map(|e| (&e.path, &e.entry)).collect();
    let paths: BTreeSet<_> = old.keys().copied().chain(found.entries.keys()).collect();
    let changes: Vec<ChangedFile> = paths
        .into_iter()
        .filter(|p| old.get(p).copied() != found.entries.get(p))
        .map(|p| ChangedFile {
            path: p.clone(),
            old: old.get(p).copied().cloned(),
            new: found.entries.get(p).cloned(),
        })
        .collect();
    let result = git_dir.commit_changes(&baseline, &workspace, &changes).unwrap();
    assert_eq!(result.tree, tree_id(ObjectFormat::Sha1, &found.entries.iter().collect::<Vec<_>>()));

    let patch = scene.dir.path().join("patch.diff");
    git_dir.diff(&baseline.tree, &result.tree, fs::File::create(&patch).unwrap()).unwrap();
    assert_eq!(git_dir.tree_with_patch(&baseline.tree, &patch).unwrap(), result.tree);

    copy_changes(&workspace, ObjectFormat::Sha1, &changes, &fresh).unwrap();
    assert_eq!(walk(&fresh, ObjectFormat::Sha1).unwrap().entries, found.entries);
}

#[test]
fn a_deleted_tree_is_the_empty_tree() {
    let scene = Scene::new();
    let (git_dir, baseline) = import(&scene, ObjectFormat::Sha1);
    let entries = git_dir.entries(&baseline.tree).unwrap();
    let gone: Vec<ChangedFile> = entries
        .iter()
        .map(|e| ChangedFile { path: e.path.clone(), old: Some(e.entry.clone()), new: None })
        .collect();
    let result = git_dir.commit_changes(&baseline, &scene.make("empty"), &gone).unwrap();
    assert_eq!(result.tree, "4b825dc642cb6eb9a060e54bf8d69288fbee4904");
}

#[test]
fn every_way_to_touch_the_target_is_noticed() {
    type Touch = (&'static str, fn(&Scene));
    let touches: &[Touch] = &[
        ("work tree", |s| fs::write(s.repo().join("README.md"), "other\n").unwrap()),
        ("work tree", |s| fs::write(s.repo().join("untracked"), "new\n").unwrap()),
        ("work tree", |s| s.set_executable("README.md")),
        ("refs", |s| drop(git_in(&s.repo(), &["branch", "new"]))),
        ("refs", |s| drop(git_in(&s.repo(), &["tag", "new"]))),
        ("HEAD", |s| drop(git_in(&s.repo(), &["checkout", "-q", "-b", "other"]))),
        ("index", |s| drop(git_in(&s.repo(), &["rm", "-q", "--cached", "README.md"]))),
    ];
    for (expected, touch) in touches {
        let scene = Scene::with_repo();
        let source = SourceRepo::open(&scene.git, &scene.repo(), "../repo", None).unwrap();
        let before = source.capture().unwrap();
        assert!(before.clean);
        assert_eq!(source.capture().unwrap(), before, "looking changes nothing");
        touch(&scene);
        let differences = before.differences(&source.capture().unwrap());
        assert!(differences.contains(expected), "{expected}: {differences:?}");
    }
}

#[test]
fn a_directory_that_is_no_repository_top_is_refused_without_its_path() {
    let scene = Scene::with_repo();
    let inside = scene.repo().join("src");
    for (root, base) in [(inside, None), (scene.make("plain"), None), (scene.repo(), Some("no-such-branch"))]
    {
        let error = SourceRepo::open(&scene.git, &root, "../repo", base).unwrap_err().to_string();
        assert!(!error.contains(scene.dir.path().to_str().unwrap()), "{error}");
    }
}

#[test]
fn a_tree_with_an_entry_named_dot_git_is_not_laid_out() {
    let scene = Scene::new();
    let git_dir =
        GitDir::create(&scene.git, &scene.dir.path().join("git"), ObjectFormat::Sha1, None).unwrap();
    let (good, mut bad) = (path(b"file"), Vec::new());
    let baseline =
        git_dir.import(&[NewFile { path: &good, mode: Mode::File, content: b"[core]\n" }]).unwrap();
    for entry in git_dir.entries(&baseline.tree).unwrap() {
        bad.push(herma_git::TreeEntry { path: path(b".git/config"), entry: entry.entry });
    }
    assert!(lay_out(&git_dir, &bad, &[&scene.make("workspace")]).is_err());
}
