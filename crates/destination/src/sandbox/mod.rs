//! The sandbox: bubblewrap's namespaces around every process.

pub(crate) mod layout;
mod process;
mod quota;
mod readiness;
pub(crate) mod seccomp;
mod start;
mod terminals;
pub(crate) mod watch;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use herma_core::RunId;
use herma_core::engine::DestinationKind;
use rustix::pipe::PipeFlags;

use crate::cgroup::{self, Group};
use crate::destination::{Destination, Process, Readiness, ReapError, StartError, Unready, Waiting};
use crate::doors::{self, Doors, EGRESS_PORT, HandOver, ROUTER_PORT};
use crate::environment::RUN_VARIABLE;
use crate::job::{Job, JobPaths, View};
use crate::launcher::landlock::{Landlock, Version};
use crate::launcher::{Launch, WayOut, rlimits};
use crate::limits::{Held, Limits};
use crate::running::Running;
use crate::spawner::Heritage;
use crate::standing::Standing;
use crate::wall::Wall;
use crate::{leftovers, memory, tool};

use self::process::{Bwrap, Gates, Pipes, Rising};
use self::start::{Starting, WalledIn};

pub use layout::INSIDE_MARKER;

/// Starts processes inside bubblewrap.
#[derive(Clone, Debug)]
pub struct Sandbox {
    herma: PathBuf,
    bwrap: Option<PathBuf>,
    standing: Standing<Wall>,
    readiness: OnceLock<Result<Readiness, Unready>>,
}

/// Whether this process is inside a run's sandbox. Anything but a clear "there is no marker" counts as yes.
#[must_use]
pub fn inside_a_run() -> bool {
    !matches!(Path::new(INSIDE_MARKER).symlink_metadata(), Err(error) if error.kind() == io::ErrorKind::NotFound)
}

impl Sandbox {
    /// Looks for bubblewrap in the directories of `search_path`; `herma` is herma's own binary.
    ///
    /// Where it is missing the sandbox says so when asked for its readiness and refuses every start.
    #[must_use]
    pub fn find(herma: PathBuf, search_path: &OsStr) -> Self {
        Self {
            herma,
            bwrap: tool::locate("bwrap", search_path),
            standing: Standing::default(),
            readiness: OnceLock::new(),
        }
    }

    /// The same sandbox with one wall left out, so that a test can see which probe misses it.
    #[cfg(feature = "test-switches")]
    #[must_use]
    pub fn without(mut self, wall: Wall) -> Self {
        self.standing = Standing::without(wall);
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
        // Asked several times in a run; what it takes to answer does not change meanwhile.
        self.readiness.get_or_init(|| readiness::check(self.bwrap()?, &self.herma)).clone()
    }

    fn rehearse(&self) -> Result<Readiness, Unready> {
        let ready = self.readiness()?;
        readiness::rehearse(self.bwrap()?, self.standing).map(|()| ready)
    }

    fn limits(&self, limits: &Limits) -> Vec<Held> {
        let mut all = cgroup::will_hold(limits);
        all.extend(rlimits::all(limits, &all));
        all.extend(layout::held(limits));
        all.extend(watch::held(limits));
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
            // The machine's own are where programs look for them.
            certificates: None,
            governance: paths.governance.as_ref().map(|_| layout::GOVERNANCE.into()),
            herma: layout::HERMA.into(),
        }
    }

    fn prepare(&self, job: &Job) -> Result<Option<Box<dyn Waiting>>, StartError> {
        Ok(Some(Box::new(Starting { sandbox: self.clone(), job: job.clone(), first: self.wall_in(job)? })))
    }

    fn start(&self, job: &Job) -> Result<Box<dyn Process>, StartError> {
        Starting { sandbox: self.clone(), job: job.clone(), first: self.wall_in(job)? }.carry_out()
    }

    fn reap(&self, run: RunId) -> Result<usize, ReapError> {
        Ok(leftovers::kill(run)?)
    }
}

