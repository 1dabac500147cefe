//! Errors about a broken repository name the broken file, and never the repository's path.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use herma_git::{Git, GitError, SourceRepo, lay_out};

use crate::kit::{Scene, git_in};

/// A directory of the path, with what might pass for the end of a path.
const SECRET: &str = "it's: in here/where it is";

fn break_object(root: &Path, name: &str, content: Option<&str>) {
    let id = git_in(root, &["rev-parse", name]);
    let file = root.join(".git/objects").join(&id[..2]).join(id[2..].trim_end());
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    match content {
        Some(content) => fs::write(file, content).unwrap(),
        None => fs::remove_file(file).unwrap(),
    }
}

type Break = (&'static str, fn(&Path));

const BREAKS: &[Break] = &[
    ("an empty index", |r| fs::write(r.join(".git/index"), "").unwrap()),
    ("a wrong index", |r| fs::write(r.join(".git/index"), "garbage garbage garbage").unwrap()),
    ("an index that is a directory", |r| {
        fs::remove_file(r.join(".git/index")).unwrap();
        fs::create_dir(r.join(".git/index")).unwrap();
    }),
    ("a wrong configuration", |r| fs::write(r.join(".git/config"), "[core").unwrap()),
    ("wrong packed refs", |r| fs::write(r.join(".git/packed-refs"), "garbage line\n").unwrap()),
    ("a missing tree", |r| break_object(r, "HEAD:src", None)),
    ("a missing blob", |r| break_object(r, "HEAD:README.md", None)),
    ("an empty blob", |r| break_object(r, "HEAD:README.md", Some(""))),
    ("a wrong blob", |r| break_object(r, "HEAD:README.md", Some("garbage"))),
    ("a wrong commit", |r| break_object(r, "HEAD", Some("garbage"))),
    ("a missing top tree", |r| break_object(r, "HEAD^{tree}", None)),
    ("an alternate that is not there", |r| {
        fs::write(r.join(".git/objects/info/alternates"), format!("{}/nowhere\n", r.display())).unwrap();
        break_object(r, "HEAD:README.md", None);
    }),
    ("packs that are a file", |r| {
        fs::remove_dir(r.join(".git/objects/pack")).unwrap();
        fs::write(r.join(".git/objects/pack"), "").unwrap();
    }),
];

/// Everything that a run does with a target before anything lands.
fn work(git: &Git, root: &Path, own: &Path) -> Result<(), GitError> {
    let source = SourceRepo::open(git, root, "../repo", None)?;
    source.capture()?;
    let (git_dir, baseline) = source.make_git_dir(&own.join("git"))?;
    let entries = git_dir.entries(&baseline.tree)?;
    let out = own.join("out");
    fs::create_dir(&out).unwrap();
    lay_out(&git_dir, &entries, &[&out])?;
    source.ref_list()?;
    let mut patch = Vec::new();
    git_dir.diff(&git_dir.import(&[])?.tree, &baseline.tree, &mut patch)?;
    let run = "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap();
    source.prepare_landing(&git_dir, &baseline.tree, run, "a title")?;
    Ok(())
}

fn moved(scene: &Scene) -> PathBuf {
    let root = scene.dir.path().join(SECRET).join("repo");
    fs::create_dir_all(root.parent().unwrap()).unwrap();
    fs::rename(scene.repo(), &root).unwrap();
    root
}

fn assert_unplaced(said: &str, what: &str) {
    for part in ["it's", "in here", "where it is", "/tmp"] {
        assert!(!said.contains(part), "{what}: {said}");
    }
}

#[test]
fn no_error_shows_the_path_of_a_repository() {
    for (what, break_it) in BREAKS {
        let (scene, own) = (Scene::with_repo(), tempfile::tempdir().unwrap());
        let root = moved(&scene);
        break_it(&root);
        if let Err(error) = work(&scene.git, &root, own.path()) {
            assert_unplaced(&error.to_string(), what);
        } else {
            assert!(what.contains("packs"), "{what}: nothing was said");
        }
    }
}

#[test]
fn no_error_shows_the_path_of_the_main_work_tree() {
    for content in ["", "garbage"] {
        let (scene, own) = (Scene::with_repo(), tempfile::tempdir().unwrap());
        let root = moved(&scene);
        let linked = scene.dir.path().join("linked");
        git_in(&root, &["worktree", "add", "-q", linked.to_str().unwrap()]);
        fs::write(root.join(".git/worktrees/linked/index"), content).unwrap();
        let error = work(&scene.git, &linked, own.path());
        // git takes an empty index for a new one, unless it reports that it is too small.
        if let Err(error) = error {
            let said = error.to_string();
            assert_unplaced(&said, content);
            assert!(said.contains("index"), "what is wrong is still said: {said}");
        } else {
            assert_eq!(content, "");
        }
    }
}
