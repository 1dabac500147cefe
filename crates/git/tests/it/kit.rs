//! A directory to play in, with the real git.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use herma_core::RepoPath;
use herma_destination::Tool;
use herma_git::Git;

const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

pub(crate) struct Scene {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) git: Git,
}

pub(crate) fn path(bytes: &[u8]) -> RepoPath {
    RepoPath::new(bytes).unwrap()
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), git: Git::find(PATH.as_ref()).unwrap() }
    }

    /// With a repository that has one commit.
    pub(crate) fn with_repo() -> Self {
        let scene = Self::new();
        let repo = scene.repo();
        fs::create_dir_all(repo.join("src")).unwrap();
        fs::write(repo.join("README.md"), "hello\n").unwrap();
        fs::write(repo.join("src/main.c"), "int main;\n").unwrap();
        git_in(&repo, &["init", "-q"]);
        git_in(&repo, &["add", "-A"]);
        git_in(&repo, &["commit", "-qm", "first"]);
        scene
    }

    pub(crate) fn repo(&self) -> PathBuf {
        self.dir.path().join("repo")
    }

    pub(crate) fn make(&self, name: &str) -> PathBuf {
        let dir = self.dir.path().join(name);
        fs::create_dir(&dir).unwrap();
        dir
    }

    pub(crate) fn set_executable(&self, name: &str) {
        fs::set_permissions(self.repo().join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// git as a person runs it, without herma's precautions.
pub(crate) fn git_in(dir: &Path, args: &[&str]) -> String {
    let tool = Tool::find("git", PATH.as_ref()).unwrap();
    let mut call = tool.call().cwd(dir).env("PATH", PATH).env("HOME", "/nonexistent");
    for name in ["AUTHOR", "COMMITTER"] {
        call = call.env(format!("GIT_{name}_NAME"), "a").env(format!("GIT_{name}_EMAIL"), "a@herma.invalid");
    }
    String::from_utf8(call.args(args.iter().copied()).checked().unwrap().stdout).unwrap()
}
