//! The outside of the probes: starts the inside, twice, and judges what came of it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use herma_core::CancellationToken;
use herma_core::units::Bytes;

use super::canaries::Canaries;
use super::table::{PROBES, Probe};
use super::{Confinement, ConfinementSchema, HostProcess, ProbePlan, ProbeResult, SUBCOMMAND, SmallLimits};
use crate::destination::{Destination, Prepared, Process, Readiness, StartError, wait_unless};
use crate::environment;
use crate::job::{Job, JobPaths, Stdin, View};
use crate::limits::{LimitName, Limits};
use crate::proc;

/// The file that the inside leaves in the workspace.
pub(super) const SIGN: &str = "sign";
/// The file with what the inside is to try.
const PLAN: &str = "plan.json";

/// The probes take milliseconds; on a machine that is very busy, a little longer.
const PATIENCE: Duration = Duration::from_secs(45);

/// A quarter of it is filled by a file that is nobody's own. Of the rest, what is left by the probe and a container's keeper
/// must be so much that who fills it is clearly the largest, whom the kernel kills; by its measure what a process has mapped of
/// herma's program counts as well, which is ten megabytes, give or take one. Every run waits until it is filled, so it is not
/// more; a build for debugging is several times as large.
const SMALL_MEMORY: u64 = if cfg!(debug_assertions) { 28 << 20 } else { 10 << 20 };

/// Limits that cost little to pass, and leave enough for the probe itself, and for what the kernel keeps for each
/// processor, which counts as well.
fn small_limits() -> SmallLimits {
    let processors = thread::available_parallelism().map_or(1, usize::from) as u64;
    SmallLimits { memory: SMALL_MEMORY + processors * (256 << 10), processes: 24 }
}

/// herma's namespaces that the inside must not share.
const NAMESPACES: [&str; 4] = ["user", "ipc", "uts", "cgroup"];

/// Where the probes plant what must not be reachable.
#[derive(Clone, Copy, Debug)]
pub struct Grounds<'a> {
    /// A directory of this run, where scratch workspaces are made. They are the caller's to remove: until the system has
    /// taken down what was mounted there, that takes a while.
    pub scratch: &'a Path,
    /// herma's home.
    pub herma_home: &'a Path,
    /// The user's home.
    pub user_home: &'a Path,
    /// Nobody waits for what they find any more once this is told.
    pub cancellation: &'a CancellationToken,
}

/// The probes could not be run; that is not a pass.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// Something could not be prepared or read.
    #[error("the confinement probes could not be run: {what}: {source}")]
    Io {
        /// What was being done.
        what: String,
        /// What the system said.
        source: io::Error,
    },
    /// The process did not start.
    #[error("the confinement probes could not be started: {0}")]
    Start(#[from] StartError),
    /// The process did not answer as it should.
    #[error("the confinement probes gave no answer: {0}")]
    NoAnswer(String),
}

/// One of the two sandboxes that probes run in: as the engine's, or with small limits.
struct Ground<'a> {
    workspace: PathBuf,
    /// Where the plan is laid, and where the inside looks for it.
    engine_dir: PathBuf,
    view: View,
    job: Job,
    small: Option<SmallLimits>,
    prepared: Prepared<'a>,
}

/// The same, while the inside is at it.
struct Asked {
    workspace: PathBuf,
    sign: String,
    process: Box<dyn Process>,
}

/// Tries, in the same destination and with the same mounts, variables and limits as `shape`, what must not be
/// possible there. `readiness` is what the destination said of itself before.
pub fn probe(
    destination: &dyn Destination,
    readiness: &Readiness,
    shape: &Job,
    grounds: Grounds<'_>,
) -> Result<Confinement, ProbeError> {
    // The walls are made while the canaries are planted, first those behind which it takes longest.
    let full = Ground::begin(destination, shape, grounds, None)?;
    let small = Ground::begin(destination, shape, grounds, Some(small_limits()))?;
    let canaries = Canaries::plant(shape.run_id, grounds.herma_home, grounds.user_home)?;
    for planted in canaries.planted() {
        destination.lend(planted).map_err(io(format!("lending {}", planted.display())))?;
    }
    let limits = destination.limits(&shape.limits);
    let ask = |ground: Ground<'_>| ground.ask(destination, shape, &canaries)?.answers(grounds.cancellation);
    let (full, small) = if destination.capabilities().runs_jobs_in_parallel() {
        thread::scope(|scope| {
            let small = scope.spawn(|| ask(small));
            let ended = || Err(ProbeError::NoAnswer("who asked them ended".to_owned()));
            (ask(full), small.join().unwrap_or_else(|_| ended()))
        })
    } else {
        (ask(full), ask(small))
    };
    let mut probes = collate(&[full?, small?].concat());
    for (name, observed) in canaries.reached() {
        contradict(&mut probes, name, observed);
    }
    Ok(Confinement {
        schema: ConfinementSchema::V2,
        run_id: shape.run_id,
        destination: destination.kind(),
        walls: readiness.walls.clone(),
        limits,
        probes,
    })
}