impl Sandbox {
    /// Has the walls made around a job that waits at their gate.
    fn wall_in(&self, job: &Job) -> Result<WalledIn, StartError> {
        let bwrap = self.bwrap()?;
        job.check()?;
        layout::check_mounts(&job.mounts)?;
        let failed = |error| StartError::io("cannot prepare the sandbox")(error);
        let mut launch = self.launch(job);

        let pipe = |flags| rustix::pipe::pipe_with(PipeFlags::CLOEXEC | flags).map_err(|e| failed(e.into()));
        let (status, status_inside) = pipe(PipeFlags::empty())?;
        let (gate_inside, gate) = pipe(PipeFlags::empty())?;
        let (report, report_inside) = pipe(PipeFlags::NONBLOCK)?;
        let mut files = Files(Vec::new());
        (launch.report, launch.gate) = (Some(report_inside.as_raw_fd()), Some(gate_inside.as_raw_fd()));
        files.hand_over(report_inside);
        files.hand_over(gate_inside);
        let (ports, sockets): (Vec<u16>, Vec<PathBuf>) = doors::of(&job.paths).into_iter().unzip();
        let mut channel = None;
        if !ports.is_empty() {
            let (outside, inside) = UnixStream::pair().map_err(failed)?;
            launch.way_out = Some(WayOut::HandOver(HandOver { ports, channel: inside.as_raw_fd() }));
            files.hand_over(inside.into());
            channel = Some(outside);
        }
        let quotas = self.quotas(&job.limits, &mut files)?;
        let mut words = layout::walls(self.standing, &job.limits, quotas);
        for (place, text) in layout::texts(job.run_id) {
            // Part of the root, which becomes read-only: a mount for each would cost every start some time.
            words.extend(["--perms".into(), "0444".into()]);
            words.extend(["--file".into(), files.text(text.as_bytes())?, place.into()]);
        }
        if Version::of_this_kernel().is_some() {
            words.extend(["--bind-data".into(), files.text(b"")?, layout::SECOND_WALL.into()]);
        }
        words.extend(layout::job_args(job, &self.view(&job.paths), &self.herma));
        if self.standing.has(Wall::Seccomp) {
            let programs = seccomp::programs().map_err(failed)?;
            for program in programs {
                words.extend(["--add-seccomp-fd".into(), files.text(program)?]);
            }
        }
        words.extend(["--json-status-fd".into(), files.hand_over(status_inside)]);
        let group = if self.standing.has(Wall::Limits) {
            Group::make(job.run_id, &job.limits).map_err(StartError::io("cannot make a cgroup"))?
        } else {
            None
        };
        let mut outer_gate = None;
        if group.as_ref().is_some_and(Group::admits_later) {
            // What the first process starts before it is in its group would never be.
            let (inside, outside) = pipe(PipeFlags::empty())?;
            words.extend(["--block-fd".into(), files.hand_over(inside)]);
            outer_gate = Some(outside.into());
        }
        // Not on the command line: every user of the machine can read that, and a variable may hold a run's token.
        let words = files.text(&nul_separated(&words))?;
        if !self.standing.has(Wall::Files) {
            files.text(b"left open")?;
        }

        let mut command = Command::new(bwrap);
        command.arg("--args").arg(words).arg("--");
        command.args(launch.argv(Path::new(layout::HERMA), &job.argv));
        if self.standing.has(Wall::Environment) {
            command.env_clear();
        }
        // The name of the run, so that also bubblewrap itself is found if herma dies while it sets up.
        command.env(RUN_VARIABLE, job.run_id.to_string()).current_dir("/");
        // Ctrl-C at herma's terminal is herma's to hear, and would end the walls under the command, which has a session of
        // its own.
        command.process_group(0);
        let birthplace = group.as_ref().map(Group::birthplace).cloned().unwrap_or_default();
        let running = Running::start(command, &job.stdin, Heritage { files: files.0, birthplace })?;
        let walls = Rising { bwrap: Bwrap(running), pipes: Pipes { status, report }, group };
        let gates = Gates { outer: outer_gate, inner: gate.into() };
        let mut waiting = WalledIn { walls: Some(walls), gates: Some(gates), doors: None };
        let doors = channel.map(|channel| Doors::open(channel, &sockets)).transpose();
        waiting.doors = doors.map_err(StartError::io("cannot open the way out"))?;
        Ok(waiting)
    }

    /// The settings of the user namespace, each with the number of the file that holds its value.
    fn quotas(
        &self,
        limits: &Limits,
        files: &mut Files,
    ) -> Result<Vec<(&'static str, OsString)>, StartError> {
        let held = if self.standing.has(Wall::Limits) { quota::held(limits) } else { Vec::new() };
        let set = |Held { name, value, .. }: Held| {
            let file = files.text(value.to_string().as_bytes());
            quota::setting(name).map(|setting| file.map(|file| (setting, file)))
        };
        held.into_iter().filter_map(set).collect()
    }

    /// What the launcher does inside before it becomes the command.
    fn launch(&self, job: &Job) -> Launch {
        let landlock = Version::of_this_kernel().filter(|_| self.standing.has(Wall::Landlock));
        let rlimits = if self.standing.has(Wall::Limits) {
            rlimits::all(&job.limits, &cgroup::will_hold(&job.limits))
        } else {
            Vec::new()
        };
        let landlock = landlock.map(|version| Landlock { version, write: layout::writable(&job.paths) });
        Launch { rlimits, landlock, ..Launch::default() }
    }
}

/// Open files that bubblewrap inherits.
struct Files(Vec<OwnedFd>);

impl Files {
    /// Takes a file, and gives the number by which bubblewrap knows it.
    fn hand_over(&mut self, file: OwnedFd) -> OsString {
        let number = file.as_raw_fd();
        self.0.push(file);
        number.to_string().into()
    }

    /// The same for a file in memory.
    fn text(&mut self, content: &[u8]) -> Result<OsString, StartError> {
        let file = memory::file(content).map_err(StartError::io("cannot prepare the sandbox"))?;
        Ok(self.hand_over(file.into()))
    }
}

fn nul_separated(words: &[OsString]) -> Vec<u8> {
    words.iter().flat_map(|word| word.as_bytes().iter().copied().chain([0])).collect()
}
