//! Builds the layers of an environment: fetch commands with egress to the registries on a tree of inputs alone, then setup
//! commands without network.

mod capture;
mod command;
mod egress;
mod error;
mod log;
mod stage;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use herma_core::environment::EnvironmentDefinition;
use herma_core::{Clock, RunId};
use herma_destination::{Destination, Limits, Mount};
use herma_git::{CheckoutRepository, GitDir, TreeEntry};

pub use error::{BuildError, CommandFailure, FailureReason};

use crate::inputs::{ignore_rules, lay_out_inputs, select};
use crate::key::{KeyParts, LayerKey, SetupBase, fetch_key, setup_key};
use crate::layers::{LayerInUse, LayerKind, LayerStore};
use crate::registries::{Phase, RegistryAccess};
use crate::tools::FoundTool;

/// The directory of programs of a virtual environment in the environment's home, and of programs installed for the user. Both are in
/// `PATH` of every command.
const HOME_PROGRAMS: [&str; 3] = [".venv/bin", ".local/bin", "go/bin"];
/// The home inside.
const INSIDE_HOME: &str = "/home/agent";
/// The certificate authorities of the machine, where the sandbox shows them.
const CERTIFICATES: [&str; 2] = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];

/// npm prepares a git dependency by an install of its own in the clone, whose `.npmrc` names the program that is git there: with
/// network, and whatever `--ignore-scripts` says. A bundle in the tree is a repository too. Without git there is no clone.
const NPM_WITHOUT_GIT: (&str, &str) = ("npm_config_git", "/bin/false");

/// An environment that is ready to be built.
#[derive(Clone, Copy, Debug)]
pub struct EnvironmentPlan<'a> {
    /// The definition.
    pub definition: &'a EnvironmentDefinition,
    /// Its tools, found.
    pub tools: &'a [FoundTool],
    /// Its registries, found.
    pub registries: &'a [RegistryAccess],
}

/// The base that an environment is built for.
#[derive(Clone, Copy, Debug)]
pub struct BaseTree<'a> {
    /// herma's own git directory, with the objects of the base.
    pub git_dir: &'a GitDir,
    /// The id of the tree.
    pub tree: &'a str,
    /// Its entries.
    pub entries: &'a [TreeEntry],
    /// The git repository that a checkout of it gets, where the definition gives it some history.
    pub repository: Option<CheckoutRepository<'a>>,
}

/// A step of a build, for a person who waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuildProgress {
    /// Another process builds the same layer.
    Waiting(LayerKey),
    /// A command starts.
    Running {
        /// Fetch or setup.
        kind: LayerKind,
        /// The command.
        command: String,
    },
    /// A layer is there already.
    Reused(LayerKey),
}

/// Builds environments in a destination.
pub struct Builder<'a> {
    /// Where the commands run.
    pub destination: &'a dyn Destination,
    /// The destination's name, for containers with the digest of the image.
    pub destination_name: &'a str,
    /// The store of layers.
    pub store: &'a LayerStore,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The run that the processes belong to.
    pub run_id: RunId,
    /// The time that all commands of one layer may take.
    pub timeout: Duration,
    /// The limits of each command.
    pub limits: Limits,
    /// Whether the build is to end early.
    pub is_cancelled: &'a (dyn Fn() -> bool + Sync),
    /// Hears of progress.
    pub progress: &'a (dyn Fn(BuildProgress) + Sync),
}

/// An environment that was built.
#[derive(Debug)]
pub struct BuiltEnvironment {
    /// The fetch layer.
    pub fetch: LayerInUse,
    /// The setup layer, if there are setup commands.
    pub setup: Option<LayerInUse>,
}

impl BuiltEnvironment {
    /// The layer that views are made of: it holds the files of those below it.
    #[must_use]
    pub fn top(&self) -> &LayerInUse {
        self.setup.as_ref().unwrap_or(&self.fetch)
    }
}

/// The settings of every job in an environment: of builds, of the agent and of verification.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct JobSettings {
    /// Read-only mounts of the tools.
    pub mounts: Vec<Mount>,
    /// Directories that come first in `PATH`.
    pub search_path: Vec<PathBuf>,
    /// Variables.
    pub env: Vec<(String, String)>,
}

impl fmt::Debug for JobSettings {
    /// Names variables without their values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mounts, search_path, env } = self;
        let names: Vec<&str> = env.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("JobSettings")
            .field("mounts", mounts)
            .field("search_path", search_path)
            .field("env", &names)
            .finish()
    }
}

