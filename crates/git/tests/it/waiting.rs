//! FIFOs, sockets, devices and huge files among git's own files: nothing blocks on them, and they are named.

use std::fs::{self, File};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use herma_destination::Tool;
use herma_git::{GitError, SourceRepo, SourceState};

use crate::kit::{Scene, git_in};

const PLACES: [&str; 13] = [
    ".git/HEAD",
    ".git/config",
    ".git/index",
    ".git/packed-refs",
    ".git/refs/heads/deep/er/pipe",
    ".git/info/exclude",
    ".git/info/attributes",
    ".git/objects/info/alternates",
    ".git/objects/pack/pack-0.idx",
    ".git/commondir",
    ".git/shallow",
    ".gitignore",
    ".gitattributes",
];

fn make_fifo(path: &Path) {
    let tool = Tool::find("mkfifo", "/usr/bin:/bin".as_ref()).unwrap();
    tool.call().arg(path).checked().unwrap();
}

fn clear(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    drop(fs::remove_file(path));
}

/// The result of `look`, which must not block.
fn ends<T: Send + 'static>(what: &str, look: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, ended) = mpsc::channel();
    std::thread::spawn(move || drop(done.send(look())));
    let ended = ended.recv_timeout(Duration::from_mins(2));
    assert!(ended.is_ok(), "{what}: it waits");
    ended.unwrap()
}

fn look(scene: &Scene, what: &str) -> Result<SourceState, GitError> {
    let (git, repo) = (scene.git.clone(), scene.repo());
    ends(what, move || SourceRepo::open(&git, &repo, "../repo", None)?.capture())
}

#[test]
fn a_fifo_is_refused_by_name_when_a_repository_is_opened_and_when_it_is_looked_at_again() {
    for place in PLACES {
        let scene = Scene::with_repo();
        let source = SourceRepo::open(&scene.git, &scene.repo(), "../repo", None).unwrap();
        let file = scene.repo().join(place);
        clear(&file);
        make_fifo(&file);
        for error in [look(&scene, place).unwrap_err(), ends(place, move || source.capture()).unwrap_err()] {
            let said = error.to_string();
            assert!(said.contains(place) && said.contains("not a regular file"), "{said}");
            assert!(!said.contains(scene.dir.path().to_str().unwrap()), "{said}");
        }
    }
}

#[test]
fn a_fifo_behind_a_linked_work_tree_is_refused_too() {
    for place in [".git/refs/heads/pipe", ".git/worktrees/linked/index", ".git/worktrees/linked/commondir"] {
        let scene = Scene::with_repo();
        git_in(&scene.repo(), &["worktree", "add", "-q", "../linked"]);
        let file = scene.repo().join(place);
        clear(&file);
        make_fifo(&file);
        let (git, linked) = (scene.git.clone(), scene.dir.path().join("linked"));
        let error = ends(place, move || SourceRepo::open(&git, &linked, "../linked", None)).unwrap_err();
        assert!(error.to_string().contains(place), "{error}");
    }
}

#[test]
fn a_huge_file_is_refused_and_not_read() {
    for place in [".git/HEAD", ".git/index", ".git/packed-refs", ".git/refs/heads/huge", ".gitignore"] {
        let scene = Scene::with_repo();
        let file = scene.repo().join(place);
        clear(&file);
        File::create(&file).unwrap().set_len(1 << 40).unwrap();
        let said = look(&scene, place).unwrap_err().to_string();
        assert!(said.contains(place) && said.contains("larger"), "{said}");
    }
}

#[test]
fn a_socket_does_not_block() {
    let scene = Scene::with_repo();
    let before = look(&scene, "nothing").unwrap();
    // git's own watcher of the work tree listens there.
    let _listening = UnixListener::bind(scene.repo().join(".git/fsmonitor--daemon.ipc")).unwrap();
    assert_eq!(look(&scene, "a socket").unwrap(), before);
    let _pretending = UnixListener::bind(scene.repo().join(".git/refs/heads/socket")).unwrap();
    let said = look(&scene, "a socket as a ref").unwrap_err().to_string();
    assert!(!said.contains(scene.dir.path().to_str().unwrap()), "{said}");
}

#[test]
fn an_index_that_is_a_link_is_refused() {
    let scene = Scene::with_repo();
    let index = scene.repo().join(".git/index");
    fs::rename(&index, scene.dir.path().join("elsewhere")).unwrap();
    std::os::unix::fs::symlink(scene.dir.path().join("elsewhere"), &index).unwrap();
    let said = look(&scene, "a link").unwrap_err().to_string();
    assert!(said.contains(".git/index") && said.contains("symbolic link"), "{said}");
}
