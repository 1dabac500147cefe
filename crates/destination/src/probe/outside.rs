//! The outside of the probes: starts two probe processes and judges their results.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use herma_core::CancellationToken;
use herma_core::units::Bytes;

use super::canaries::Canaries;
use super::table::{PROBES, ProbeSpec};
use super::{Confinement, ConfinementSchema, HermaProcess, ProbePlan, ProbeResult, SUBCOMMAND, SmallLimits};
use crate::destination::{Destination, Prepared, Process, Readiness, StartError, wait_unless};
use crate::environment;
use crate::job::{Job, JobPaths, Stdin, View};
use crate::limits::{LimitName, Limits};
use crate::proc;

/// The file that the inside writes to the workspace.
pub(super) const MARKER: &str = "marker";
/// The file with the plan for the inside.
const PLAN: &str = "plan.json";

/// The probes take milliseconds; on a very busy machine, longer.
const PROBE_TIMEOUT: Duration = Duration::from_secs(45);

/// A quarter of it is filled by a memfd, which no process owns. The rest must be large enough that the filling
/// process is clearly the largest, which the OOM killer selects; mapped pages of herma's binary count too, about
/// ten megabytes. Every run waits until it is filled, so it is no larger; a debug binary is several times as large.
const SMALL_MEMORY_BYTES: u64 = if cfg!(debug_assertions) { 28 << 20 } else { 10 << 20 };

/// Limits that are cheap to exceed, with room for the probe itself and for the kernel's per-CPU memory, which
/// counts too.
fn small_limits() -> SmallLimits {
    let processors = thread::available_parallelism().map_or(1, usize::from) as u64;
    SmallLimits { memory: SMALL_MEMORY_BYTES + processors * (256 << 10), processes: 24 }
}

/// herma's namespaces that the inside must not share.
const NAMESPACES: [&str; 4] = ["user", "ipc", "uts", "cgroup"];

/// Where the probes plant canaries.
#[derive(Clone, Copy, Debug)]
pub struct ProbeSite<'a> {
    /// A directory of this run for scratch workspaces. The caller removes them, because their unmounting takes a
    /// while.
    pub scratch: &'a Path,
    /// herma's home.
    pub herma_home: &'a Path,
    /// The user's home.
    pub user_home: &'a Path,
    /// Cancels the probes.
    pub cancellation: &'a CancellationToken,
}

/// The probes could not be run; that is not a pass.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// Preparing or reading failed.
    #[error("the confinement probes could not be run: {what}: {source}")]
    Io {
        /// The operation.
        what: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The process did not start.
    #[error("the confinement probes could not be started: {0}")]
    Start(#[from] StartError),
    /// The process did not report valid results.
    #[error("the confinement probes gave no answer: {0}")]
    NoAnswer(String),
}

/// One of the two sandboxes of the probes: like the engine's, or with small limits.
struct ProbeSandbox<'a> {
    workspace: PathBuf,
    /// The directory with the plan.
    engine_dir: PathBuf,
    view: View,
    job: Job,
    small: Option<SmallLimits>,
    prepared: Prepared<'a>,
}

/// The same while its process runs.
struct RunningProbe {
    workspace: PathBuf,
    marker: String,
    process: Box<dyn Process>,
}

