//! The sandbox destination: bubblewrap namespaces around every process.

pub(crate) mod layout;
mod overlay_trial;
mod process;
mod quota;
mod readiness;
pub(crate) mod seccomp;
mod start;
mod terminals;
pub(crate) mod usage_monitor;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use herma_core::RunId;
use herma_core::engine::DestinationKind;
use rustix::pipe::PipeFlags;

use crate::cgroup::{self, Cgroup};
use crate::child_process::ChildProcess;
use crate::destination::{Destination, Process, Readiness, ReapError, StartError, Unready, Waiting};
use crate::enabled_layers::EnabledLayers;
use crate::isolation_layer::IsolationLayer;
use crate::job::{Job, JobPaths, View};
use crate::launcher::landlock::{Landlock, LandlockAbi};
use crate::launcher::{LaunchPlan, PortRelay, rlimits};
use crate::limits::{Held, Limits};
use crate::loopback_relay::{self, EGRESS_PORT, LoopbackRelay, PortHandover, ROUTER_PORT};
use crate::overlay::{self, Overlay};
use crate::spawner::InheritedFds;
use crate::variable_names::RUN_VARIABLE;
use crate::{leftovers, tool};

use self::process::{BootingSandbox, Bwrap, StartPipes, StatusPipes};
use self::start::{PausedSandbox, PendingStart};

pub use layout::INSIDE_MARKER;

/// Starts processes inside bubblewrap.
#[derive(Clone, Debug)]
pub struct Sandbox {
    herma: PathBuf,
    bwrap: Option<PathBuf>,
    enabled: EnabledLayers<IsolationLayer>,
    readiness: OnceLock<Result<Readiness, Unready>>,
}

/// Whether this process runs inside a sandbox. Any result but "the marker does not exist" counts as yes.
#[must_use]
pub fn inside_a_run() -> bool {
    !matches!(Path::new(INSIDE_MARKER).symlink_metadata(), Err(error) if error.kind() == io::ErrorKind::NotFound)
}

impl Sandbox {
    /// Looks for bubblewrap in the directories of `search_path`; `herma` is herma's own binary.
    ///
    /// If it is missing, `readiness` says so and every start fails.
    #[must_use]
    pub fn find(herma: PathBuf, search_path: &OsStr) -> Self {
        Self {
            herma,
            bwrap: tool::locate("bwrap", search_path),
            enabled: EnabledLayers::default(),
            readiness: OnceLock::new(),
        }
    }

    /// Disables one isolation layer, so that a test can check which probe detects it.
    #[cfg(feature = "test-switches")]
    #[must_use]
    pub fn without(mut self, layer: IsolationLayer) -> Self {
        self.enabled = EnabledLayers::without(layer);
        self
    }

    fn bwrap(&self) -> Result<&Path, Unready> {
        self.bwrap.as_deref().ok_or_else(readiness::not_installed)
    }
}

impl Destination for Sandbox {
    fn kind(&self) -> DestinationKind {
        DestinationKind::Sandbox
    }

    fn readiness(&self) -> Result<Readiness, Unready> {
        // Cached: a run asks several times, and the result does not change meanwhile.
        self.readiness.get_or_init(|| readiness::check(self.bwrap()?, &self.herma)).clone()
    }

    fn rehearse(&self) -> Result<Readiness, Unready> {
        let ready = self.readiness()?;
        readiness::rehearse(self.bwrap()?, self.enabled).map(|()| ready)
    }

    fn limits(&self, limits: &Limits) -> Vec<Held> {
        let mut all = cgroup::will_hold(limits);
        all.extend(rlimits::all(limits, &all));
        all.extend(layout::held(limits));
        all.extend(usage_monitor::held(limits));
        all.extend(quota::held(limits));
        all
    }

    fn view(&self, paths: &JobPaths) -> View {
        View {
            workspace: layout::WORKSPACE.into(),
            engine_dir: paths.engine_dir.as_ref().map(|_| layout::ENGINE.into()),
            router: paths.router.as_ref().map(|_| layout::ROUTER.into()),
            router_port: paths.router.as_ref().map(|_| ROUTER_PORT),
            egress_port: paths.egress.as_ref().map(|_| EGRESS_PORT),
            // Programs find the machine's own CA bundle.
            certificates: None,
            governance: paths.governance.as_ref().map(|_| layout::GOVERNANCE.into()),
            herma: layout::HERMA.into(),
        }
    }

