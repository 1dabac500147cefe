//! A repository, a store of layers and a sandbox to build in.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use herma_core::environment::EnvironmentDefinition;
use herma_core::report::Mode;
use herma_core::{Clock, RepoPath, RunId, Timestamp};
use herma_destination::{Limits, Sandbox};
use herma_environments::build::{
    BaseTree, BuildError, BuildProgress, Builder, BuiltEnvironment, EnvironmentPlan,
};
use herma_environments::definition::parse;
use herma_environments::layers::LayerStore;
use herma_environments::registries::RegistryAccess;
use herma_environments::tools::FoundTool;
use herma_git::{Git, GitDir, NewFile, ObjectFormat, TreeEntry};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

pub(crate) const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A clock that advances by a second with each reading.
#[derive(Debug, Default)]
pub(crate) struct Ticks(Mutex<i64>);

impl Clock for Ticks {
    fn now(&self) -> Timestamp {
        let mut seconds = self.0.lock().unwrap();
        *seconds += 1;
        Timestamp::from_second(1_700_000_000 + *seconds).unwrap()
    }
}

pub(crate) struct Repository {
    pub(crate) _dir: tempfile::TempDir,
    pub(crate) git_dir: GitDir,
    pub(crate) tree: String,
    pub(crate) entries: Vec<TreeEntry>,
}

impl Repository {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let git = Git::find(PATH.as_ref()).unwrap();
        let git_dir = GitDir::create(&git, &dir.path().join("git"), ObjectFormat::Sha1, None).unwrap();
        let paths: Vec<RepoPath> = files.iter().map(|(path, _)| RepoPath::new(*path).unwrap()).collect();
        let new: Vec<NewFile<'_>> = files
            .iter()
            .zip(&paths)
            .map(|((_, content), path)| match content.strip_prefix("-> ") {
                Some(target) => NewFile { path, mode: Mode::Symlink, content: target.as_bytes() },
                None => NewFile { path, mode: Mode::File, content: content.as_bytes() },
            })
            .collect();
        let tree = git_dir.import(&new).unwrap().tree;
        let entries = git_dir.entries(&tree).unwrap();
        Self { _dir: dir, git_dir, tree, entries }
    }

    pub(crate) fn base(&self) -> BaseTree<'_> {
        BaseTree { git_dir: &self.git_dir, tree: &self.tree, entries: &self.entries, repository: None }
    }
}

/// The launcher of jobs, which cargo builds next to the tests.
pub(crate) fn helper() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let helper = test.parent().unwrap().parent().unwrap().join("examples/environment-helper");
    assert!(helper.is_file(), "{} is missing: cargo builds it with the tests", helper.display());
    helper
}

pub(crate) fn run_id() -> RunId {
    static NEXT: AtomicU8 = AtomicU8::new(0);
    let mut entropy = [NEXT.fetch_add(1, Ordering::Relaxed); 10];
    entropy[..4].copy_from_slice(&std::process::id().to_le_bytes());
    RunId::new(Timestamp::from_second(1_700_000_000).unwrap(), entropy)
}

/// A store and a sandbox.
pub(crate) struct Bench {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) store: LayerStore,
    pub(crate) sandbox: Sandbox,
    pub(crate) timeout: Duration,
    pub(crate) limits: Limits,
    pub(crate) progress: Mutex<Vec<BuildProgress>>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = LayerStore::open(&dir.path().join("environments")).unwrap();
        Self {
            dir,
            store,
            sandbox: Sandbox::find(helper(), PATH.as_ref()),
            timeout: Duration::from_mins(5),
            limits: Limits::default(),
            progress: Mutex::default(),
        }
    }

    pub(crate) fn build(
        &self,
        repository: &Repository,
        definition: &EnvironmentDefinition,
        tools: &[FoundTool],
        registries: &[RegistryAccess],
    ) -> Result<BuiltEnvironment, BuildError> {
        self.build_unless(&|| false, repository, definition, tools, registries)
    }

    pub(crate) fn build_unless(
        &self,
        is_cancelled: &(dyn Fn() -> bool + Sync),
        repository: &Repository,
        definition: &EnvironmentDefinition,
        tools: &[FoundTool],
        registries: &[RegistryAccess],
    ) -> Result<BuiltEnvironment, BuildError> {
        let plan = EnvironmentPlan { definition, tools, registries };
        let scratch = tempfile::tempdir_in(self.dir.path()).unwrap();
        let builder = Builder {
            destination: &self.sandbox,
            destination_name: "sandbox",
            store: &self.store,
            clock: Arc::new(Ticks::default()),
            run_id: run_id(),
            timeout: self.timeout,
            limits: self.limits,
            is_cancelled,
            progress: &|step| self.progress.lock().unwrap().push(step),
        };
        builder.build(plan, repository.base(), scratch.path())
    }

    /// The number of commands that ran so far.
    pub(crate) fn commands(&self) -> usize {
        let is_command = |step: &&BuildProgress| matches!(step, BuildProgress::Running { .. });
        self.progress.lock().unwrap().iter().filter(is_command).count()
    }
}

pub(crate) fn definition(text: &str) -> EnvironmentDefinition {
    parse(text.as_bytes(), &[]).unwrap()
}

pub(crate) fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Gives up root's power to read and write what permissions forbid, for this thread.
pub(crate) fn obey_permissions() {
    let mut sets = capabilities(None).unwrap();
    sets.effective
        .remove(CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH | CapabilitySet::FOWNER);
    set_capabilities(None, sets).unwrap();
}
