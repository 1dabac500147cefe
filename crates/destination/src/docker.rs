//! The Docker destination: one container per process, from an image pinned by digest.

mod daemon;
mod diagnosis;
mod files;
mod image;
pub mod keeper;
mod ownership;
mod pending;
mod process;
mod read_back;
mod restriction;
mod spec;
mod start;
mod state;
mod streams;
#[cfg(feature = "test-switches")]
mod test_switches;
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
use self::diagnosis::DaemonFacts;
use self::ownership::User;
use self::process::DockerProcess;
use crate::destination::{Destination, Process, Readiness, ReapError, StartError, Unready};
use crate::enabled_layers::EnabledLayers;
use crate::job::{Job, JobPaths, View};
use crate::landlock_canary::LandlockCanary;
use crate::launcher::landlock::LandlockAbi;
use crate::launcher::rlimits;
use crate::limits::{Held, HeldBy, Limits};
use crate::loopback_relay::{EGRESS_PORT, ROUTER_PORT};
use crate::sandbox::{layout, seccomp, usage_monitor};

pub use image::{ImagePin, UnpinnedImage};
pub use restriction::{DetectedBy, RESTRICTIONS, Restriction, RestrictionRow};

/// The time a daemon may still need to create a container whose herma is dead; after it, none was requested.
const CREATE_TIMEOUT: Duration = Duration::from_secs(10);
/// The polling interval for that container.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The settings of the Docker destination.
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

/// Starts processes in containers. Every start creates a container and every end removes it: none is reused.
pub struct Docker {
    herma: PathBuf,
    options: DockerOptions,
    daemon: OnceLock<Arc<Daemon>>,
    facts: OnceLock<DaemonFacts>,
    enabled: EnabledLayers<Restriction>,
}

impl Docker {
    /// Docker as `options` say, with herma's own binary at this path.
    #[must_use]
    pub fn new(herma: PathBuf, options: DockerOptions) -> Self {
        let enabled = EnabledLayers::default();
        Self { herma, options, daemon: OnceLock::new(), facts: OnceLock::new(), enabled }
    }

    /// Leaves one restriction out, so that a test can check which probe detects it.
    #[cfg(feature = "test-switches")]
    #[must_use]
    pub fn without(mut self, restriction: Restriction) -> Self {
        self.enabled = EnabledLayers::without(restriction);
        self
    }

    /// The runs that have containers at this daemon, running or not, of any herma.
    pub fn runs(&self) -> io::Result<Vec<RunId>> {
        let daemon = self.daemon().map_err(io::Error::other)?;
        let mut runs: Vec<RunId> =
            containers(&daemon, None)?.into_iter().filter_map(|found| found.run).collect();
        runs.sort_unstable();
        runs.dedup();
        Ok(runs)
    }

    /// Kills and removes every container of a dead run; returns how many there were. A container ends and is
    /// removed by itself when its herma dies: this handles one that was created and not yet started.
    fn remove_containers(&self, run: RunId) -> io::Result<usize> {
        let mut awaited = pending::take_names(&self.options.files, run);
        let daemon = self.daemon().map_err(io::Error::other)?;
        let give_up = Instant::now() + CREATE_TIMEOUT;
        let mut removed = BTreeSet::new();
        loop {
            let found = containers(&daemon, Some(run))?;
            let is_over = found.is_empty() && awaited.is_empty();
            for ContainerRef { id, name, .. } in found {
                process::remove(&daemon, &id)?;
                awaited.retain(|awaited| Some(awaited) != name.as_ref());
                removed.insert(id);
            }
            // Docker briefly lists a container that it already reports as unknown, so poll until none is listed.
            if is_over || Instant::now() > give_up {
                return Ok(removed.len());
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    fn daemon(&self) -> Result<Arc<Daemon>, Unready> {
        if let Some(daemon) = self.daemon.get() {
            return Ok(Arc::clone(daemon));
        }
        let found = diagnosis::find(&diagnosis::socket(self.options.socket.as_deref())?)?;
        Ok(Arc::clone(self.daemon.get_or_init(|| found)))
    }

    /// The properties of the daemon and the image, cached for the run.
    fn facts(&self) -> Result<&DaemonFacts, Unready> {
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

    /// The Landlock ABI. Another runtime has its own kernel, which herma cannot query.
    fn landlock(&self) -> Option<LandlockAbi> {
        LandlockAbi::of_this_kernel().filter(|_| self.options.runtime.is_none())
    }

    /// The expected number of seccomp filters of the container's init process; unknown where the runtime has its
    /// own kernel.
    fn filters(&self, facts: &DaemonFacts) -> Option<usize> {
        self.options.runtime.is_none().then(|| seccomp::COUNT + usize::from(facts.filter))
    }

    fn layers(&self, facts: &DaemonFacts, image: &ImagePin) -> Vec<String> {
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
            format!("herma's filter of system calls{own}; 32-bit and x32 system calls kill the process"),
            second,
            format!("limits: {limits}; the rest by rlimits"),
        ]
    }
}

/// A container in the daemon's list.
struct ContainerRef {
    id: String,
    name: Option<String>,
    run: Option<RunId>,
}

/// The containers of one run or of all runs, running or not.
fn containers(daemon: &Daemon, run: Option<RunId>) -> io::Result<Vec<ContainerRef>> {
    let filters = Some(spec::filter(run));
    let options = ListContainersOptions { all: true, filters, ..ListContainersOptions::default() };
    let found = daemon.ask(|client| async move { client.list_containers(Some(options)).await })?;
    let named = found.into_iter().filter_map(|container| {
        let run = container.labels.and_then(|labels| labels.get(spec::RUN_LABEL)?.parse().ok());
        let name = container.names.and_then(|names| Some(names.first()?.trim_start_matches('/').to_owned()));
        container.id.map(|id| ContainerRef { id, name, run })
    });
    Ok(named.collect())
}

impl Destination for Docker {
    fn kind(&self) -> DestinationKind {
        DestinationKind::Docker
    }

    fn readiness(&self) -> Result<Readiness, Unready> {
        let facts = self.facts()?;
        Ok(Readiness { walls: self.layers(facts, self.image()?), detail: facts.detail.clone() })
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
        all.extend(usage_monitor::held(limits));
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

    fn chown_canary(&self, planted: &Path) -> io::Result<()> {
        ownership::chown_to_container_user(planted)
    }

    fn landlock_canary(&self) -> LandlockCanary {
        LandlockCanary::Directory
    }

    fn start(&self, job: &Job) -> Result<Box<dyn Process>, StartError> {
        let mut process = self.make(job)?;
        match self.start_command(&mut process, job) {
            Ok(()) => Ok(Box::new(process)),
            // A dead container gives no more detail than that.
            Err(_) if process.is_over() => Err(StartError::Isolation {
                program: "Docker".to_owned(),
                said: "the container was killed before its command could start".to_owned(),
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
    /// Verifies the restrictions of a paused container, then starts its command.
    fn start_command(&self, process: &mut DockerProcess, job: &Job) -> Result<(), StartError> {
        let (keeper, number) =
            process.attach().map_err(StartError::io("cannot take hold of the container"))?;
        self.confirm(number, job)?;
        let watch = usage_monitor::WatchedDirs::of(&job.paths, &job.overlays)
            .and_then(|paths| usage_monitor::UsageMonitor::start(paths, &job.limits, keeper, number));
        process.watch = Some(watch.map_err(StartError::io("cannot watch the workspace"))?);
        process.go().map_err(StartError::io("cannot let the command into the container"))
    }

    /// Creates a container up to the point where the command would start.
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