    fn prepare(&self, job: &Job) -> Result<Option<Box<dyn Waiting>>, StartError> {
        Ok(Some(Box::new(PendingStart {
            sandbox: self.clone(),
            job: job.clone(),
            first: self.spawn_paused(job)?,
        })))
    }

    fn start(&self, job: &Job) -> Result<Box<dyn Process>, StartError> {
        PendingStart { sandbox: self.clone(), job: job.clone(), first: self.spawn_paused(job)? }.run()
    }

    fn can_overlay(&self, run: RunId, lower: &Path, scratch: &Path) -> io::Result<bool> {
        overlay_trial::run(self, run, lower, scratch)
    }

    fn reap(&self, run: RunId) -> Result<usize, ReapError> {
        Ok(leftovers::kill(run)?)
    }
}

impl Sandbox {
    /// Starts bubblewrap with the launcher of the job, which waits for the start signal.
    fn spawn_paused(&self, job: &Job) -> Result<PausedSandbox, StartError> {
        let bwrap = self.bwrap()?;
        job.check()?;
        layout::check_mounts(&job.mounts)?;
        let failed = |error| StartError::io("cannot prepare the sandbox")(error);
        let mut launch = self.launch(job);

        let pipe = |flags| rustix::pipe::pipe_with(PipeFlags::CLOEXEC | flags).map_err(|e| failed(e.into()));
        let (status, status_inside) = pipe(PipeFlags::empty())?;
        let (start_pipe_inside, start_pipe) = pipe(PipeFlags::empty())?;
        let (report, report_inside) = pipe(PipeFlags::NONBLOCK)?;
        let mut fds = InheritedFds::default();
        (launch.report, launch.start_fd) =
            (Some(report_inside.as_raw_fd()), Some(start_pipe_inside.as_raw_fd()));
        fds.add(report_inside);
        fds.add(start_pipe_inside);
        let (ports, sockets): (Vec<u16>, Vec<PathBuf>) =
            loopback_relay::relayed_ports(&job.paths).into_iter().unzip();
        let mut channel = None;
        if !ports.is_empty() {
            let (outside, inside) = UnixStream::pair().map_err(failed)?;
            launch.relay = Some(PortRelay::PortHandover(PortHandover { ports, channel: inside.as_raw_fd() }));
            fds.add(inside.into());
            channel = Some(outside);
        }
        let mut words = self.bwrap_args(job, &mut fds)?;
        words.extend(["--json-status-fd".into(), fds.add(status_inside)]);
        let group = if self.enabled.has(IsolationLayer::Limits) {
            Cgroup::make(job.run_id, &job.limits).map_err(StartError::io("cannot make a cgroup"))?
        } else {
            None
        };
        let mut block_pipe = None;
        if group.as_ref().is_some_and(Cgroup::admits_later) {
            // Processes that bubblewrap's init starts before it is in the cgroup would stay outside of it.
            let (inside, outside) = pipe(PipeFlags::empty())?;
            words.extend(["--block-fd".into(), fds.add(inside)]);
            block_pipe = Some(outside.into());
        }
        // Not in argv, which every user of the machine can read: a variable may hold a run's token.
        let words = fds.add_text(&nul_separated(&words)).map_err(failed)?;
        if !self.enabled.has(IsolationLayer::Files) {
            fds.add_text(b"left open").map_err(failed)?;
        }

        let command = self.command(bwrap, words, &launch, job);
        let initial_cgroup = group.as_ref().map(Cgroup::initial_cgroup).cloned().unwrap_or_default();
        let running = ChildProcess::start(command, &job.stdin, fds, initial_cgroup)?;
        let booting = BootingSandbox { bwrap: Bwrap(running), pipes: StatusPipes { status, report }, group };
        let start_pipes = StartPipes { bwrap: block_pipe, launcher: start_pipe.into() };
        let mut waiting =
            PausedSandbox { booting: Some(booting), start_pipes: Some(start_pipes), relay: None };
        let relay = channel.map(|channel| LoopbackRelay::start(channel, &sockets)).transpose();
        waiting.relay = relay.map_err(StartError::io("cannot open the way out"))?;
        Ok(waiting)
    }

