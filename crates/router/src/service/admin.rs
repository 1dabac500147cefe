//! The operators' listener: the router's state, and reload. No agent reaches it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use herma_net::{Listener, Options, Stream};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use serde::Serialize;
use serde_json::json;
use tokio::sync::{Semaphore, watch};

use super::audit_writer;
use super::connection::{HEAD_LIMITS, refuse};
use super::shared::Shared;
use crate::budget::BudgetState;

/// Operators' connections at once.
const MAX_CONNECTIONS: usize = 64;
/// How long a connection may be idle.
const TIMEOUT: Duration = Duration::from_mins(1);

/// The state of a router.
#[derive(Clone, Debug, Serialize)]
pub struct State {
    /// In-flight calls.
    pub under_way: usize,
    /// Tasks of the router: connections of both sides, and a few of its own.
    pub tasks: usize,
    /// The admitted runs.
    pub runs: Vec<RunState>,
    /// The budgets.
    pub budgets: Vec<BudgetState>,
    /// The upstreams.
    pub upstreams: Vec<UpstreamState>,
}

/// An admitted run.
#[derive(Clone, Debug, Serialize)]
pub struct RunState {
    /// Its name.
    pub run: String,
    /// Its in-flight calls.
    pub under_way: usize,
    /// Its models, by every name.
    pub models: Vec<String>,
}

/// An upstream.
#[derive(Clone, Debug, Serialize)]
pub struct UpstreamState {
    /// Its name.
    pub name: String,
    /// Its provider.
    pub provider: &'static str,
    /// How much longer its circuit is open.
    pub resting_ms: Option<u64>,
}

pub(super) fn state(shared: &Shared, runtime: &tokio::runtime::Handle) -> State {
    audit_writer::write(shared);
    let now = Instant::now();
    let mut runs: Vec<RunState> = shared
        .runs
        .all()
        .iter()
        .map(|run| RunState {
            run: run.name.to_string(),
            under_way: run.under_way(),
            models: run.grant().models.keys().cloned().collect(),
        })
        .collect();
    runs.sort_by(|one, other| one.run.cmp(&other.run));
    let mut upstreams: Vec<UpstreamState> = shared
        .upstreams()
        .values()
        .map(|upstream| UpstreamState {
            name: upstream.name().to_owned(),
            provider: upstream.provider(),
            resting_ms: upstream
                .circuit_breaker()
                .retry_after(now)
                .map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
        })
        .collect();
    upstreams.sort_by(|one, other| one.name.cmp(&other.name));
    let tasks = runtime.metrics().num_alive_tasks();
    State {
        under_way: shared.metrics.calls_under_way(),
        tasks,
        runs,
        budgets: shared.budgets.snapshot(),
        upstreams,
    }
}

/// Reads the configuration again, and describes the result.
type ReloadFn = Arc<dyn Fn() -> Result<String, String> + Send + Sync>;

pub(super) fn serve(
    listener: Listener,
    shared: Arc<Shared>,
    draining: watch::Receiver<bool>,
    reload: ReloadFn,
) {
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let stop = draining.clone();
    tokio::spawn(listener.serve(permits, stop, move |stream| {
        connection(stream, shared.clone(), reload.clone(), draining.clone())
    }));
}

async fn connection(stream: Stream, shared: Arc<Shared>, reload: ReloadFn, draining: watch::Receiver<bool>) {
    let options = Options { head: HEAD_LIMITS, head_timeout: TIMEOUT, write_timeout: TIMEOUT, refuse };
    herma_net::serve(stream, options, draining, |request| {
        let (shared, reload) = (shared.clone(), reload.clone());
        async move { answer(&shared, reload, &request).await }
    })
    .await;
}

async fn answer(shared: &Shared, reload: ReloadFn, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let state = || state(shared, &tokio::runtime::Handle::current());
    let (status, body) = match (request.method(), request.uri().path()) {
        (&Method::GET, "/health") => (StatusCode::OK, json!({"status": "ok"})),
        (&Method::GET, "/state") => (StatusCode::OK, json!(state())),
        (&Method::GET, "/budgets") => (StatusCode::OK, json!(state().budgets)),
        (&Method::GET, "/upstreams") => (StatusCode::OK, json!(state().upstreams)),
        (&Method::GET, "/in-flight") => (StatusCode::OK, json!(state().runs)),
        (&Method::POST, "/reload") => match tokio::task::spawn_blocking(move || reload()).await {
            Ok(Ok(said)) => (StatusCode::OK, json!({"reloaded": true, "message": said})),
            Ok(Err(said)) => (StatusCode::UNPROCESSABLE_ENTITY, json!({"reloaded": false, "message": said})),
            Err(_) => (
                StatusCode::INTERNAL_SERVER_ERROR,
                json!({"reloaded": false, "message": "the reload failed"}),
            ),
        },
        _ => (StatusCode::NOT_FOUND, json!({"message": "there is nothing here"})),
    };
    let mut response = Response::new(Full::from(format!("{body}\n")));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
