//! The two stages of a build, each of which makes one layer.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use herma_core::RepoPath;
use herma_core::environment::SetupOn;
use herma_destination::{Job, JobPaths};
use herma_git::{CheckoutState, TreeEntry, lay_out};

use super::capture::{Captured, capture};
use super::command::{Runner, seconds_left};
use super::egress::RegistryProxy;
use super::error::{BuildError, CommandFailure};
use super::log::BuildLog;
use super::{BaseTree, BuildProgress, Builder, EnvironmentPlan};
use crate::egress_record::EgressRecord;
use crate::inputs::InputDigest;
use crate::key::{LayerKey, ToolIdentity};
use crate::layers::{
    Acquired, LayerBuild, LayerInUse, LayerKind, LayerRecord, RanCommand, TreeLimits,
    make_directories_writable,
};
use crate::registries::Phase;

/// The values that both stages share.
pub(super) struct Stage<'a> {
    pub(super) builder: &'a Builder<'a>,
    pub(super) plan: EnvironmentPlan<'a>,
    pub(super) base: BaseTree<'a>,
    pub(super) selected: &'a [TreeEntry],
    pub(super) inputs: &'a [InputDigest],
}

/// The results of the commands of a stage.
struct Done {
    commands: Vec<RanCommand>,
    egress: Vec<EgressRecord>,
    left_out: Vec<RepoPath>,
    began: Instant,
}