    /// The arguments of bubblewrap that depend on the job and not on its pipes.
    fn bwrap_args(&self, job: &Job, fds: &mut InheritedFds) -> Result<Vec<OsString>, StartError> {
        let failed = |error| StartError::io("cannot prepare the sandbox")(error);
        let quotas = self.quotas(&job.limits, fds)?;
        let mut words = layout::isolation_args(self.enabled, &job.limits, quotas);
        for (place, text) in layout::texts(job.run_id) {
            // Part of the root file system, which becomes read-only: a mount per file would slow every start.
            words.extend(["--perms".into(), "0444".into()]);
            words.extend(["--file".into(), fds.add_text(text.as_bytes()).map_err(failed)?, place.into()]);
        }
        if LandlockAbi::of_this_kernel().is_some() {
            words.extend([
                "--bind-data".into(),
                fds.add_text(b"").map_err(failed)?,
                layout::LANDLOCK_CANARY_PATH.into(),
            ]);
        }
        words.extend(layout::job_args(job, &self.view(&job.paths), &self.herma));
        if self.enabled.has(IsolationLayer::Seccomp) {
            let programs = seccomp::programs().map_err(failed)?;
            for program in programs {
                words.extend(["--add-seccomp-fd".into(), fds.add_text(program).map_err(failed)?]);
            }
        }
        Ok(words)
    }

    /// The command that starts bubblewrap with the arguments in the memory file `args`.
    fn command(&self, bwrap: &Path, args: OsString, launch: &LaunchPlan, job: &Job) -> Command {
        let mut command = self.program(bwrap, &job.overlays);
        command.arg("--args").arg(args).arg("--");
        command.args(launch.argv(Path::new(layout::HERMA), &job.argv));
        if self.enabled.has(IsolationLayer::Environment) {
            command.env_clear();
        }
        // The run's id, so that bubblewrap itself is found if herma dies during setup.
        command.env(RUN_VARIABLE, job.run_id.to_string()).current_dir("/");
        // Ctrl-C in the terminal must reach herma alone: it would kill bubblewrap under the command.
        command.process_group(0);
        command
    }

    /// bubblewrap, or herma, which mounts the overlays of the job and then becomes bubblewrap: it binds the directories of the job with
    /// what is mounted in them.
    fn program(&self, bwrap: &Path, overlays: &[Overlay]) -> Command {
        if overlays.is_empty() {
            return Command::new(bwrap);
        }
        let mut command = Command::new(&self.herma);
        command.args(overlay::args(overlays)).arg(bwrap);
        command
    }

    /// The sysctls of the user namespace, each with the descriptor that holds its value.
    fn quotas(
        &self,
        limits: &Limits,
        fds: &mut InheritedFds,
    ) -> Result<Vec<(&'static str, OsString)>, StartError> {
        let held = if self.enabled.has(IsolationLayer::Limits) { quota::held(limits) } else { Vec::new() };
        let set = |Held { name, value, .. }: Held| {
            let file = fds
                .add_text(value.to_string().as_bytes())
                .map_err(StartError::io("cannot prepare the sandbox"));
            quota::setting(name).map(|setting| file.map(|file| (setting, file)))
        };
        held.into_iter().filter_map(set).collect()
    }

    /// The settings that the launcher applies before it executes the command.
    fn launch(&self, job: &Job) -> LaunchPlan {
        let landlock = LandlockAbi::of_this_kernel().filter(|_| self.enabled.has(IsolationLayer::Landlock));
        let rlimits = if self.enabled.has(IsolationLayer::Limits) {
            rlimits::all(&job.limits, &cgroup::will_hold(&job.limits))
        } else {
            Vec::new()
        };
        let landlock = landlock.map(|version| Landlock { version, write: layout::writable(&job.paths) });
        LaunchPlan { rlimits, landlock, ..LaunchPlan::default() }
    }
}

fn nul_separated(words: &[OsString]) -> Vec<u8> {
    words.iter().flat_map(|word| word.as_bytes().iter().copied().chain([0])).collect()
}
