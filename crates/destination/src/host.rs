//! The host destination: no isolation at all. For `fake`, which is herma's own code, and for tests.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use herma_core::RunId;
use herma_core::engine::DestinationKind;
use rustix::process::Signal;

use crate::cgroup::InitialCgroup;
use crate::child_process::ChildProcess;
use crate::destination::{Destination, Exit, Process, Readiness, ReapError, StartError, Unready};
use crate::environment;
use crate::job::{BadJob, Job, JobPaths, View, no_overlays};
use crate::launcher::{LaunchPlan, rlimits};
use crate::leftovers;
use crate::proc::{self, ProcessInfo};
use crate::spawner::InheritedFds;

/// Starts processes on this machine without isolation. One job of a run at a time: the processes of a job are found
/// by the run's id, so ending one job ends all of them.
#[derive(Clone, Debug)]
pub struct Host {
    herma: PathBuf,
}

/// A process on the host. Its descendants are found by the run's id in their environment and by parentage. A
/// process that hides from both survives, which is one reason why no real engine runs here.
struct HostProcess {
    running: ChildProcess,
    run_id: RunId,
    gone: bool,
}

impl Host {
    /// The host, with herma's own binary at this path.
    #[must_use]
    pub fn new(herma: PathBuf) -> Self {
        Self { herma }
    }
}

impl Destination for Host {
    fn kind(&self) -> DestinationKind {
        DestinationKind::Host
    }

    fn readiness(&self) -> Result<Readiness, Unready> {
        if self.herma.is_file() {
            return Ok(Readiness {
                walls: Vec::new(),
                detail: "no isolation: for the fake engine only".to_owned(),
            });
        }
        Err(Unready {
            what: format!("herma's own binary is not at {}", self.herma.display()),
            next_step: "install herma again".to_owned(),
        })
    }

    fn view(&self, paths: &JobPaths) -> View {
        View {
            workspace: paths.workspace.clone(),
            engine_dir: paths.engine_dir.clone(),
            router: paths.router.clone(),
            // The host's loopback is shared by all users, so nothing is relayed.
            router_port: None,
            egress_port: None,
            certificates: None,
            governance: paths.governance.clone(),
            herma: self.herma.clone(),
        }
    }

    fn start(&self, job: &Job) -> Result<Box<dyn Process>, StartError> {
        job.check()?;
        if let Some(name) = job.hidden.first() {
            return Err(
                BadJob::Hidden { name: name.clone(), why: "the destination `host` hides nothing" }.into()
            );
        }
        no_overlays(&job.overlays)?;
        self.readiness()?;
        let home = job.paths.home.as_ref().or(job.paths.engine_dir.as_ref()).unwrap_or(&job.paths.workspace);
        let launch = LaunchPlan {
            parent: Some(rustix::process::getpid()),
            new_session: true,
            rlimits: rlimits::of_each(&job.limits),
            ..LaunchPlan::default()
        };
        let argv: Vec<OsString> = launch.argv(&self.herma, &job.argv);
        let mut command = Command::new(&argv[0]);
        command
            .args(&argv[1..])
            .env_clear()
            .envs(environment::variables(job, home, Path::new("/tmp")))
            .current_dir(&job.paths.workspace);
        let running =
            ChildProcess::start(command, &job.stdin, InheritedFds::default(), InitialCgroup::default())?;
        Ok(Box::new(HostProcess { running, run_id: job.run_id, gone: false }))
    }

    fn reap(&self, run: RunId) -> Result<usize, ReapError> {
        Ok(leftovers::kill(run)?)
    }
}

impl HostProcess {
    /// The living processes of the job: by parentage while the child lives, by the run's id also afterwards.
    fn alive(&self) -> io::Result<Vec<ProcessInfo>> {
        let all = proc::alive()?;
        let mut found = proc::of_run(self.run_id, &all);
        if self.running.exit().is_none() {
            let child = self.running.pid();
            found.extend(all.iter().filter(|p| p.pid == child));
            found.extend(proc::descendants(child, &all));
        }
        found.sort_unstable_by_key(ProcessInfo::number);
        found.dedup();
        Ok(found)
    }
}

impl Process for HostProcess {
    fn take_stdin(&mut self) -> Option<Box<dyn Write + Send>> {
        self.running.take_stdin()
    }

    fn take_stdout(&mut self) -> Option<Box<dyn Read + Send>> {
        self.running.take_stdout()
    }

    fn take_stderr(&mut self) -> Option<Box<dyn Read + Send>> {
        self.running.take_stderr()
    }

    fn wait(&mut self, at_most: Duration) -> io::Result<Option<Exit>> {
        self.running.wait(at_most)
    }

    fn terminate(&mut self) {
        for process in self.alive().unwrap_or_default() {
            process.signal(Signal::TERM);
        }
    }

    fn kill_all(&mut self) -> io::Result<Exit> {
        if !self.gone {
            // Descendants first: once the child is dead, those without the run's id cannot be found.
            proc::kill_until_none(|| self.alive())?;
        }
        let exit = self.running.kill()?;
        self.gone = true;
        Ok(exit)
    }
}

impl Drop for HostProcess {
    fn drop(&mut self) {
        let _ = self.kill_all();
    }
}