impl EnvironmentPlan<'_> {
    /// The settings of jobs that run without network.
    #[must_use]
    pub fn job_settings(&self) -> JobSettings {
        self.settings(Phase::Offline)
    }

    fn settings(&self, phase: Phase) -> JobSettings {
        let mut settings = JobSettings::default();
        settings.search_path.extend(HOME_PROGRAMS.map(|dir| PathBuf::from(INSIDE_HOME).join(dir)));
        for tool in self.tools {
            for mount in &tool.mounts {
                if !settings.mounts.contains(mount) {
                    settings.mounts.push(mount.clone());
                }
            }
            settings.search_path.extend(tool.search_path.iter().cloned());
            settings.env.extend(tool.env.iter().cloned());
        }
        let certificates = CERTIFICATES.into_iter().map(PathBuf::from).find(|file| file.exists());
        for registry in self.registries {
            settings.env.extend(registry.variables(phase, certificates.as_deref()));
        }
        if matches!(phase, Phase::Fetch { .. }) {
            let (name, value) = NPM_WITHOUT_GIT;
            settings.env.push((name.to_owned(), value.to_owned()));
        }
        // The definition's own variables win.
        settings.env.extend(self.definition.env.iter().map(|(name, value)| (name.clone(), value.clone())));
        settings
    }
}

impl Builder<'_> {
    /// The keys that a build would have. Nothing is built.
    pub fn keys(
        &self,
        plan: EnvironmentPlan<'_>,
        base: BaseTree<'_>,
        scratch: &std::path::Path,
    ) -> Result<(LayerKey, LayerKey), BuildError> {
        let inputs = lay_out_inputs(base.git_dir, &select(base.entries, plan.definition), scratch)?;
        self.keys_of(plan, base, &inputs)
    }

    /// Builds what is missing, and takes the layers into use.
    pub fn build(
        &self,
        plan: EnvironmentPlan<'_>,
        base: BaseTree<'_>,
        scratch: &std::path::Path,
    ) -> Result<BuiltEnvironment, BuildError> {
        let selected = select(base.entries, plan.definition);
        let inputs = lay_out_inputs(base.git_dir, &selected, scratch)?;
        let (fetch_key, setup_key) = self.keys_of(plan, base, &inputs)?;
        let stage = stage::Stage { builder: self, plan, base, selected: &selected, inputs: &inputs };
        let has_setup = !plan.definition.setup.is_empty();
        if has_setup && let Some(built) = self.find_both(fetch_key, setup_key)? {
            return Ok(built);
        }
        let fetch = stage.fetch(fetch_key)?;
        let setup = has_setup.then(|| stage.setup(setup_key, &fetch)).transpose()?;
        Ok(BuiltEnvironment { fetch, setup })
    }

    /// Both layers, if they are there. The setup layer has the files of the fetch layer too, so that only its own are looked at.
    fn find_both(&self, fetch: LayerKey, setup: LayerKey) -> Result<Option<BuiltEnvironment>, BuildError> {
        let failed = |e| BuildError::Io("the store of layers", e);
        let now = self.clock.now();
        let Some(fetch) = self.store.hold(fetch, now).map_err(failed)? else { return Ok(None) };
        let Some(setup) = self.store.find(setup, now).map_err(failed)? else { return Ok(None) };
        for layer in [&fetch, &setup] {
            (self.progress)(BuildProgress::Reused(layer.record().key));
        }
        Ok(Some(BuiltEnvironment { fetch, setup: Some(setup) }))
    }

    fn keys_of(
        &self,
        plan: EnvironmentPlan<'_>,
        base: BaseTree<'_>,
        inputs: &[crate::inputs::InputDigest],
    ) -> Result<(LayerKey, LayerKey), BuildError> {
        let fetch = fetch_key(&KeyParts {
            definition: plan.definition,
            inputs,
            ignore_rules: &ignore_rules(base.entries),
            tools: plan.tools,
            registries: plan.registries,
            destination: self.destination_name,
            architecture: std::env::consts::ARCH,
        })?;
        let history = base.repository.map(|repository| repository.digest());
        let seen = SetupBase { tree: base.tree, history, content: base.git_dir.content_digest() };
        Ok((fetch, setup_key(fetch, plan.definition.setup_on, seen)?))
    }
}