impl<'a> Ground<'a> {
    fn begin(
        destination: &'a dyn Destination,
        shape: &Job,
        grounds: Grounds<'_>,
        small: Option<SmallLimits>,
    ) -> Result<Self, ProbeError> {
        let kind = if small.is_some() { "small" } else { "probe" };
        let scratch = grounds.scratch.join(format!("{kind}-{}", shape.run_id));
        let (workspace, engine_dir) = (scratch.join("workspace"), scratch.join("engine"));
        for dir in [&scratch, &workspace, &engine_dir] {
            fs::create_dir(dir).map_err(io(format!("making {}", dir.display())))?;
        }
        // What the engine can call is there while the walls are tried; with small limits only those are tried.
        let (router, egress) = match small {
            None => (shape.paths.router.clone(), shape.paths.egress.clone()),
            Some(_) => (None, None),
        };
        let paths = JobPaths {
            workspace: workspace.clone(),
            engine_dir: Some(engine_dir.clone()),
            router,
            egress,
            governance: None,
        };
        let view = destination.view(&paths);
        let limits = match small {
            None => shape.limits,
            // Not the address space of each: the C library sets some aside for each thread, and the probe would die of it
            // before it has its answer.
            Some(SmallLimits { memory, processes }) => {
                Limits { memory: None, total_memory: Bytes(memory), processes, ..shape.limits }
            }
        };
        let plan = view.engine_dir.as_ref().unwrap_or(&engine_dir).join(PLAN);
        let job = Job {
            argv: vec![view.herma.clone().into(), SUBCOMMAND.into(), plan.into()],
            paths,
            hidden: Vec::new(),
            stdin: Stdin::Null,
            limits,
            needs_herma: true,
            ..shape.clone()
        };
        let prepared = Prepared::begin(destination, job.clone())?;
        Ok(Self { workspace, engine_dir, view, job, small, prepared })
    }

    fn ask(
        self,
        destination: &dyn Destination,
        shape: &Job,
        canaries: &Canaries,
    ) -> Result<Asked, ProbeError> {
        let Self { workspace, engine_dir, view, job, small, prepared } = self;
        let plan = ProbePlan {
            run_id: shape.run_id,
            user_namespace: destination.capabilities().has_user_namespace(),
            read_only_devices: destination.capabilities().has_read_only_devices(),
            landlock_canary: destination.landlock_canary(),
            workspace: view.workspace.clone(),
            sign: canaries.herma.digest.to_string(),
            herma_canary: canaries.herma.clone(),
            home_canary: canaries.home.clone(),
            other_run: canaries.other_run().to_owned(),
            mounts: shape.mounts.iter().map(|mount| mount.inside.clone()).collect(),
            port: canaries.port,
            udp_port: canaries.udp_port,
            admin_socket: canaries.admin_socket().to_owned(),
            host_socket: canaries.host_socket().to_owned(),
            abstract_socket: canaries.abstract_socket.clone(),
            repository: canaries.repository().to_owned(),
            herma: own_process()?,
            namespaces: own_namespaces()?,
            variables: variables(&job, &view),
            limits: destination.limits(&job.limits),
            small,
        };
        let text = serde_json::to_vec(&plan).map_err(|error| io("writing the plan")(error.into()))?;
        fs::write(engine_dir.join(PLAN), text).map_err(io("writing the plan"))?;
        Ok(Asked { workspace, sign: plan.sign, process: prepared.start()? })
    }
}

/// The names of every variable that is set for the job.
fn variables(job: &Job, view: &View) -> Vec<String> {
    let set = environment::variables(job, Path::new("/"), Path::new("/"));
    let names = set.into_iter().chain(environment::ways_out(view)).map(|(name, _)| name);
    // The last one is bubblewrap's, with the directory that the job starts in.
    names.map(|name| name.to_string_lossy().into_owned()).chain(["PWD".to_owned()]).collect()
}

