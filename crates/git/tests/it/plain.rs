//! A repository that is partly behind links: it is recognised, and nothing is written through a link.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use herma_git::{LandError, SourceRepo, is_plain};

use crate::kit::{Scene, git_in};
use crate::landing_kit::{Target, files};

/// Paths that a link could replace, so that a landing would write or read elsewhere.
const PLACES: [&str; 9] = [
    ".git/HEAD",
    ".git/config",
    ".git/logs",
    ".git/objects",
    ".git/objects/pack",
    ".git/packed-refs",
    ".git/refs",
    ".git/refs/heads",
    ".git/refs/heads/herma",
];

/// Moves what is at `place` to `elsewhere`, and leaves a link. git sees no difference.
fn lead_away(place: &Path, elsewhere: &Path) {
    if place.exists() {
        fs::rename(place, elsewhere).unwrap();
    } else if place.ends_with("packed-refs") {
        fs::write(elsewhere, "").unwrap();
    } else {
        fs::create_dir(elsewhere).unwrap();
    }
    symlink(elsewhere, place).unwrap();
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap()
}

fn refused(root: &Path, named: &str) {
    let why = is_plain(root).unwrap_err().to_string();
    assert!(why.contains(named), "{why}");
    assert!(!why.contains(root.parent().unwrap().to_str().unwrap()), "{why}");
}

#[test]
fn a_repository_with_a_link_on_the_way_is_not_plain() {
    for place in PLACES {
        let scene = Scene::with_repo();
        let root = real(&scene.repo());
        is_plain(&root).unwrap();
        lead_away(&root.join(place), &scene.dir.path().join("elsewhere"));
        refused(&root, place);
    }
}

#[test]
fn a_path_that_leads_elsewhere_is_not_plain() {
    let scene = Scene::with_repo();
    let dir = real(scene.dir.path());
    symlink(dir.join("repo"), dir.join("link")).unwrap();
    symlink(&dir, dir.join("around")).unwrap();
    refused(&dir.join("link"), "symbolic link");
    refused(&dir.join("around/repo"), "symbolic link");
    refused(&dir.join("repo/../repo"), "symbolic link");
    refused(&dir.join("nowhere"), "symbolic link");
}

#[test]
fn a_linked_git_directory_is_not_plain() {
    let scene = Scene::with_repo();
    let dir = real(scene.dir.path());
    git_in(&dir.join("repo"), &["worktree", "add", "-q", "../linked"]);
    refused(&dir.join("linked"), "main work tree");
    git_in(&dir, &["clone", "-q", "repo", "by-link"]);
    git_in(&dir, &["clone", "-q", "repo", "by-common"]);
    lead_away(&dir.join("by-link/.git"), &dir.join("elsewhere"));
    refused(&dir.join("by-link"), "`.git` is a symbolic link");
    fs::write(dir.join("by-common/.git/commondir"), "../../repo/.git\n").unwrap();
    refused(&dir.join("by-common"), "commondir");

    let linked = SourceRepo::open(&scene.git, &dir.join("linked"), "../linked", None).unwrap();
    assert!(linked.is_at(&dir.join("linked")).is_err());
    assert!(linked.is_at(&dir.join("repo")).is_err(), "it is another one that was found");
    let main = SourceRepo::open(&scene.git, &dir.join("repo"), "../repo", None).unwrap();
    main.is_at(&dir.join("repo")).unwrap();
}

#[test]
fn nothing_lands_through_a_link() {
    for place in PLACES {
        let target = Target::new();
        lead_away(&target.repo().join(place), &target.home.path().join("elsewhere"));
        let before = (files(target.scene.dir.path()), files(target.home.path()));
        let error = target.source.land(&target.git_dir, &target.landing).unwrap_err();
        assert!(
            matches!(&error, LandError::NotPlain(why) if why.to_string().contains(place)),
            "{place}: {error:?}"
        );
        assert!((files(target.scene.dir.path()), files(target.home.path())) == before, "{place}");
        assert!(!error.to_string().contains(target.scene.dir.path().to_str().unwrap()), "{error}");
    }
}

#[test]
fn nothing_lands_in_another_repository() {
    let ways: [fn(&Target); 3] = [
        |t| symlink(other(t), t.repo().join(".git")).unwrap(),
        |t| fs::write(t.repo().join(".git"), format!("gitdir: {}\n", other(t).display())).unwrap(),
        |t| {
            fs::remove_dir_all(t.repo()).unwrap();
            symlink(other(t).parent().unwrap(), t.repo()).unwrap();
        },
    ];
    for lead in ways {
        let target = Target::new();
        git_in(target.home.path(), &["clone", "-q", target.repo().to_str().unwrap(), "other"]);
        fs::remove_dir_all(target.repo().join(".git")).unwrap();
        lead(&target);
        let before = files(&other(&target));
        let error = target.source.land(&target.git_dir, &target.landing).unwrap_err();
        assert!(matches!(error, LandError::NotPlain(_)), "{error:?}");
        drop(target.source.unland(&target.landing));
        assert!(files(&other(&target)) == before);
    }
}

fn other(target: &Target) -> PathBuf {
    target.home.path().join("other/.git")
}
