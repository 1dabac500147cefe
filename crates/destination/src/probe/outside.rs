//! The outside of the probes: plants the secrets, listens, starts the inside, and judges what came of it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use herma_model::{Digest, RunId};
use rustix::rand::GetRandomFlags;

use super::{
    Canary, Confinement, ConfinementSchema, HostProcess, ProbePlan, ProbeResult, SUBCOMMAND, inside,
};
use crate::destination::{Destination, Readiness, StartError};
use crate::job::{Job, Rooms, Stdin};
use crate::proc;

/// The file that the inside leaves in the workspace.
pub(super) const SIGN: &str = "sign";

/// The probes take milliseconds; on a machine that is very busy, a little longer.
const PATIENCE: Duration = Duration::from_secs(15);

/// Where the probes plant what must not be reachable.
#[derive(Clone, Copy, Debug)]
pub struct Grounds<'a> {
    /// A directory of this run, where a scratch workspace can be made; it is removed afterwards.
    pub scratch: &'a Path,
    /// herma's home.
    pub herma_home: &'a Path,
    /// The user's home.
    pub user_home: &'a Path,
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

/// A file or directory that is removed when it is no longer needed.
struct Planted(PathBuf);

/// Tries, in the same destination and with the same mounts, variables and limits as `shape`, what must not be
/// possible there. `readiness` is what the destination said of itself before.
pub fn probe(
    destination: &dyn Destination,
    readiness: &Readiness,
    shape: &Job,
    grounds: Grounds<'_>,
) -> Result<Confinement, ProbeError> {
    let scratch = Planted::dir(grounds.scratch.join(format!("probe-{}", shape.run_id)))?;
    let (workspace, engine_dir) = (scratch.0.join("workspace"), scratch.0.join("engine"));
    let other_run = Planted::dir(other_run(grounds.herma_home, shape.run_id))?;
    for dir in [&workspace, &engine_dir] {
        fs::create_dir(dir).map_err(io(format!("making {}", dir.display())))?;
    }
    let (_herma_secret, herma_canary) = plant(grounds.herma_home, shape.run_id, "herma")?;
    let (_home_secret, home_canary) = plant(grounds.user_home, shape.run_id, "home")?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(io("listening on loopback"))?;
    listener.set_nonblocking(true).map_err(io("listening on loopback"))?;
    let port = listener.local_addr().map_err(io("listening on loopback"))?.port();

    let rooms = Rooms {
        workspace,
        engine_dir: Some(engine_dir.clone()),
        // What the engine can call is there while the walls are tried.
        router: shape.rooms.router.clone(),
    };
    let view = destination.view(&rooms);
    let plan = ProbePlan {
        run_id: shape.run_id,
        workspace: view.workspace,
        sign: herma_canary.digest.to_string(),
        herma_canary,
        home_canary,
        other_run: other_run.0.clone(),
        mounts: shape.mounts.iter().map(|mount| mount.inside.clone()).collect(),
        port,
        herma: own_process()?,
    };
    let text = serde_json::to_vec(&plan).map_err(|error| io("writing the plan")(error.into()))?;
    fs::write(engine_dir.join("plan.json"), text).map_err(io("writing the plan"))?;
    let plan_inside = view.engine_dir.unwrap_or(engine_dir).join("plan.json");
    let job = Job {
        argv: vec![view.herma.into(), SUBCOMMAND.into(), plan_inside.into()],
        rooms: rooms.clone(),
        stdin: Stdin::Null,
        herma: true,
        ..shape.clone()
    };

    let answers = ask(destination, &job)?;
    let sign = fs::read_to_string(rooms.workspace.join(SIGN))
        .map_err(io("looking for the sign in the workspace"))?;
    if sign != plan.sign {
        return Err(ProbeError::NoAnswer(
            "the sign in the workspace is not the one that was asked for".to_owned(),
        ));
    }
    let mut probes = collate(&answers);
    if listener.accept().is_ok() {
        contradict(&mut probes, "connect_host_loopback", "herma's listener was reached");
    }
    Ok(Confinement {
        schema: ConfinementSchema::V1,
        run_id: shape.run_id,
        destination: destination.kind(),
        walls: readiness.walls.clone(),
        probes,
    })
}

