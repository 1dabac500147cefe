//! Docker: a container around every process, from an image that is named by digest.

mod daemon;
mod diagnosis;
mod files;
mod image;
pub mod keeper;
#[cfg(feature = "test-switches")]
mod loosened;
mod making;
mod owner;
mod piece;
mod process;
mod read_back;
mod spec;
mod start;
mod state;
mod streams;
mod wire;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use bollard::query_parameters::ListContainersOptions;
use herma_core::engine::DestinationKind;
use herma_core::{RunId, Timestamp};

use self::daemon::Daemon;
use self::diagnosis::Facts;
use self::owner::User;
use self::process::DockerProcess;
use crate::destination::{Destination, Process, Readiness, ReapError, StartError, Unready};
use crate::doors::{EGRESS_PORT, ROUTER_PORT};
use crate::job::{Job, JobPaths, View};
use crate::launcher::landlock::Version;
use crate::launcher::rlimits;
use crate::limits::{Held, HeldBy, Limits};
use crate::probe::LandlockCanary;
use crate::sandbox::{layout, seccomp, watch};
use crate::standing::Standing;

pub use image::{ImagePin, UnpinnedImage};
pub use piece::{Noticed, PIECES, Piece, PieceRow};

/// How long a daemon may take to make a container whose herma is dead; one that is not there by then was never asked for.
const MAKING: Duration = Duration::from_secs(10);
/// How often it is looked for.
const LOOK: Duration = Duration::from_millis(50);

/// What a person says about Docker.
#[derive(Clone, Debug)]
pub struct DockerOptions {
    /// The image that every container is made of. It needs a C library as new as the one that herma was built for.
    /// Without one nothing can be started, and runs can still be reaped.
    pub image: Option<ImagePin>,
    /// The daemon's socket, as in `DOCKER_HOST`; the usual one if none is named.
    pub socket: Option<String>,
    /// Docker's runtime, such as `runsc`; the daemon's default if none is named.
    pub runtime: Option<String>,
    /// A directory of herma's own for small files that all containers see.
    pub files: PathBuf,
}

/// Starts processes in containers. Every start makes a container and every end removes it: none is ever used twice.
pub struct Docker {
    herma: PathBuf,
    options: DockerOptions,
    daemon: OnceLock<Arc<Daemon>>,
    facts: OnceLock<Facts>,
    standing: Standing<Piece>,
}

impl Docker {
    /// Docker as `options` say, with herma's own binary at this path.
    #[must_use]
    pub fn new(herma: PathBuf, options: DockerOptions) -> Self {
        let standing = Standing::default();
        Self { herma, options, daemon: OnceLock::new(), facts: OnceLock::new(), standing }
    }

    /// The same with one piece of its walls left out, so that a test can see who notices.
    #[cfg(feature = "test-switches")]
    #[must_use]
    pub fn without(mut self, piece: Piece) -> Self {
        self.standing = Standing::without(piece);
        self
    }

    /// The runs that have containers, alive or not, of this and any other herma that uses the daemon.
    pub fn runs(&self) -> io::Result<Vec<RunId>> {
        let daemon = self.daemon().map_err(io::Error::other)?;
        let mut runs: Vec<RunId> =
            containers(&daemon, None)?.into_iter().filter_map(|found| found.run).collect();
        runs.sort_unstable();
        runs.dedup();
        Ok(runs)
    }

    /// Kills and removes every container of a run that is over; returns how many there were. A container ends and is
    /// removed by itself when its herma is killed: this is for one that was created and not yet started.
    fn remove_containers(&self, run: RunId) -> io::Result<usize> {
        let mut awaited = making::left(&self.options.files, run);
        let daemon = self.daemon().map_err(io::Error::other)?;
        let give_up = Instant::now() + MAKING;
        let mut removed = BTreeSet::new();
        loop {
            let found = containers(&daemon, Some(run))?;
            let is_over = found.is_empty() && awaited.is_empty();
            for Found { id, name, .. } in found {
                process::remove(&daemon, &id)?;
                awaited.retain(|awaited| Some(awaited) != name.as_ref());
                removed.insert(id);
            }
            // Docker lists one for a moment that it says it does not know any more: so it is over when none is listed.
            if is_over || Instant::now() > give_up {
                return Ok(removed.len());
            }
            thread::sleep(LOOK);
        }
    }

