//! The counters of a proxy as Prometheus metrics, at a listener of the operator. Labels are herma's own codes: no host,
//! no address, no run.

use std::sync::Arc;

use bytes::Bytes;
use herma_net::{Options, Stream};
use http::header::{CONNECTION, CONTENT_TYPE};
use http::{HeaderValue, Method, Response, StatusCode};
use http_body_util::Full;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::sync::watch;

use super::counts::Counts;
use super::limits::HEAD_LIMITS;
use super::shared::Shared;

/// Where they are asked for.
const PATH: &str = "/metrics";

type Labels = Vec<(&'static str, &'static str)>;

/// All of it as text. It is made of the same counts that the report has: there is no second book that could differ.
pub(super) fn text(counts: &Counts) -> String {
    let (decisions, cut) = (Family::<Labels, Counter>::default(), Family::<Labels, Counter>::default());
    let bytes = Family::<Labels, Counter>::default();
    let open = Gauge::<i64>::default();
    let add = |family: &Family<Labels, Counter>, labels: Labels, count: u64| {
        family.get_or_create(&labels).inc_by(count);
    };
    add(&decisions, vec![("verdict", "allowed")], counts.allowed);
    for (reason, count) in &counts.denied {
        add(&decisions, vec![("verdict", "denied"), ("reason", reason.code())], *count);
    }
    for (fault, count) in &counts.failed {
        add(&decisions, vec![("verdict", "failed"), ("reason", fault.code())], *count);
    }
    for (cause, count) in &counts.cut {
        add(&cut, vec![("cause", cause.code())], *count);
    }
    add(&bytes, vec![("direction", "out")], counts.bytes_out);
    add(&bytes, vec![("direction", "in")], counts.bytes_in);
    open.set(i64::try_from(counts.open).unwrap_or(i64::MAX));

    let mut registry = Registry::with_prefix("herma_egress");
    registry.register("decisions", "Requests by verdict and reason", decisions);
    registry.register("tunnels_open", "Tunnels and exchanges that are open", open);
    registry.register("tunnels_cut", "Tunnels that the proxy cut, by cause", cut);
    registry.register("bytes", "Bytes that passed, seen from the run", bytes);
    let mut text = String::new();
    // A String takes everything.
    let _ = encode(&mut text, &registry);
    text
}

/// Serves an operator's connection.
pub(super) async fn serve(shared: Arc<Shared>, operator: Stream, stop: watch::Receiver<bool>) {
    let options = Options {
        head: HEAD_LIMITS,
        head_timeout: shared.limits.head,
        write_timeout: shared.limits.head,
        refuse: |bad| respond(bad.status(), "text/plain", format!("{bad}\n")).map(Bytes::from),
    };
    herma_net::serve(operator, options, stop, |request| {
        let is_known = request.method() == Method::GET && request.uri() == PATH;
        let response = if is_known {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            respond(StatusCode::OK, kind, text(&shared.counts()))
        } else {
            let message = format!("there is nothing but GET {PATH} here\n");
            respond(StatusCode::NOT_FOUND, "text/plain", message)
        };
        std::future::ready(response.map(Full::<Bytes>::from))
    })
    .await;
}

fn respond(status: StatusCode, kind: &'static str, body: String) -> Response<String> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
