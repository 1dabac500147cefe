//! The operator's own listener: what the router is at, and reload. No agent reaches it.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::Serialize;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use super::listener::{AFTER_ERROR, Listener, drained};
use super::scribe;
use super::shared::Shared;
use crate::budget::BudgetState;

/// What a router is at.
#[derive(Clone, Debug, Serialize)]
pub struct State {
    /// How many calls are under way.
    pub under_way: usize,
    /// How many tasks the router has: connections of both sides, and a few of its own.
    pub tasks: usize,
    /// The runs that are let in.
    pub runs: Vec<RunState>,
    /// The budgets.
    pub budgets: Vec<BudgetState>,
    /// The upstreams.
    pub upstreams: Vec<UpstreamState>,
}

/// A run that is let in.
#[derive(Clone, Debug, Serialize)]
pub struct RunState {
    /// Its name.
    pub run: String,
    /// How many of its calls are under way.
    pub under_way: usize,
    /// The models that it may ask, by every name.
    pub models: Vec<String>,
}

/// An upstream.
#[derive(Clone, Debug, Serialize)]
pub struct UpstreamState {
    /// Its name.
    pub name: String,
    /// Who it is.
    pub provider: &'static str,
    /// How long it still rests after failures.
    pub resting_ms: Option<u64>,
}

pub(super) fn state(shared: &Shared, runtime: &tokio::runtime::Handle) -> State {
    scribe::write(shared);
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
                .rest()
                .resting(now)
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

/// Reads the configuration again, and says what came of it.
type ReloadFn = Arc<dyn Fn() -> Result<String, String> + Send + Sync>;

pub(super) fn serve(
    listener: Listener,
    shared: Arc<Shared>,
    mut draining: watch::Receiver<bool>,
    reload: ReloadFn,
) {
    tokio::spawn(async move {
        loop {
            tokio::select! {
                () = drained(&mut draining) => return,
                accepted = listener.stream() => {
                    let Ok(stream) = accepted else {
                        tokio::time::sleep(AFTER_ERROR).await;
                        continue;
                    };
                    tokio::spawn(connection(stream, shared.clone(), reload.clone()));
                }
            }
        }
    });
}

async fn connection(stream: impl AsyncRead + AsyncWrite + Unpin, shared: Arc<Shared>, reload: ReloadFn) {
    let answering = service_fn(move |request: Request<Incoming>| {
        let (shared, reload) = (shared.clone(), reload.clone());
        async move { Ok::<_, Infallible>(answer(&shared, reload, &request).await) }
    });
    // An operator's connection that breaks needs no word.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(stream), answering)
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
                json!({"reloaded": false, "message": "the reload broke off"}),
            ),
        },
        _ => (StatusCode::NOT_FOUND, json!({"message": "there is nothing here"})),
    };
    let mut response = Response::new(Full::from(format!("{body}\n")));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