    fn daemon(&self) -> Result<Arc<Daemon>, Unready> {
        if let Some(daemon) = self.daemon.get() {
            return Ok(Arc::clone(daemon));
        }
        let found = diagnosis::find(&diagnosis::socket(self.options.socket.as_deref())?)?;
        Ok(Arc::clone(self.daemon.get_or_init(|| found)))
    }

    /// What the daemon says. Kept while it says so: asked several times in a run, it does not change meanwhile.
    fn facts(&self) -> Result<&Facts, Unready> {
        let image = self.image()?;
        if let Some(facts) = self.facts.get() {
            return Ok(facts);
        }
        if !self.herma.is_file() {
            return Err(Unready {
                what: format!("herma's own binary is not at {}", self.herma.display()),
                next_step: "install herma again".to_owned(),
            });
        }
        let socket = diagnosis::socket(self.options.socket.as_deref())?;
        let runtime = self.options.runtime.as_deref();
        let facts = diagnosis::examine(&*self.daemon()?, &socket, image, runtime)?;
        Ok(self.facts.get_or_init(|| facts))
    }

    fn image(&self) -> Result<&ImagePin, Unready> {
        self.options.image.as_ref().ok_or_else(no_image)
    }

    /// The second wall. Another runtime has a kernel of its own, which herma cannot ask from here.
    fn landlock(&self) -> Option<Version> {
        Version::of_this_kernel().filter(|_| self.options.runtime.is_none())
    }

    /// How many filters of system calls a container's first process is held by; none can be counted from here where the
    /// runtime has a kernel of its own.
    fn filters(&self, facts: &Facts) -> Option<usize> {
        self.options.runtime.is_none().then(|| seccomp::COUNT + usize::from(facts.filter))
    }

    fn walls(&self, facts: &Facts, image: &ImagePin) -> Vec<String> {
        let second = match self.landlock() {
            Some(version) => format!("Landlock {} inside", version.number()),
            None => "no Landlock: this kernel or runtime has none".to_owned(),
        };
        let own = match self.filters(facts) {
            Some(_) if facts.filter => " inside Docker's own",
            Some(_) => ", and none of Docker's: its daemon has none",
            None => "",
        };
        let by = |held: Held| {
            let group = if held.by == HeldBy::CgroupV2 { "cgroup v2" } else { "cgroup v1" };
            format!("{} by {group}", held.name)
        };
        let held: Vec<String> = facts.held(&Limits::default()).into_iter().map(by).collect();
        let limits = if held.is_empty() { "none by Docker".to_owned() } else { held.join(", ") };
        vec![
            format!(
                "own mount, pid, ipc, uts, network and cgroup namespaces; the host's user namespace, as user {}",
                User::inside().uid
            ),
            "no capabilities, no new privileges".to_owned(),
            format!(
                "read-only image {image}; own /tmp and home; only the workspace and the engine's directory are writable",
            ),
            "no network but an empty loopback".to_owned(),
            "no variable and no open file of the caller, and no variable of the image".to_owned(),
            "ends with herma, and is removed then".to_owned(),
            format!("herma's filter of system calls{own}; a foreign architecture kills"),
            second,
            format!("limits: {limits}; the rest by rlimits"),
        ]
    }
}

/// A container that is there.
struct Found {
    id: String,
    name: Option<String>,
    run: Option<RunId>,
}

/// The containers of a run, or of all runs, dead or alive.
fn containers(daemon: &Daemon, run: Option<RunId>) -> io::Result<Vec<Found>> {
    let filters = Some(spec::filter(run));
    let options = ListContainersOptions { all: true, filters, ..ListContainersOptions::default() };
    let found = daemon.ask(|client| async move { client.list_containers(Some(options)).await })?;
    let named = found.into_iter().filter_map(|container| {
        let run = container.labels.and_then(|labels| labels.get(spec::RUN_LABEL)?.parse().ok());
        let name = container.names.and_then(|names| Some(names.first()?.trim_start_matches('/').to_owned()));
        container.id.map(|id| Found { id, name, run })
    });
    Ok(named.collect())
}

impl Destination for Docker {
    fn kind(&self) -> DestinationKind {
        DestinationKind::Docker
    }

    fn readiness(&self) -> Result<Readiness, Unready> {
        let facts = self.facts()?;
        Ok(Readiness { walls: self.walls(facts, self.image()?), detail: facts.detail.clone() })
    }

