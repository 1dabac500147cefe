//! git, with every feature disabled that runs other programs or reads other users' settings.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use herma_destination::tool::{Tool, ToolInvocation};

use crate::error::GitError;
use crate::regular;

/// Settings for every call. Each line disables a way in which git would run a program, follow a setting, or change
/// something unasked.
const SETTINGS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.quotePath=true",
    "diff.external=",
    "diff.algorithm=myers",
    "protocol.allow=never",
    "gc.auto=0",
    "maintenance.auto=false",
    "fetch.writeCommitGraph=false",
    "commit.gpgSign=false",
    "log.showSignature=false",
    "credential.helper=",
    "submodule.recurse=false",
    "fastimport.unpackLimit=0",
    "pack.writeReverseIndex=false",
    // git would map whole packs, and herma runs several at a time.
    "core.packedGitWindowSize=16m",
    "core.packedGitLimit=64m",
    "core.deltaBaseCacheLimit=32m",
    // git writes only copies that a crashed run discards; the evidence is synced separately.
    "core.fsync=none",
];

/// How files become objects in herma's own git directories. In a target its own configuration applies: it decides
/// what the owner sees as changed.
const EXACT: &[&str] = &[
    "core.autocrlf=false",
    "core.symlinks=true",
    "core.fileMode=true",
    "core.ignoreCase=false",
    "core.precomposeUnicode=false",
];

/// The whole environment of git.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("PATH", "/usr/local/bin:/usr/bin:/bin"),
    ("HOME", "/nonexistent"),
    ("LC_ALL", "C"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    // Like replaced objects, grafts show a history that does not exist.
    ("GIT_GRAFT_FILE", "/dev/null"),
    ("GIT_NO_LAZY_FETCH", "1"),
    // `:!x` is a file name, not a pattern.
    ("GIT_LITERAL_PATHSPECS", "1"),
    ("GIT_AUTHOR_NAME", "herma"),
    ("GIT_AUTHOR_EMAIL", "herma@herma.invalid"),
    ("GIT_AUTHOR_DATE", "@0 +0000"),
    ("GIT_COMMITTER_NAME", "herma"),
    ("GIT_COMMITTER_EMAIL", "herma@herma.invalid"),
    ("GIT_COMMITTER_DATE", "@0 +0000"),
];

/// git, found once.
#[derive(Clone, Debug)]
pub struct Git {
    tool: Tool,
}

impl Git {
    /// Finds git on `path`.
    pub fn find(path: &OsStr) -> Result<Self, GitError> {
        Ok(Self { tool: Tool::find("git", path)? })
    }

    /// The program.
    #[must_use]
    pub fn program(&self) -> &Path {
        self.tool.path()
    }

    /// The git directory that a repository shares with all of its worktrees, if `inside` is in one of them.
    pub fn common_dir(&self, inside: &Path) -> Result<PathBuf, GitError> {
        let none = |reason: String| GitError::NotARepository { name: "the directory".to_owned(), reason };
        let inside = inside.canonicalize().map_err(|e| none(e.to_string()))?;
        regular::check_openable(&inside)?;
        let output = self
            .call_in(&inside, ["rev-parse", "--git-common-dir"])
            .checked()
            .map_err(|_| none("git does not find one there".to_owned()))?;
        let line = output.stdout.strip_suffix(b"\n").unwrap_or(&output.stdout);
        inside.join(OsStr::from_bytes(line)).canonicalize().map_err(|e| none(e.to_string()))
    }

    /// The top directory of the work tree that `inside` is in.
    pub fn top_level(&self, inside: &Path) -> Result<PathBuf, GitError> {
        let none = |reason: String| GitError::NotARepository { name: inside.display().to_string(), reason };
        let inside = inside.canonicalize().map_err(|e| none(e.to_string()))?;
        let output = self
            .call_in(&inside, ["rev-parse", "--show-toplevel"])
            .checked()
            .map_err(|_| none("git does not find a work tree there".to_owned()))?;
        let line = output.stdout.strip_suffix(b"\n").unwrap_or(&output.stdout);
        Path::new(OsStr::from_bytes(line)).canonicalize().map_err(|e| none(e.to_string()))
    }

    /// A call of `git config` that reads the settings of this user too. It reads files and runs no other program.
    pub(crate) fn config_of(&self, inside: &Path, user_home: &Path) -> ToolInvocation<'_> {
        let call = set(self.tool.call().arg("--no-pager"), SETTINGS).cwd(inside);
        let variables =
            [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("LC_ALL", "C"), ("GIT_TERMINAL_PROMPT", "0")];
        let call = variables.into_iter().fold(call, |call, (name, value)| call.env(name, value));
        call.env("HOME", user_home).args(["config", "--includes"])
    }

    /// A call in the git directory `git_dir`.
    pub(crate) fn call<I, S>(&self, git_dir: &Path, args: I) -> ToolInvocation<'_>
    where
        I: IntoIterator<Item = S>,
        S: Into<OsString>,
    {
        let mut git_dir_flag = OsString::from("--git-dir=");
        git_dir_flag.push(git_dir);
        set(self.hardened(), EXACT).arg(git_dir_flag).args(args)
    }

    /// A call that finds the repository from the directory `inside`.
    pub(crate) fn call_in<I, S>(&self, inside: &Path, args: I) -> ToolInvocation<'_>
    where
        I: IntoIterator<Item = S>,
        S: Into<OsString>,
    {
        self.hardened().cwd(inside).args(args)
    }

    fn hardened(&self) -> ToolInvocation<'_> {
        let mut call = set(self.tool.call().arg("--no-pager"), SETTINGS);
        for (name, value) in ENVIRONMENT {
            call = call.env(*name, *value);
        }
        call
    }
}

fn set<'a>(call: ToolInvocation<'a>, settings: &[&str]) -> ToolInvocation<'a> {
    settings.iter().fold(call, |call, setting| call.arg("-c").arg(*setting))
}