/// Attempts, with the same destination, mounts, variables and limits as `shape`, every access that must be denied.
/// `readiness` is the destination's earlier report.
pub fn probe(
    destination: &dyn Destination,
    readiness: &Readiness,
    shape: &Job,
    site: ProbeSite<'_>,
) -> Result<Confinement, ProbeError> {
    // The sandboxes boot while the canaries are planted, the slower one first.
    let full = ProbeSandbox::begin(destination, shape, site, None)?;
    let small = ProbeSandbox::begin(destination, shape, site, Some(small_limits()))?;
    let canaries = Canaries::plant(shape.run_id, site.herma_home, site.user_home)?;
    for planted in canaries.planted() {
        destination
            .chown_canary(planted)
            .map_err(io(format!("changing the owner of {}", planted.display())))?;
    }
    let mut limits = destination.limits(&shape.limits);
    if shape.paths.home.is_some() {
        // The home of an environment replaces the one in memory; the disk limit counts its files.
        limits.retain(|held| held.name != LimitName::Home);
    }
    let ask =
        |ground: ProbeSandbox<'_>| ground.ask(destination, shape, &canaries)?.answers(site.cancellation);
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

impl<'a> ProbeSandbox<'a> {
    fn begin(
        destination: &'a dyn Destination,
        shape: &Job,
        site: ProbeSite<'_>,
        small: Option<SmallLimits>,
    ) -> Result<Self, ProbeError> {
        let kind = if small.is_some() { "small" } else { "probe" };
        let scratch = site.scratch.join(format!("{kind}-{}", shape.run_id));
        let (workspace, engine_dir) = (scratch.join("workspace"), scratch.join("engine"));
        for dir in [&scratch, &workspace, &engine_dir] {
            fs::create_dir(dir).map_err(io(format!("making {}", dir.display())))?;
        }
        // The engine's sockets exist during the probes; with small limits only those limits are probed.
        let (router, egress) = match small {
            None => (shape.paths.router.clone(), shape.paths.egress.clone()),
            Some(_) => (None, None),
        };
        let paths = JobPaths {
            workspace: workspace.clone(),
            engine_dir: Some(engine_dir.clone()),
            home: None,
            router,
            egress,
            governance: None,
        };
        let view = destination.view(&paths);
        let limits = match small {
            None => shape.limits,
            // No address-space limit: the C library reserves some per thread, and the probe would fail before it
            // has a result.
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
    ) -> Result<RunningProbe, ProbeError> {
        let Self { workspace, engine_dir, view, job, small, prepared } = self;
        let plan = ProbePlan {
            run_id: shape.run_id,
            user_namespace: destination.capabilities().has_user_namespace(),
            read_only_devices: destination.capabilities().has_read_only_devices(),
            landlock_canary: destination.landlock_canary(),
            workspace: view.workspace.clone(),
            marker: canaries.herma.digest.to_string(),
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
        Ok(RunningProbe { workspace, marker: plan.marker, process: prepared.start()? })
    }
}

/// The names of all variables of the job.
fn variables(job: &Job, view: &View) -> Vec<String> {
    let set = environment::variables(job, Path::new("/"), Path::new("/"));
    let names = set.into_iter().chain(environment::relay_variables(view)).map(|(name, _)| name);
    // PWD is set by bubblewrap.
    names.map(|name| name.to_string_lossy().into_owned()).chain(["PWD".to_owned()]).collect()
}

impl RunningProbe {
    /// The results of the inside, once all of its processes are dead.
    fn answers(mut self, cancellation: &CancellationToken) -> Result<Vec<ProbeResult>, ProbeError> {
        let (stdout, stderr) = (self.process.take_stdout(), self.process.take_stderr());
        let ended = wait_unless(self.process.as_mut(), PROBE_TIMEOUT, || cancellation.is_cancelled());
        let met = self.process.exceeded_limit();
        self.process.kill_all().map_err(io("ending the probe"))?;
        // Read only now that no process can write: the results are far smaller than a pipe buffer.
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
            Ok(None) => return silent(format!("nothing within {} seconds: {said}", PROBE_TIMEOUT.as_secs())),
            Err(error) => return silent(format!("{error}: {said}")),
        }
        let marker = fs::read_to_string(self.workspace.join(MARKER))
            .map_err(io("looking for the marker in the workspace"))?;
        if marker == self.marker {
            return Ok(answers);
        }
        silent("the marker in the workspace is not the one that was asked for".to_owned())
    }
}

/// The result of the last probe if the OOM killer ended it: all before it were reported, and only it is missing.
fn killed_in_the_last(answers: &[ProbeResult]) -> Option<ProbeResult> {
    let small: Vec<&ProbeSpec> = PROBES.iter().filter(|probe| probe.small).collect();
    let (last, before) = small.split_last()?;
    let told = answers.iter().map(|answer| answer.name.as_str()).eq(before.iter().map(|probe| probe.name));
    told.then(|| last.result(true, "killed by the kernel".to_owned()))
}

/// One result per probe of the table: a missing or duplicate result counts as not denied.
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

/// herma's own observation overrides the result of the inside.
fn contradict(probes: &mut [ProbeResult], name: &str, observed: &str) {
    for probe in probes.iter_mut().filter(|probe| probe.name == name) {
        probe.denied = false;
        observed.clone_into(&mut probe.observed);
    }
}

fn own_process() -> Result<HermaProcess, ProbeError> {
    let own = rustix::process::getpid();
    let seen = proc::look(own)
        .ok_or_else(|| io("reading /proc")(io::Error::other("herma's own process is not shown")))?;
    let namespace = fs::read_link("/proc/self/ns/pid").map_err(io("reading the pid namespace"))?;
    Ok(HermaProcess {
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
    fn missing_duplicate_and_unknown_results_are_no_denials() {
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