impl Stage<'_> {
    /// The fetch layer.
    pub(super) fn fetch(&self, key: LayerKey) -> Result<LayerInUse, BuildError> {
        let build = match self.acquire(key)? {
            Acquired::Ready(layer) => return Ok(*layer),
            Acquired::Build(build) => build,
        };
        let began = Instant::now();
        let work = build.scratch("work")?;
        lay_out(self.base.git_dir, self.selected, &[&work])?;
        let checkout = CheckoutState::record(
            work,
            self.base.git_dir.format(),
            self.base.git_dir.checked_out(self.selected).into_owned(),
        );
        let proxy =
            RegistryProxy::start(self.plan.registries, &self.builder.clock, &build.scratch("egress")?)?;
        let paths = JobPaths::new(checkout.root().to_owned()).with_home(build.home());
        let paths = paths.with_egress(proxy.socket().to_owned());
        let proxy_port = self.builder.destination.view(&paths).egress_port;
        let phase = Phase::Fetch { proxy_port };
        let commands = self.commands(&build, LayerKind::Fetch, &self.plan.definition.fetch, &paths, phase);
        let egress = proxy.end();
        let commands = commands.map_err(|failure| failure.with_denied(&egress))?;
        let left_out = self.collect(&build, &checkout, self.selected)?;
        self.write_config(&build.home(), Phase::Offline)?;
        let done = Done { commands, egress, left_out, began };
        self.commit(build, LayerKind::Fetch, None, done)
    }

    /// The setup layer, which holds the files of the fetch layer too.
    pub(super) fn setup(&self, key: LayerKey, fetch: &LayerInUse) -> Result<LayerInUse, BuildError> {
        let build = match self.acquire(key)? {
            Acquired::Ready(layer) => return Ok(*layer),
            Acquired::Build(build) => build,
        };
        let began = Instant::now();
        let entries = match self.plan.definition.setup_on {
            SetupOn::Base => self.base.entries,
            SetupOn::Inputs => self.selected,
        };
        let work = build.scratch("work")?;
        lay_out(self.base.git_dir, entries, &[&work])?;
        let checkout = CheckoutState::record(
            work,
            self.base.git_dir.format(),
            self.base.git_dir.checked_out(entries).into_owned(),
        );
        fetch.write_view_within(&build.home(), checkout.root(), &self.limits())?;
        if let (SetupOn::Base, Some(repository)) = (self.plan.definition.setup_on, self.base.repository) {
            repository.make(entries, checkout.root())?;
        }
        let paths = JobPaths::new(checkout.root().to_owned()).with_home(build.home());
        let commands =
            self.commands(&build, LayerKind::Setup, &self.plan.definition.setup, &paths, Phase::Offline)?;
        let left_out = self.collect(&build, &checkout, entries)?;
        let done = Done { commands, egress: Vec::new(), left_out, began };
        self.commit(build, LayerKind::Setup, Some(fetch.record().key), done)
    }

    fn acquire(&self, key: LayerKey) -> Result<Acquired, BuildError> {
        let Builder { store, clock, is_cancelled, progress, .. } = self.builder;
        let mut waiting = || progress(BuildProgress::Waiting(key));
        let acquired = store.acquire(key, clock.now(), &mut waiting, is_cancelled);
        let acquired = acquired.map_err(|e| match e.kind() {
            io::ErrorKind::Interrupted => BuildError::Cancelled,
            _ => BuildError::Io("the store of layers", e),
        })?;
        if let Acquired::Ready(_) = &acquired {
            progress(BuildProgress::Reused(key));
        }
        Ok(acquired)
    }

    fn commands(
        &self,
        build: &LayerBuild,
        kind: LayerKind,
        commands: &[String],
        paths: &JobPaths,
        phase: Phase,
    ) -> Result<Vec<RanCommand>, BuildError> {
        self.write_config(&build.home(), phase)?;
        let settings = self.plan.settings(phase);
        let log = BuildLog::create(&build.log())?;
        let runner = Runner {
            destination: self.builder.destination,
            run_id: self.builder.run_id,
            deadline: Instant::now() + self.builder.timeout,
            is_cancelled: self.builder.is_cancelled,
        };
        let mut done = Vec::new();
        for command in commands {
            (self.builder.progress)(BuildProgress::Running { kind, command: command.clone() });
            let argv = vec!["sh".into(), "-c".into(), command.into()];
            let job = Job::new(self.builder.run_id, argv, paths.clone())
                .with_env(settings.env.clone())
                .with_search_path(settings.search_path.clone())
                .with_mounts(settings.mounts.clone())
                .with_limits(self.builder.limits.within(seconds_left(runner.deadline)));
            let started = Instant::now();
            runner.run(kind, command, &job, &log)?;
            done.push(RanCommand { command: command.clone(), duration_ms: millis(started) });
        }
        log.finish()?;
        Ok(done)
    }

    /// Writes the clients' configuration into the environment's home, over that of an earlier phase.
    fn write_config(&self, home: &Path, phase: Phase) -> Result<(), BuildError> {
        let failed = |e| BuildError::Io("the configuration of a registry's client", e);
        for file in self.plan.registries.iter().flat_map(|registry| registry.files(phase)) {
            write_below(home, &file.path, file.content.as_bytes()).map_err(failed)?;
        }
        Ok(())
    }

    /// Checks that tracked files are unchanged, and moves the others into the layer.
    fn collect(
        &self,
        build: &LayerBuild,
        checkout: &CheckoutState,
        laid_out: &[TreeEntry],
    ) -> Result<Vec<RepoPath>, BuildError> {
        let changed = checkout.changed();
        if !changed.is_empty() {
            return Err(BuildError::TrackedFilesChanged(changed.into_iter().cloned().collect()));
        }
        let ignore_root = build.scratch("ignore")?;
        let limits = self.limits();
        make_directories_writable(&build.home(), &limits)?;
        let from = Captured {
            base: self.base,
            definition: self.plan.definition,
            laid_out,
            work: checkout.root(),
            ignore_root: &ignore_root,
        };
        capture(&from, &build.checkout(), &limits)
    }

    /// The limits of a walk over a layer's files that starts now. Each has the time that the commands had.
    fn limits(&self) -> TreeLimits<'_> {
        TreeLimits {
            deadline: Instant::now().checked_add(self.builder.timeout),
            is_cancelled: self.builder.is_cancelled,
            ..TreeLimits::default()
        }
    }

    fn commit(
        &self,
        build: LayerBuild,
        kind: LayerKind,
        fetch_key: Option<LayerKey>,
        done: Done,
    ) -> Result<LayerInUse, BuildError> {
        let definition = self.plan.definition;
        let digest = definition.digest()?;
        let (key, now) = (build.key(), self.builder.clock.now());
        let is_of_base = kind == LayerKind::Setup && definition.setup_on == SetupOn::Base;
        let committed = build.commit_within(now, &self.limits(), |tree| LayerRecord {
            key,
            kind,
            fetch_key,
            definition: digest,
            inputs: self.inputs.to_vec(),
            tools: self.plan.tools.iter().map(ToolIdentity::from).collect(),
            destination: self.builder.destination_name.to_owned(),
            architecture: std::env::consts::ARCH.to_owned(),
            base_tree: is_of_base.then(|| self.base.tree.to_owned()),
            source_and_network: kind == LayerKind::Fetch && definition.has_source_and_network(),
            commands: done.commands,
            egress: done.egress,
            left_out: done.left_out,
            duration_ms: millis(done.began),
            built_at: now,
            tree,
        });
        Ok(committed?)
    }
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// Writes a file below a directory that commands may have written: no link is followed, and one in the way is replaced.
fn write_below(root: &Path, path: &Path, content: &[u8]) -> io::Result<()> {
    let mut dir: PathBuf = root.to_owned();
    for part in path.parent().into_iter().flat_map(Path::components) {
        dir.push(part);
        match fs::symlink_metadata(&dir) {
            Ok(meta) if meta.is_dir() => {}
            Ok(_) => {
                fs::remove_file(&dir)?;
                fs::create_dir(&dir)?;
            }
            Err(_) => fs::create_dir(&dir)?,
        }
    }
    let file = root.join(path);
    match fs::symlink_metadata(&file) {
        Ok(meta) if meta.is_dir() => return Err(io::Error::other("a directory is in its place")),
        Ok(_) => fs::remove_file(&file)?,
        Err(_) => {}
    }
    fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&file)
        .and_then(|mut file| io::Write::write_all(&mut file, content))
}

impl From<CommandFailure> for BuildError {
    fn from(failure: CommandFailure) -> Self {
        Self::Command(Box::new(failure))
    }
}
