//! The sandbox: bubblewrap's namespaces around every process.

mod layout;
mod process;
mod readiness;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use herma_model::engine::DestinationKind;
use rustix::pipe::PipeFlags;

use crate::destination::{Destination, Process, Readiness, StartError, Unready};
use crate::environment::RUN_VARIABLE;
use crate::job::{Job, Rooms, View};
use crate::launcher::Launch;
use crate::running::Running;
use crate::{memory, tool};

pub use layout::INSIDE_MARKER;

/// Starts processes inside bubblewrap.
#[derive(Clone, Debug)]
pub struct Sandbox {
    herma: PathBuf,
    bwrap: Option<PathBuf>,
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
        Self { herma, bwrap: tool::locate("bwrap", search_path), readiness: OnceLock::new() }
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
        readiness::rehearse(self.bwrap()?).map(|()| ready)
    }

    fn view(&self, rooms: &Rooms) -> View {
        View {
            workspace: layout::WORKSPACE.into(),
            engine_dir: rooms.engine_dir.as_ref().map(|_| layout::ENGINE.into()),
            router: rooms.router.as_ref().map(|_| layout::ROUTER.into()),
            herma: layout::HERMA.into(),
        }
    }

    fn start(&self, job: &Job) -> Result<Box<dyn Process>, StartError> {
        let bwrap = self.bwrap()?;
        job.check()?;
        layout::check_mounts(&job.mounts)?;
        let failed = |error| StartError::io("cannot prepare the sandbox")(error);

        let (status, status_inside) =
            rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(|e| failed(e.into()))?;
        let (gate_inside, gate) =
            rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(|e| failed(e.into()))?;
        let mut files = Vec::new();
        let mut hand_over = |file: OwnedFd| {
            let number = file.as_raw_fd();
            files.push(file);
            number
        };
        let mut words = layout::walls();
        for (place, text) in layout::texts(job.run_id) {
            let number = hand_over(memory::file(text.as_bytes()).map(OwnedFd::from).map_err(failed)?);
            words.extend(["--ro-bind-data".into(), number.to_string().into(), place.into()]);
        }
        words.extend(layout::rooms(job, &self.herma));
        for (flag, file) in [("--json-status-fd", status_inside), ("--block-fd", gate_inside)] {
            words.extend([flag.into(), hand_over(file).to_string().into()]);
        }
        // Not on the command line: every user of the machine can read that, and a variable may hold a run's token.
        let words = hand_over(memory::file(&nul_separated(&words)).map(OwnedFd::from).map_err(failed)?);

        let mut command = Command::new(bwrap);
        command.args(["--args", &words.to_string(), "--"]).args(inner_argv(job));
        // The name of the run, so that also bubblewrap itself is found if herma dies while it sets up.
        command.env_clear().env(RUN_VARIABLE, job.run_id.to_string()).current_dir("/");
        let running = Running::start(command, &job.stdin, files)?;
        Ok(Box::new(process::SandboxProcess::admit(running, status, gate)?))
    }
}

/// The command as bubblewrap starts it: through the launcher where a limit is to be set.
fn inner_argv(job: &Job) -> Vec<OsString> {
    if job.memory.is_none() {
        return job.argv.clone();
    }
    let launch = Launch { memory: job.memory, ..Launch::default() };
    launch.argv(Path::new(layout::HERMA), &job.argv)
}

fn nul_separated(words: &[OsString]) -> Vec<u8> {
    words.iter().flat_map(|word| word.as_bytes().iter().copied().chain([0])).collect()
}
