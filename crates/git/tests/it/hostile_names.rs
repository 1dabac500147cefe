//! Names and depths that an agent can choose so that git or the kernel refuses them.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;

use herma_core::RepoPath;
use herma_core::report::{ChangedFile, Mode};
use herma_git::{Baseline, ControlFiles, GitDir, NewFile, ObjectFormat, lay_out, tree_id, walk};
use rustix::fs::{Mode as Permissions, OFlags};

use crate::kit::{Scene, path};

/// Names that mean something else than a file to some command, or have to be quoted.
const NAMES: &[&[u8]] = &[
    b":!x",
    b":^x",
    b":/x",
    b":(top)x",
    b":(exclude)x",
    b"-x",
    b"--stdin",
    b"--",
    b"@",
    b"@{u}",
    b"HEAD",
    b"*",
    b"[a]",
    b"a?",
    b"!x",
    b"#x",
    b"~",
    b"\"quoted\"",
    b"back\\slash",
    b"trailing ",
    b" leading",
    b"new\nline",
    b"tab\t",
    b"\x1b[31m",
    b"not\xffutf8",
    b"/dev/null",
    b"a/:!b/-c/@",
];

/// A git directory with a baseline of these files.
fn baseline(scene: &Scene, files: &[(&[u8], Mode, &[u8])]) -> (GitDir, Baseline) {
    let git_dir =
        GitDir::create(&scene.git, &scene.dir.path().join("git"), ObjectFormat::Sha1, None).unwrap();
    let paths: Vec<RepoPath> = files.iter().map(|(name, ..)| path(name)).collect();
    let files: Vec<_> = paths
        .iter()
        .zip(files)
        .map(|(path, (_, mode, content))| NewFile { path, mode: *mode, content })
        .collect();
    let baseline = git_dir.import(&files).unwrap();
    (git_dir, baseline)
}

fn write(root: &Path, name: &[u8]) {
    let file = root.join(OsStr::from_bytes(name.strip_prefix(b"/").unwrap_or(name)));
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, "x").unwrap();
}

/// Directories named `name`, one in the other.
fn nest(top: &Path, name: &str, levels: usize) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut at = rustix::fs::open(top, flags, Permissions::empty()).unwrap();
    for _ in 0..levels {
        rustix::fs::mkdirat(&at, name, Permissions::RWXU).unwrap();
        at = rustix::fs::openat(&at, name, flags, Permissions::empty()).unwrap();
    }
    rustix::fs::openat(&at, "file", OFlags::CREATE | OFlags::WRONLY, Permissions::RUSR).unwrap();
}

#[test]
fn every_name_is_asked_about_recorded_and_patched_as_it_is() {
    let scene = Scene::new();
    let (git_dir, baseline) = baseline(&scene, &[(b".gitignore", Mode::File, b"*.log\n")]);
    let entries = git_dir.entries(&baseline.tree).unwrap();
    let (workspace, checkout) = (scene.make("workspace"), scene.make("checkout"));
    lay_out(&git_dir, &entries, &[&workspace, &checkout]).unwrap();
    for name in NAMES {
        write(&workspace, name);
        write(&workspace, &[name, &b".log"[..]].concat());
    }
    let found = walk(&workspace, ObjectFormat::Sha1).unwrap();
    let added: Vec<RepoPath> = found.entries.keys().filter(|p| **p != path(b".gitignore")).cloned().collect();
    assert_eq!(added.len(), 2 * NAMES.len());
    let ignored = git_dir.ignored(&checkout, &entries, &added).unwrap();
    let logs = added.iter().filter(|path| path.as_bytes().ends_with(b".log"));
    assert!(ignored.iter().eq(logs), "{ignored:?}");

    let change = |path: &RepoPath| ChangedFile {
        path: path.clone(),
        old: None,
        new: found.entries.get(path).cloned(),
    };
    let changes: Vec<ChangedFile> = added.iter().map(change).collect();
    let result = git_dir.commit_changes(&baseline, &workspace, &changes).unwrap();
    assert_eq!(result.tree, tree_id(ObjectFormat::Sha1, &found.entries.iter().collect::<Vec<_>>()));
    let patch = scene.dir.path().join("patch.diff");
    git_dir.diff(&baseline.tree, &result.tree, fs::File::create(&patch).unwrap()).unwrap();
    assert_eq!(git_dir.tree_with_patch(&baseline.tree, &patch).unwrap(), result.tree);
}

