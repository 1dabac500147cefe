//! Creates and starts a job's container, up to the point where its keeper waits for the start signal.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bollard::Docker as Client;
use bollard::container::AttachContainerResults;
use bollard::errors::Error;
use bollard::query_parameters::{
    AttachContainerOptions, CreateContainerOptions, StartContainerOptions, WaitContainerOptions,
};
use futures_util::StreamExt as _;
use herma_core::Digest;
use rustix::process::Pid;
use rustix::rand::GetRandomFlags;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::daemon::Daemon;
use super::ownership::{ChownGuard, User};
use super::pending::PendingContainer;
use super::process::{CommandStdin, DockerProcess};
use super::restriction::Restriction;
use super::spec::{self, SpecParts};
use super::state::ContainerState;
use super::streams;
use super::wire::{KeeperOrder, MessageScanner, StdinSource};
use super::{Docker, diagnosis, files, keeper};
use crate::destination::{Destination as _, StartError};
use crate::environment;
use crate::forward::Forwarder;
use crate::job::{Job, Stdin, no_overlays};
use crate::launcher::landlock::Landlock;
use crate::launcher::{LaunchPlan, PortRelay, rlimits};
use crate::sandbox::layout;

/// The keeper's time from its start to its first message.
const SETUP_TIMEOUT: Duration = Duration::from_secs(20);
/// The largest stdin of a job, which is held in memory.
const MAX_STDIN_BYTES: u64 = 32 << 20;

impl Docker {
    /// Creates the container and sends the order to its keeper.
    pub(super) fn make(&self, job: &Job) -> Result<DockerProcess, StartError> {
        job.check()?;
        no_overlays(&job.overlays)?;
        layout::check_mounts(&job.mounts)?;
        self.facts()?;
        let daemon = self.daemon()?;
        let failed = |error| StartError::io("cannot prepare the container")(error);
        let order = self.order(job)?;
        let chowned =
            if self.enabled.has(Restriction::User) { ChownGuard::chown(&job.paths) } else { Ok(None) };
        let chowned = chowned
            .map_err(StartError::io("cannot chown the directories of the job to the container's user"))?;
        let id = self.create(job, &order, &daemon)?;
        let (control, heard) = unbounded_channel();
        let state = Arc::new(ContainerState::default());
        let (stdout, to_stdout) = streams::pipe(&daemon).map_err(failed)?;
        let (stderr, to_stderr) = streams::pipe(&daemon).map_err(failed)?;
        // From here on dropping it removes the container.
        let mut process = DockerProcess {
            daemon: Arc::clone(&daemon),
            id: id.clone(),
            state: Arc::clone(&state),
            stdin: (job.stdin == Stdin::Pipe).then(|| CommandStdin(control.clone())),
            control,
            stdout: Some(stdout),
            stderr: Some(stderr),
            keeper: None,
            watch: None,
            chowned,
            gone: false,
        };
        let name = id.clone();
        let attached = daemon.ask(|client| async move {
            let first = attach(&client, &name, true).await?;
            let second = attach(&client, &name, false).await?;
            Ok((first, second))
        });
        let (first, second) =
            attached.map_err(|error| self.refused("cannot attach to the container", error))?;
        let scanner = MessageScanner::new(&order.token);
        daemon.run(streams::pass(first.output, to_stdout, Some((scanner, Arc::clone(&state)))));
        daemon.run(streams::pass(second.output, to_stderr, None));
        daemon.run(hold(first.input, heard));
        daemon.run(await_end(daemon.client.clone(), id.clone(), Arc::clone(&state)));
        let _ = process.control.send(order.bytes());
        let started = daemon
            .ask(|client| async move { client.start_container(&id, None::<StartContainerOptions>).await });
        started.map_err(|error| StartError::Isolation {
            program: "Docker".to_owned(),
            said: error.to_string(),
        })?;
        if state.ready(SETUP_TIMEOUT) {
            return Ok(process);
        }
        crate::destination::Process::kill_all(&mut process).map_err(failed)?;
        let said = process.stderr_head();
        let said = if said.is_empty() { "herma's keeper inside said nothing".to_owned() } else { said };
        Err(StartError::Isolation { program: "Docker".to_owned(), said })
    }

    /// Creates the container, which is not started, and returns its id.
    fn create(&self, job: &Job, order: &KeeperOrder, daemon: &Daemon) -> Result<String, StartError> {
        let facts = self.facts()?;
        let failed = |error| StartError::io("cannot prepare the container")(error);
        let user = User::inside();
        let mut files = files::lay_out(&self.options.files, user).map_err(failed)?;
        if job.paths.egress.is_some() {
            files.extend(files::certificates().into_iter().flat_map(|(mounts, _)| mounts));
        }
        let parts = SpecParts {
            facts,
            user,
            herma: &self.herma,
            runtime: self.options.runtime.as_deref(),
            held: &facts.held(&job.limits),
            files,
            second_wall: self.landlock().is_some(),
            // Without the token, which differs every time.
            order: Digest::of(&KeeperOrder { token: String::new(), ..order.clone() }.bytes()),
        };
        let body = spec::describe(job, &parts).map_err(failed)?;
        #[cfg(feature = "test-switches")]
        let body = super::test_switches::container(body, self.enabled);

        let pending = PendingContainer::begin(&self.options.files, job.run_id).map_err(failed)?;
        let named =
            CreateContainerOptions { name: Some(pending.name.clone()), ..CreateContainerOptions::default() };
        let id = daemon.ask(|client| async move {
            client.create_container(Some(named), body).await.map(|made| made.id)
        });
        drop(pending);
        id.map_err(|error| self.refused("cannot create the container", error))
    }