    fn rehearse(&self) -> Result<Readiness, Unready> {
        let ready = self.readiness()?;
        let image = self.image()?;
        self.rehearsal().map_err(|error| match error {
            StartError::Unready(unready) => unready,
            other => Unready {
                what: format!("no container can be started from the image {image}: {other}"),
                next_step: "herma's own binary runs inside: the image needs /lib64 with a glibc as new as this machine's \
                            and libgcc_s.so.1, as the images of Debian, Ubuntu and Fedora have; Alpine has not"
                    .to_owned(),
            },
        })?;
        Ok(ready)
    }

    fn limits(&self, limits: &Limits) -> Vec<Held> {
        let mut all = self.facts().map(|facts| facts.held(limits)).unwrap_or_default();
        all.extend(rlimits::all(limits, &all));
        all.extend(layout::held(limits));
        all.extend(watch::held(limits));
        all
    }

    fn view(&self, paths: &JobPaths) -> View {
        View {
            workspace: layout::WORKSPACE.into(),
            engine_dir: paths.engine_dir.as_ref().map(|_| layout::ENGINE.into()),
            router: paths.router.as_ref().map(|_| layout::ROUTER.into()),
            router_port: paths.router.as_ref().map(|_| ROUTER_PORT),
            egress_port: paths.egress.as_ref().map(|_| EGRESS_PORT),
            certificates: paths.egress.as_ref().and_then(|_| files::certificates()).map(|(_, place)| place),
            governance: paths.governance.as_ref().map(|_| layout::GOVERNANCE.into()),
            herma: layout::HERMA.into(),
        }
    }

    fn lend(&self, planted: &Path) -> io::Result<()> {
        owner::give(planted)
    }

    fn landlock_canary(&self) -> LandlockCanary {
        LandlockCanary::Directory
    }

    fn start(&self, job: &Job) -> Result<Box<dyn Process>, StartError> {
        let mut process = self.make(job)?;
        match self.let_in(&mut process, job) {
            Ok(()) => Ok(Box::new(process)),
            // Nothing can be seen of a container that has died, and that is then all there is to say.
            Err(_) if process.is_over() => Err(StartError::Walls {
                program: "Docker".to_owned(),
                said: "the container ended before its command could start: somebody killed it".to_owned(),
            }),
            Err(error) => Err(error),
        }
    }

    fn reap(&self, run: RunId) -> Result<usize, ReapError> {
        self.remove_containers(run).map_err(ReapError::Unreachable)
    }
}

/// No image is named, and what to do about it.
#[must_use]
pub fn no_image() -> Unready {
    Unready {
        what: "no image is named for the destination `docker`".to_owned(),
        next_step:
            "`herma destination set docker --image NAME@sha256:...` in the repository, or `docker_image: \
                    NAME@sha256:...` in settings.yaml in herma's home"
                .to_owned(),
    }
}

impl Docker {
    /// Has the command start in a container whose keeper waits, once that is seen to be what was asked for.
    fn let_in(&self, process: &mut DockerProcess, job: &Job) -> Result<(), StartError> {
        let (keeper, number) =
            process.take_hold().map_err(StartError::io("cannot take hold of the container"))?;
        self.confirm(number, job)?;
        let watch = watch::Opened::of(&job.paths)
            .and_then(|paths| watch::Watch::start(paths, &job.limits, keeper, number));
        process.watch = Some(watch.map_err(StartError::io("cannot watch the workspace"))?);
        process.go().map_err(StartError::io("cannot let the command into the container"))
    }

    /// Makes a container of the image up to where the command would start.
    fn rehearsal(&self) -> Result<(), StartError> {
        let failed = |error| StartError::io("cannot prepare the rehearsal")(error);
        let mut entropy = [0; 10];
        rustix::rand::getrandom(&mut entropy, rustix::rand::GetRandomFlags::empty())
            .map_err(|e| failed(e.into()))?;
        let run_id = RunId::new(Timestamp::UNIX_EPOCH, entropy);
        let workspace = self.options.files.join(format!("rehearsal-{run_id}"));
        std::fs::create_dir_all(&workspace).map_err(failed)?;
        let job = Job::new(run_id, vec!["true".into()], JobPaths::new(workspace.clone())).with_herma();
        let tried = self.make(&job).map(drop);
        std::fs::remove_dir(&workspace).map_err(failed)?;
        tried
    }
}
