//! One connection of a client.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, watch};

use super::routes;
use super::runs::Run;
use super::shared::Shared;
use super::strict::{Busy, Strict};

/// The most that is read ahead of a connection.
const MOST_BUFFERED: usize = 128 << 10;

/// One connection of a client.
#[derive(Debug)]
pub(super) struct Connection {
    id: u64,
    pub(super) busy: Busy,
    /// The runs whose tokens came over it.
    runs: Mutex<Vec<Arc<Run>>>,
    hang_up: Arc<Notify>,
}

impl Connection {
    /// The run ends this connection when it ends.
    pub(super) fn belongs_to(&self, run: &Arc<Run>) {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        if !runs.iter().any(|known| Arc::ptr_eq(known, run)) {
            run.connected(self.id, &self.hang_up);
            runs.push(run.clone());
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        for run in self.runs.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            run.disconnected(self.id);
        }
    }
}

/// Serves a connection until the client leaves, its run ends, or the router drains.
pub(super) async fn serve<T>(shared: Arc<Shared>, stream: T, mut draining: watch::Receiver<bool>)
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let busy = Busy::default();
    let hang_up = Arc::new(Notify::new());
    let connection = Arc::new(Connection {
        id: shared.runs.connection_id(),
        busy: busy.clone(),
        runs: Mutex::default(),
        hang_up: hang_up.clone(),
    });
    let head = shared.settings().limits.head;
    let answering = service_fn(move |request| {
        let (shared, connection) = (shared.clone(), connection.clone());
        async move { Ok::<_, Infallible>(routes::answer(&shared, &connection, request).await) }
    });
    let io = TokioIo::new(Strict::new(stream, busy));
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(head)
        .max_buf_size(MOST_BUFFERED)
        .serve_connection(io, answering);
    let mut serving = std::pin::pin!(serving);
    let mut is_draining = false;
    loop {
        tokio::select! {
            biased;
            // Whether the client left in order or not: its calls were recorded as they ended.
            _ = serving.as_mut() => return,
            () = hang_up.notified() => return,
            _ = draining.changed(), if !is_draining => {
                is_draining = true;
                serving.as_mut().graceful_shutdown();
            }
        }
    }
}