fn ask(destination: &dyn Destination, job: &Job) -> Result<Vec<ProbeResult>, ProbeError> {
    let mut process = destination.start(job)?;
    let (stdout, stderr) = (process.take_stdout(), process.take_stderr());
    let ended = process.wait(PATIENCE);
    process.kill_all().map_err(io("ending the probe"))?;
    // Read only now that nothing can write any more: the answer is far smaller than a pipe.
    let (mut answer, mut said) = (Vec::new(), Vec::new());
    if let (Some(mut stdout), Some(mut stderr)) = (stdout, stderr) {
        stdout.read_to_end(&mut answer).map_err(io("reading the answer"))?;
        stderr.read_to_end(&mut said).map_err(io("reading the answer"))?;
    }
    let said = String::from_utf8_lossy(&said).trim().to_owned();
    match ended {
        Ok(Some(exit)) if exit.success() => serde_json::from_slice(&answer)
            .map_err(|error| ProbeError::NoAnswer(format!("not the results that were asked for: {error}"))),
        Ok(Some(exit)) => Err(ProbeError::NoAnswer(format!("ended with {exit:?}: {said}"))),
        Ok(None) => {
            Err(ProbeError::NoAnswer(format!("nothing within {} seconds: {said}", PATIENCE.as_secs())))
        }
        Err(error) => Err(ProbeError::NoAnswer(format!("{error}: {said}"))),
    }
}

/// One result for each probe of the table: what is missing or said twice was not denied.
fn collate(answers: &[ProbeResult]) -> Vec<ProbeResult> {
    inside::names()
        .map(|(name, what)| {
            let mut of_name = answers.iter().filter(|answer| answer.name == name);
            let (denied, observed) = match (of_name.next(), of_name.next()) {
                (Some(answer), None) => (answer.denied, answer.observed.clone()),
                (None, _) => (false, "no answer".to_owned()),
                (Some(_), Some(_)) => (false, "more than one answer".to_owned()),
            };
            ProbeResult { name: name.to_owned(), what: what.to_owned(), denied, observed }
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

/// Takes away what the probes of a run planted, where herma was killed before it could do so itself.
pub fn clean_up(run_id: RunId, herma_home: &Path, user_home: &Path) {
    drop(Planted(other_run(herma_home, run_id)));
    drop(Planted(canary(herma_home, run_id, "herma")));
    drop(Planted(canary(user_home, run_id, "home")));
}

fn other_run(herma_home: &Path, run_id: RunId) -> PathBuf {
    herma_home.join(format!(".herma-other-run-{run_id}"))
}

fn canary(dir: &Path, run_id: RunId, kind: &str) -> PathBuf {
    dir.join(format!(".herma-canary-{kind}-{run_id}"))
}

fn plant(dir: &Path, run_id: RunId, kind: &str) -> Result<(Planted, Canary), ProbeError> {
    let path = canary(dir, run_id, kind);
    let mut secret = [0; 32];
    rustix::rand::getrandom(&mut secret, GetRandomFlags::empty())
        .map_err(|e| io("drawing a secret")(e.into()))?;
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    let mut file: File = opened.map_err(io(format!("planting a secret at {}", path.display())))?;
    let planted = Planted(path.clone());
    file.write_all(&secret).map_err(io(format!("planting a secret at {}", path.display())))?;
    Ok((planted, Canary { path, digest: Digest::of(&secret) }))
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

fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> ProbeError {
    let what = what.into();
    move |source| ProbeError::Io { what, source }
}

impl Planted {
    fn dir(path: PathBuf) -> Result<Self, ProbeError> {
        let made = fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(io(format!("making {}", path.display())))?;
        Ok(Self(path))
    }
}

impl Drop for Planted {
    fn drop(&mut self) {
        let _ = if self.0.is_dir() { fs::remove_dir_all(&self.0) } else { fs::remove_file(&self.0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(name: &str, denied: bool) -> ProbeResult {
        ProbeResult { name: name.to_owned(), what: String::new(), denied, observed: String::new() }
    }

    #[test]
    fn a_missing_a_double_and_an_unknown_answer_are_no_refusals() {
        let mut answers: Vec<_> = inside::names().map(|(name, _)| answer(name, true)).collect();
        assert!(collate(&answers).iter().all(|probe| probe.denied));

        answers.push(answer("mount", true));
        answers.retain(|answer| answer.name != "write_usr");
        answers.push(answer("write_user", true));
        let probes = collate(&answers);
        let broken: Vec<&str> = probes.iter().filter(|p| !p.denied).map(|p| p.name.as_str()).collect();
        assert_eq!(broken, ["write_usr", "mount"]);
    }
}
