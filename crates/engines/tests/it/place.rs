//! A directory to play a script in, and the results.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use herma_core::report::Mode;
use herma_engines::fake::{Script, Speaker, perform};
use herma_engines::protocol::ProtocolReader;
use herma_engines::{AgentEvent, LineSplitter, OutputReader as _};
use herma_fixtures::Fixture;

/// A workspace in a temporary directory that is gone after the test.
pub(crate) struct ScriptDir {
    _dir: tempfile::TempDir,
    pub(crate) workspace: PathBuf,
}

/// Every file by its path, as kind, permissions and content.
pub(crate) type Tree = BTreeMap<Vec<u8>, String>;

/// The exit code and output of a script.
pub(crate) struct Played {
    pub(crate) exit_code: u8,
    pub(crate) output: Vec<u8>,
    pub(crate) said: Vec<AgentEvent>,
    pub(crate) not_understood: usize,
    pub(crate) cut: u64,
}

impl ScriptDir {
    pub(crate) fn empty() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let workspace = dir.path().join("workspace");
        fs::create_dir(&workspace).unwrap();
        Self { _dir: dir, workspace }
    }

    /// The files of a fixture, in a git repository with one commit, as an engine finds them.
    pub(crate) fn with(fixture: &Fixture) -> Self {
        let place = Self::empty();
        for file in fixture.files {
            let path = place.path(file.path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            match file.mode {
                Mode::Symlink => symlink(std::str::from_utf8(file.bytes).unwrap(), &path).unwrap(),
                Mode::Submodule => panic!("fixtures have no submodules"),
                Mode::File => write(&path, file.bytes, 0o644),
                Mode::Executable => write(&path, file.bytes, 0o755),
            }
        }
        let commit =
            "git init -q && git add -A && git -c user.name=t -c user.email=t@t commit -q -m baseline";
        assert!(place.sh(commit).status.success());
        place
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.workspace.join(path)
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    /// Runs a command in the workspace as verification does.
    pub(crate) fn sh(&self, command: &str) -> Output {
        Command::new("/bin/sh")
            .args(["-c", command])
            .current_dir(&self.workspace)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap()
    }

    pub(crate) fn play(&self, yaml: &str) -> Played {
        let script = Script::parse(yaml.as_bytes()).unwrap_or_else(|e| panic!("{e}\n{yaml}"));
        let log = self.workspace.with_file_name("output");
        let exit_code = perform(&script, Speaker::FAKE, &self.workspace, fs::File::create(&log).unwrap());
        let output = fs::read(log).unwrap();
        let mut played = Played { exit_code, output, said: Vec::new(), not_understood: 0, cut: 0 };
        let mut splitter = LineSplitter::new();
        splitter.feed(&played.output, |line| match ProtocolReader.line(line) {
            Some(said) => played.said.push(said),
            None => played.not_understood += 1,
        });
        splitter.finish(|line| panic!("the output ends in the middle of a line: {line:?}"));
        played.cut = splitter.cut();
        played
    }

    /// Every file below the workspace except git's own.
    pub(crate) fn snapshot(&self) -> Tree {
        let mut found = Tree::new();
        look(&self.workspace, &self.workspace, &mut found);
        found
    }
}

/// The paths at which two trees differ.
pub(crate) fn changed(before: &Tree, after: &Tree) -> Vec<String> {
    let paths: BTreeSet<&Vec<u8>> = before.keys().chain(after.keys()).collect();
    let differ = |path: &&&Vec<u8>| before.get(**path) != after.get(**path);
    paths.iter().filter(differ).map(|path| String::from_utf8((*path).clone()).unwrap()).collect()
}

fn write(path: &Path, bytes: &[u8], mode: u32) {
    fs::write(path, bytes).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn look(root: &Path, folder: &Path, found: &mut Tree) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let meta = path.symlink_metadata().unwrap();
        let kind = meta.file_type();
        let name = path.strip_prefix(root).unwrap().to_owned();
        let what = if kind.is_symlink() {
            format!("link to {}", fs::read_link(&path).unwrap().display())
        } else if kind.is_fifo() {
            "fifo".to_owned()
        } else if kind.is_dir() {
            if path.file_name().unwrap() != ".git" {
                look(root, &path, found);
            }
            continue;
        } else {
            format!("{:03o} {}", meta.permissions().mode() & 0o777, fs::read(&path).unwrap().escape_ascii())
        };
        found.insert(name.into_os_string().into_vec(), what);
    }
}
