//! What a proxy counts, in the form that Prometheus reads, at a listener of the operator's own. Words of herma only: no host,
//! no address, no run.

use std::sync::Arc;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::time::timeout;

use super::connection::Stream;
use super::counts::Counts;
use super::shared::Shared;
use super::{answer, head};

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
        add(&decisions, vec![("verdict", "denied"), ("reason", reason.word())], *count);
    }
    for (fault, count) in &counts.failed {
        add(&decisions, vec![("verdict", "failed"), ("reason", fault.word())], *count);
    }
    for (cause, count) in &counts.cut {
        add(&cut, vec![("cause", cause.word())], *count);
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

/// Answers the one request of an operator's connection.
pub(super) async fn serve<S: Stream>(shared: Arc<Shared>, mut operator: S) {
    let mut came = Vec::new();
    let Ok(Ok(Some(length))) = timeout(shared.limits.head, head::read(&mut operator, &mut came)).await else {
        return;
    };
    let head = head::parse(came.get(..length).unwrap_or_default());
    let (status, kind, body) = match head {
        Ok(head) if head.method == "GET" && head.target == PATH => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ("200 OK", kind, text(&shared.counts()))
        }
        _ => ("404 Not Found", "text/plain", format!("there is nothing but GET {PATH} here\n")),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    answer::finish(&mut operator, &[head.as_bytes(), body.as_bytes()].concat()).await;
}
