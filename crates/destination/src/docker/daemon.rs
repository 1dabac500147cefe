//! The connection to the Docker daemon. Its client is asynchronous and destinations are not: one thread runs the
//! client, and callers block.

use std::io;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use bollard::errors::Error;
use bollard::{API_DEFAULT_VERSION, Docker as Client};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// The timeout of one request: creating a container of a large image on a busy disk takes seconds.
const RESPONSE_TIMEOUT: Duration = Duration::from_mins(1);

/// A connected daemon and the client thread. Both end when the last owner drops this.
pub(super) struct Daemon {
    pub(super) client: Client,
    handle: Handle,
    /// Never written to: dropping it stops the thread.
    _alive: oneshot::Sender<()>,
}

/// Why there is no connection to the daemon.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    #[error("its path is not UTF-8")]
    SocketPath,
    #[error("{0}")]
    Client(#[from] Error),
    #[error("{0}")]
    Thread(#[from] io::Error),
    #[error("no answer within {seconds} seconds")]
    Timeout { seconds: u64 },
}

impl Daemon {
    /// Starts the thread and negotiates the API version.
    pub(super) fn connect(socket: &Path, at_most: Duration) -> Result<Self, ConnectError> {
        let path = socket.to_str().ok_or(ConnectError::SocketPath)?;
        let client = Client::connect_with_unix(path, RESPONSE_TIMEOUT.as_secs(), API_DEFAULT_VERSION)?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (alive, gone) = oneshot::channel::<()>();
        let serve = move || drop(runtime.block_on(gone));
        thread::Builder::new().name("docker".to_owned()).spawn(serve)?;
        let negotiate = async move { tokio::time::timeout(at_most, client.negotiate_version()).await };
        match wait(&handle, negotiate)? {
            Ok(client) => Ok(Self { client: client?, handle, _alive: alive }),
            Err(_) => Err(ConnectError::Timeout { seconds: at_most.as_secs() }),
        }
    }

    /// Sends a request and blocks until the response.
    pub(super) fn ask<T, F>(&self, work: impl FnOnce(Client) -> F) -> io::Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let asked = work(self.client.clone());
        let answer = wait(&self.handle, async { tokio::time::timeout(RESPONSE_TIMEOUT, asked).await })?;
        match answer {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(to_io_error(error)),
            Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "the Docker daemon does not answer")),
        }
    }

    /// Runs a task on the client thread until it ends or the daemon is dropped.
    pub(super) fn run(&self, work: impl Future<Output = ()> + Send + 'static) {
        drop(self.handle.spawn(work));
    }

    /// Runs `make` in the context of the runtime, to create I/O objects for it.
    pub(super) fn enter<T>(&self, make: impl FnOnce() -> T) -> T {
        let _entered = self.handle.enter();
        make()
    }
}

/// Converts the daemon's error; 404 and 409 keep a kind of their own.
pub(super) fn to_io_error(error: Error) -> io::Error {
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
