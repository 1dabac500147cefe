//! A git repository made from a fixture, and a picture of it to compare with later.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use herma_core::report::Mode;

use super::{Herma, run_tool};

/// The terms that make the fixture's contract one for the repository beside it.
pub(crate) const ON_REPOSITORY: [(&str, &str); 2] = [("target", "{ repo: ../repo }"), ("stage", "3")];

/// Nothing of the user's or the machine's settings.
const ENVIRONMENT: [(&str, &str); 3] =
    [("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_OPTIONAL_LOCKS", "0")];

/// A repository with one commit.
#[derive(Debug)]
pub(crate) struct Repository {
    pub(crate) dir: PathBuf,
}

/// Every file below a directory with its permissions and its content, or a link's target.
type Picture = BTreeMap<PathBuf, (u32, Vec<u8>)>;

impl Repository {
    /// The files of a fixture in one commit.
    pub(crate) fn of_fixture(herma: &Herma, fixture: &str) -> Self {
        let repository = Self { dir: herma.at("repo") };
        for file in herma_fixtures::find(fixture).unwrap().files {
            let path = repository.dir.join(file.path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            if file.mode == Mode::Symlink {
                std::os::unix::fs::symlink(OsStr::from_bytes(file.bytes), &path).unwrap();
                continue;
            }
            std::fs::write(&path, file.bytes).unwrap();
            let mode = if file.mode == Mode::Executable { 0o755 } else { 0o644 };
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        repository.git(&["init", "-q", "-b", "main"]);
        repository.commit("the first commit");
        repository
    }

    /// Runs git in it.
    pub(crate) fn git(&self, args: &[&str]) -> String {
        let dir = ["-C".as_ref(), self.dir.as_os_str()];
        let args: Vec<&OsStr> = dir.into_iter().chain(args.iter().map(OsStr::new)).collect();
        run_tool("git", &args, &ENVIRONMENT)
    }

    /// Commits everything.
    pub(crate) fn commit(&self, message: &str) {
        self.git(&["add", "-A"]);
        let name = ["-c", "user.name=owner", "-c", "user.email=owner@herma.invalid"];
        self.git(&[&name[..], &["commit", "-q", "-m", message]].concat());
    }

    /// Commits everything, if there is something to commit.
    pub(crate) fn commit_if_changed(&self) {
        if !self.git(&["status", "--porcelain"]).is_empty() {
            self.commit("more");
        }
    }

    /// The repository as it is now: HEAD, refs, index, objects and every file of the work tree, byte by byte.
    pub(crate) fn picture(&self) -> Picture {
        everything_below(&self.dir)
    }
}

/// Every file below a directory, byte by byte.
pub(crate) fn everything_below(root: &Path) -> Picture {
    let mut picture = Picture::new();
    let mut pending = vec![root.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in std::fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            let content = if meta.is_dir() {
                pending.push(path.clone());
                Vec::new()
            } else if meta.is_symlink() {
                path.read_link().unwrap().into_os_string().into_encoded_bytes()
            } else {
                std::fs::read(&path).unwrap()
            };
            picture.insert(path.strip_prefix(root).unwrap().to_owned(), (meta.permissions().mode(), content));
        }
    }
    picture
}
