//! One connection of a client.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use bytes::Bytes;
use herma_net::head::{BadHead, HeadLimits};
use herma_net::{Options, Stream};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response};
use serde_json::json;
use tokio::sync::{Notify, watch};

use super::routes;
use super::runs::Run;
use super::shared::Shared;

/// The bounds of a request head.
pub(super) const HEAD_LIMITS: HeadLimits = HeadLimits { max_bytes: 64 << 10, max_headers: 100 };

/// One connection of a client.
#[derive(Debug)]
pub(super) struct Connection {
    id: u64,
    /// The runs whose tokens came over it.
    runs: Mutex<Vec<Arc<Run>>>,
    hang_up: Arc<HangUp>,
}

/// Closes a connection at once, also in the middle of a response.
#[derive(Debug, Default)]
pub(super) struct HangUp {
    is_requested: AtomicBool,
    wake: Notify,
}

impl HangUp {
    pub(super) fn request(&self) {
        self.is_requested.store(true, Ordering::Release);
        self.wake.notify_one();
    }
}

impl Connection {
    /// The run closes this connection when it ends.
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
pub(super) async fn serve(shared: Arc<Shared>, stream: Stream, draining: watch::Receiver<bool>) {
    let hang_up = Arc::new(HangUp::default());
    let connection =
        Connection { id: shared.runs.connection_id(), runs: Mutex::default(), hang_up: hang_up.clone() };
    let (head_timeout, write_timeout) = {
        let settings = shared.settings();
        (settings.limits.head, settings.limits.idle)
    };
    let options = Options { head: HEAD_LIMITS, head_timeout, write_timeout, refuse };
    let answer = |request| routes::answer(&shared, &connection, request);
    let mut serving = pin!(herma_net::serve(stream, options, draining, answer));
    let mut woken = pin!(hang_up.wake.notified());
    let mut is_registered = false;
    poll_fn(|cx| {
        // Polled once, to be woken; later polls read only the flag.
        if !std::mem::replace(&mut is_registered, true) {
            let _ = woken.as_mut().poll(cx);
        }
        if hang_up.is_requested.load(Ordering::Acquire) { Poll::Ready(()) } else { serving.as_mut().poll(cx) }
    })
    .await;
}

/// The response to a bad head. The API that was called is unknown, so that the body has the keys of both families.
pub(super) fn refuse(bad: BadHead) -> Response<Bytes> {
    let error = json!({"type": "invalid_request_error", "message": bad.to_string(), "code": "bad_request"});
    let mut response = Response::new(Bytes::from(json!({"type": "error", "error": error}).to_string()));
    *response.status_mut() = bad.status();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
