//! A target with a result that is ready to land in it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use herma_core::RunId;
use herma_core::report::{ChangedFile, Entry, Mode};
use herma_git::{Baseline, GitDir, Landing, SourceRepo, SourceState};

use crate::kit::{Scene, git_in, path};

pub(crate) const RUN: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

/// The changes of the landed commit: one changed file, one new in a new directory.
pub(crate) const CHANGES: &[(&str, &str)] =
    &[("README.md", "changed by the run\n"), ("new/file", "brought\n")];

pub(crate) struct Target {
    pub(crate) scene: Scene,
    pub(crate) source: SourceRepo,
    pub(crate) git_dir: GitDir,
    pub(crate) landing: Landing,
    pub(crate) before: Files,
    pub(crate) state: SourceState,
    /// Apart from the scene, so that the scene's files are the target's alone.
    pub(crate) home: tempfile::TempDir,
}

/// Every file and directory below a directory: mode and content.
pub(crate) type Files = BTreeMap<PathBuf, (u32, Vec<u8>)>;

pub(crate) fn files(dir: &Path) -> Files {
    fn add(dir: &Path, top: &Path, all: &mut Files) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            let content = if meta.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
            all.insert(path.strip_prefix(top).unwrap().to_owned(), (meta.permissions().mode(), content));
            if meta.is_dir() {
                add(&path, top, all);
            }
        }
    }
    let mut all = Files::new();
    add(dir, dir, &mut all);
    all
}

pub(crate) fn run() -> RunId {
    RUN.parse().unwrap()
}

/// Records these contents on the baseline, as a run would collect them.
pub(crate) fn result_tree(
    git_dir: &GitDir,
    baseline: &Baseline,
    dir: &Path,
    changes: &[(&str, &str)],
) -> String {
    fs::create_dir_all(dir).unwrap();
    let collected: Vec<ChangedFile> = changes
        .iter()
        .map(|(name, content)| {
            let file = dir.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, content).unwrap();
            let new = Some(Entry { mode: Mode::File, id: String::new() });
            ChangedFile { path: path(name.as_bytes()), old: None, new }
        })
        .collect();
    git_dir.commit_changes(baseline, dir, &collected).unwrap().tree
}

impl Target {
    pub(crate) fn new() -> Self {
        Self::of(Scene::with_repo(), "repo", None, CHANGES)
    }

    /// A result with `changes` for the repository `name` of `scene`.
    pub(crate) fn of(scene: Scene, name: &str, base: Option<&str>, changes: &[(&str, &str)]) -> Self {
        let root = scene.dir.path().join(name);
        let source = SourceRepo::open(&scene.git, &root, "../repo", base).unwrap();
        let before = files(scene.dir.path());
        let state = source.capture().unwrap();
        let home = tempfile::tempdir().unwrap();
        let (git_dir, baseline) = source.make_git_dir(&home.path().join("git")).unwrap();
        let tree = result_tree(&git_dir, &baseline, &home.path().join("workspace"), changes);
        let landing = source.prepare_landing(&git_dir, &tree, run(), "a title").unwrap();
        assert_eq!(files(scene.dir.path()), before, "what is prepared leaves the target as it is");
        Self { scene, source, git_dir, landing, before, state, home }
    }

    pub(crate) fn repo(&self) -> PathBuf {
        self.scene.repo()
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        git_in(&self.repo(), args)
    }

    pub(crate) fn land(&self) {
        self.source.land(&self.git_dir, &self.landing).unwrap();
    }

    pub(crate) fn assert_as_before(&self) {
        let after = files(self.scene.dir.path());
        let gone: Vec<_> =
            self.before.iter().filter(|(k, v)| after.get(*k) != Some(v)).map(|(k, _)| k).collect();
        let new: Vec<_> = after.keys().filter(|k| !self.before.contains_key(*k)).collect();
        assert_eq!((gone, new), (vec![], vec![]), "(changed or gone, new)");
    }

    pub(crate) fn fsck(&self) {
        let said = self.git(&["fsck", "--full", "--strict"]);
        assert!(!said.contains("missing") && !said.contains("broken"), "{said}");
    }

    pub(crate) fn pack_file(&self, extension: &str) -> PathBuf {
        self.repo().join(format!(".git/objects/pack/{}.{extension}", self.landing.pack))
    }
}