#[test]
fn a_directory_where_the_base_has_a_link_is_not_ignored() {
    let scene = Scene::new();
    let files: &[(&[u8], Mode, &[u8])] =
        &[(b".gitignore", Mode::File, b"*.log\n"), (b"d/link", Mode::Symlink, b"elsewhere")];
    let (git_dir, baseline) = baseline(&scene, files);
    let entries = git_dir.entries(&baseline.tree).unwrap();
    let checkout = scene.make("checkout");
    lay_out(&git_dir, &entries, &[&checkout]).unwrap();
    let added = [b"d/link/a.log", &b"d/a.log"[..], b"d/link/b"].map(path);
    let ignored = git_dir.ignored(&checkout, &entries, &added).unwrap();
    assert!(ignored.iter().eq([&path(b"d/a.log")]), "{ignored:?}");
    assert!(git_dir.ignored(&checkout, &entries, &[path(b"d/link/a.log")]).unwrap().is_empty());
}

#[test]
fn entries_that_are_too_deep_are_reported_and_the_rest_is_walked() {
    let scene = Scene::new();
    let workspace = scene.make("workspace");
    write(&workspace, b"beside");
    write(&workspace, b"deep/beside");
    nest(&workspace.join("deep"), &"a".repeat(100), 50);
    nest(&workspace.join("deep"), "b", 2000);
    let found = walk(&workspace, ObjectFormat::Sha1).unwrap();
    let [deep] = &found.too_deep[..] else { panic!("{:?}", found.too_deep) };
    // `deep` and forty directories; the next one has 4,145 bytes.
    assert_eq!(deep.as_bytes().len(), 4 + 40 * 101);
    let files: Vec<usize> = found.entries.keys().map(|path| path.as_bytes().len()).collect();
    assert_eq!(files, [6, 4 + 2000 * 2 + 5, 11]);
}

#[test]
fn git_control_files_that_are_too_deep_show_as_changed() {
    let scene = Scene::new();
    let workspace = scene.make("workspace");
    let hooks = workspace.join(".git/hooks");
    fs::create_dir_all(&hooks).unwrap();
    let before = ControlFiles::read(&workspace).unwrap();
    nest(&hooks, &"a".repeat(100), 50);
    let changed = ControlFiles::read(&workspace).unwrap().changed_since(&before);
    assert_eq!(changed.len(), 1, "{changed:?}");
}

#[test]
fn every_spelling_of_dot_git_is_a_repository_and_not_entered() {
    let scene = Scene::new();
    let workspace = scene.make("workspace");
    let names = [".GIT", ".git ", ".git.", ".git::$INDEX_ALLOCATION", "git~1", ".g\u{200c}it", "x\\.git"];
    for name in names {
        write(&workspace, format!("d/{name}/config").as_bytes());
    }
    symlink("elsewhere", workspace.join("GIT~1")).unwrap();
    write(&workspace, b".gitignore");
    let mut found = walk(&workspace, ObjectFormat::Sha1).unwrap();
    found.nested_repositories.sort();
    let mut expected: Vec<RepoPath> = names.iter().map(|name| path(format!("d/{name}").as_bytes())).collect();
    expected.push(path(b"GIT~1"));
    expected.sort();
    assert_eq!(found.nested_repositories, expected);
    assert!(found.entries.keys().eq([&path(b".gitignore")]));
}
