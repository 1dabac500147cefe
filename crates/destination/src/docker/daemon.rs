//! The connection to the Docker daemon. Its client is asynchronous and herma's destinations are not: one thread runs
//! it, and callers wait for answers.

use std::io;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use bollard::errors::Error;
use bollard::{API_DEFAULT_VERSION, Docker as Client};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// What the daemon may take for one answer: making a container of a large image on a busy disk takes seconds.
const PATIENCE: Duration = Duration::from_mins(1);

/// A daemon that answered, and the thread that talks to it. Both end when the last owner drops this.
pub(super) struct Daemon {
    pub(super) client: Client,
    handle: Handle,
    /// Never written to: that it is gone tells the thread to end.
    _alive: oneshot::Sender<()>,
}

impl Daemon {
    /// Starts the thread and agrees with the daemon on a version.
    pub(super) fn connect(socket: &Path, at_most: Duration) -> Result<Self, String> {
        let said = |error: &dyn std::error::Error| error.to_string();
        let path = socket.to_str().ok_or("its path is no text")?;
        let client =
            Client::connect_with_unix(path, PATIENCE.as_secs(), API_DEFAULT_VERSION).map_err(|e| said(&e))?;
        let runtime = Builder::new_current_thread().enable_all().build().map_err(|e| said(&e))?;
        let handle = runtime.handle().clone();
        let (alive, gone) = oneshot::channel::<()>();
        let serve = move || drop(runtime.block_on(gone));
        thread::Builder::new().name("docker".to_owned()).spawn(serve).map_err(|e| said(&e))?;
        let negotiate = async move { tokio::time::timeout(at_most, client.negotiate_version()).await };
        match wait(&handle, negotiate).map_err(|e| said(&e))? {
            Ok(Ok(client)) => Ok(Self { client, handle, _alive: alive }),
            Ok(Err(error)) => Err(said(&error)),
            Err(_) => Err(format!("no answer within {} seconds", at_most.as_secs())),
        }
    }

    /// Asks, and sleeps until the answer is there.
    pub(super) fn ask<T, F>(&self, work: impl FnOnce(Client) -> F) -> io::Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let asked = work(self.client.clone());
        let answer = wait(&self.handle, async { tokio::time::timeout(PATIENCE, asked).await })?;
        match answer {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(told(error)),
            Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "the Docker daemon does not answer")),
        }
    }

    /// Lets something run beside the callers, until it ends or the daemon is dropped.
    pub(super) fn run(&self, work: impl Future<Output = ()> + Send + 'static) {
        drop(self.handle.spawn(work));
    }

    /// Where something can be made that needs to know the thread, such as a pipe that it writes to.
    pub(super) fn enter<T>(&self, make: impl FnOnce() -> T) -> T {
        let _entered = self.handle.enter();
        make()
    }
}

/// The daemon's error as herma's own. "There is no such thing" and "not now" are told apart from all others.
pub(super) fn told(error: Error) -> io::Error {
    match error {
        Error::DockerResponseServerError { status_code: 404, message } => {
            io::Error::new(io::ErrorKind::NotFound, message)
        }
        Error::DockerResponseServerError { status_code: 409, message } => {
            io::Error::new(io::ErrorKind::ResourceBusy, message)
        }
        Error::DockerResponseServerError { message, .. } => io::Error::other(message),
        Error::IOError { err } => err,
        other => io::Error::other(other.to_string()),
    }
}

fn wait<T: Send + 'static>(handle: &Handle, work: impl Future<Output = T> + Send + 'static) -> io::Result<T> {
    let (answer, answered) = mpsc::sync_channel(1);
    drop(handle.spawn(async move { drop(answer.send(work.await)) }));
    answered.recv().map_err(|_| io::Error::other("the thread that talks to Docker is gone"))
}