impl Asked {
    /// What the inside says, once nothing of it is alive.
    fn answers(mut self, cancellation: &CancellationToken) -> Result<Vec<ProbeResult>, ProbeError> {
        let (stdout, stderr) = (self.process.take_stdout(), self.process.take_stderr());
        let ended = wait_unless(self.process.as_mut(), PATIENCE, || cancellation.is_cancelled());
        let met = self.process.over_limit();
        self.process.kill_all().map_err(io("ending the probe"))?;
        // Read only now that nothing can write any more: the answer is far smaller than a pipe.
        let (mut answer, mut said) = (Vec::new(), Vec::new());
        if let (Some(mut stdout), Some(mut stderr)) = (stdout, stderr) {
            stdout.read_to_end(&mut answer).map_err(io("reading the answer"))?;
            stderr.read_to_end(&mut said).map_err(io("reading the answer"))?;
        }
        let said = String::from_utf8_lossy(&said).trim().to_owned();
        let silent = |what: String| Err(ProbeError::NoAnswer(what));
        let mut answers = serde_json::Deserializer::from_slice(&answer)
            .into_iter()
            .collect::<Result<Vec<ProbeResult>, _>>()
            .map_err(|error| ProbeError::NoAnswer(format!("not the results that were asked for: {error}")))?;
        let killed = || killed_in_the_last(&answers).filter(|_| met == Some(LimitName::Memory));
        match ended {
            Ok(Some(exit)) if exit.success() => {}
            Ok(Some(exit)) => match killed().filter(|_| exit.was_killed()) {
                Some(last) => answers.push(last),
                None => return silent(format!("ended {exit}: {said}")),
            },
            Ok(None) => return silent(format!("nothing within {} seconds: {said}", PATIENCE.as_secs())),
            Err(error) => return silent(format!("{error}: {said}")),
        }
        let sign = fs::read_to_string(self.workspace.join(SIGN))
            .map_err(io("looking for the sign in the workspace"))?;
        if sign == self.sign {
            return Ok(answers);
        }
        silent("the sign in the workspace is not the one that was asked for".to_owned())
    }
}

/// What the last probe found where the kernel killed who made it: all before it were told of, and only it was not.
fn killed_in_the_last(answers: &[ProbeResult]) -> Option<ProbeResult> {
    let small: Vec<&Probe> = PROBES.iter().filter(|probe| probe.small).collect();
    let (last, before) = small.split_last()?;
    let told = answers.iter().map(|answer| answer.name.as_str()).eq(before.iter().map(|probe| probe.name));
    told.then(|| last.result(true, "killed by the kernel".to_owned()))
}

/// One result for each probe of the table: what is missing or said twice was not denied.
fn collate(answers: &[ProbeResult]) -> Vec<ProbeResult> {
    PROBES
        .iter()
        .map(|probe| {
            let mut of_name = answers.iter().filter(|answer| answer.name == probe.name);
            let (denied, observed) = match (of_name.next(), of_name.next()) {
                (Some(answer), None) => (answer.denied, answer.observed.clone()),
                (None, _) => (false, "no answer".to_owned()),
                (Some(_), Some(_)) => (false, "more than one answer".to_owned()),
            };
            probe.result(denied, observed)
        })
        .collect()
}

/// What herma saw itself outweighs what the inside says.
fn contradict(probes: &mut [ProbeResult], name: &str, observed: &str) {
    for probe in probes.iter_mut().filter(|probe| probe.name == name) {
        probe.denied = false;
        observed.clone_into(&mut probe.observed);
    }
}

fn own_process() -> Result<HostProcess, ProbeError> {
    let own = rustix::process::getpid();
    let seen = proc::look(own)
        .ok_or_else(|| io("reading /proc")(io::Error::other("herma's own process is not shown")))?;
    let namespace = fs::read_link("/proc/self/ns/pid").map_err(io("reading the pid namespace"))?;
    Ok(HostProcess {
        pid: seen.number(),
        started: seen.started,
        pid_namespace: namespace.to_string_lossy().into_owned(),
    })
}

fn own_namespaces() -> Result<BTreeMap<String, String>, ProbeError> {
    let read = |kind: &str| {
        let link = fs::read_link(format!("/proc/self/ns/{kind}")).map_err(io("reading the namespaces"))?;
        Ok((kind.to_owned(), link.to_string_lossy().into_owned()))
    };
    NAMESPACES.into_iter().map(read).collect()
}

pub(super) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> ProbeError {
    let what = what.into();
    move |source| ProbeError::Io { what, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_a_double_and_an_unknown_answer_are_no_refusals() {
        let mut answers: Vec<_> = PROBES.iter().map(|probe| probe.result(true, String::new())).collect();
        assert!(collate(&answers).iter().all(|probe| probe.denied));

        let named = |name: &str| answers.iter().find(|answer| answer.name == name).cloned().unwrap();
        let (twice, other) =
            (named("mount"), ProbeResult { name: "write_user".into(), ..named("write_usr") });
        answers.push(twice);
        answers.retain(|answer| answer.name != "write_usr");
        answers.push(other);
        let probes = collate(&answers);
        let broken: Vec<&str> = probes.iter().filter(|p| !p.denied).map(|p| p.name.as_str()).collect();
        assert_eq!(broken, ["write_usr", "mount"]);
    }
}