    /// A daemon that fails midway may be gone: then its diagnosis is more useful than the failure.
    fn refused(&self, what: &str, error: io::Error) -> StartError {
        let gone = diagnosis::socket(self.options.socket.as_deref())
            .and_then(|socket| diagnosis::find(&socket).map(drop));
        gone.err().map_or_else(|| StartError::io(what)(error), StartError::Unready)
    }

    /// The order for the keeper.
    fn order(&self, job: &Job) -> Result<KeeperOrder, StartError> {
        let paths = &job.paths;
        let relay = (paths.router.is_some() || paths.egress.is_some()).then(|| Forwarder {
            run: job.run_id.to_string().into(),
            router: paths.router.as_ref().map(|_| layout::ROUTER.into()),
            egress: paths.egress.as_ref().map(|_| layout::EGRESS.into()),
        });
        let relay = relay.map(PortRelay::Forwarder);
        let held = self.facts()?.held(&job.limits);
        let launch = LaunchPlan {
            parent: Pid::from_raw(1),
            // The container has its own session anyway, and gVisor's setsid differs from the kernel's.
            new_session: self.options.runtime.is_none(),
            relay,
            rlimits: rlimits::all(&job.limits, &held),
            landlock: self.landlock().map(|version| Landlock { version, write: layout::writable(paths) }),
            report: Some(keeper::REPORT_FD),
            start_fd: None,
        };
        #[cfg(feature = "test-switches")]
        let launch = super::test_switches::launch(launch, self.enabled);
        let mut env = environment::relay_variables(&self.view(paths));
        for (name, value) in environment::variables(job, Path::new(layout::HOME), Path::new(layout::TMP)) {
            env.retain(|(known, _)| *known != name);
            env.push((name, value));
        }
        let mut entropy = [0; 16];
        rustix::rand::getrandom(&mut entropy, GetRandomFlags::empty())
            .map_err(|error| StartError::io("cannot make a token")(error.into()))?;
        Ok(KeeperOrder {
            token: format!("{:032x}", u128::from_ne_bytes(entropy)),
            argv: launch.argv(Path::new(layout::HERMA), &job.argv),
            env,
            stdin: stdin(&job.stdin)?,
        })
    }
}

fn stdin(stdin: &Stdin) -> Result<StdinSource, StartError> {
    let path = match stdin {
        Stdin::Null => return Ok(StdinSource::Nothing),
        Stdin::Pipe => return Ok(StdinSource::Chunks),
        Stdin::File(path) => path,
    };
    let read = || {
        let mut text = Vec::new();
        File::open(path)?.take(MAX_STDIN_BYTES + 1).read_to_end(&mut text)?;
        if text.len() as u64 > MAX_STDIN_BYTES {
            return Err(io::Error::other(format!("it is larger than {MAX_STDIN_BYTES} bytes")));
        }
        Ok(text)
    };
    read().map(StdinSource::Text).map_err(StartError::io(format!("cannot read {}", path.display())))
}

/// Attaches to the container's stderr, or to its two other streams.
async fn attach(client: &Client, id: &str, first: bool) -> Result<AttachContainerResults, Error> {
    let options = AttachContainerOptions {
        stream: true,
        stdin: first,
        stdout: first,
        stderr: !first,
        ..AttachContainerOptions::default()
    };
    client.attach_container(id, Some(options)).await
}

/// Forwards messages to the keeper, and closes its stdin after the last one.
async fn hold(mut keeper: Pin<Box<dyn AsyncWrite + Send>>, mut words: UnboundedReceiver<Vec<u8>>) {
    while let Some(words) = words.recv().await {
        if keeper.write_all(&words).await.is_err() || keeper.flush().await.is_err() {
            return;
        }
    }
}

async fn await_end(client: Client, id: String, state: Arc<ContainerState>) {
    let options = WaitContainerOptions { condition: "next-exit".to_owned() };
    let mut ends = Box::pin(client.wait_container(&id, Some(options)));
    let code = |code: i64| i32::try_from(code).map_err(|_| format!("it ended with {code}"));
    state.over(match ends.next().await {
        Some(Ok(end)) => code(end.status_code),
        Some(Err(Error::DockerContainerWaitError { code: number, error })) if error.is_empty() => {
            code(number)
        }
        Some(Err(error)) => Err(error.to_string()),
        None => Err("the Docker daemon is gone".to_owned()),
    });
}
