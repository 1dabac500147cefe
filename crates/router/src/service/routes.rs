//! The routes of the agents' listener. They change nothing but budgets and the record of calls.

use std::sync::Arc;

use bytes::Bytes;
use herma_dialect::Dialect;
use herma_dialect::endpoint::{ENDPOINTS, Endpoint, dialect_of, endpoint_at};
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use hyper::body::Incoming;
use serde_json::json;

use super::audit_writer;
use super::call::{self, call};
use super::connection::Connection;
use super::refused::Refused;
use super::response_body::ResponseBody;
use super::shared::Shared;
use crate::grant::Grant;

/// Sent by clients of the Anthropic API.
const VERSION: HeaderName = HeaderName::from_static("anthropic-version");

/// A route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    Endpoint(Endpoint),
    Models,
    Health,
    Ready,
    Metrics,
}

impl Route {
    fn at(path: &str) -> Option<Self> {
        match path {
            "/v1/models" => Some(Self::Models),
            "/healthz" => Some(Self::Health),
            "/readyz" => Some(Self::Ready),
            "/metrics" => Some(Self::Metrics),
            _ => endpoint_at(path).map(Self::Endpoint),
        }
    }

    fn method(self) -> Method {
        match self {
            Self::Endpoint(_) => Method::POST,
            Self::Models | Self::Health | Self::Ready | Self::Metrics => Method::GET,
        }
    }
}

/// Every route, as method and path.
#[must_use]
pub fn paths() -> Vec<(Method, &'static str)> {
    let reads = ["/v1/models", "/healthz", "/readyz", "/metrics"].map(|path| (Method::GET, path));
    ENDPOINTS.iter().map(|(_, path)| (Method::POST, *path)).chain(reads).collect()
}

pub(super) async fn answer(
    shared: &Arc<Shared>,
    connection: &Connection,
    request: Request<Incoming>,
) -> Response<ResponseBody> {
    let (head, body) = request.into_parts();
    let (path, query) = origin_form(&head.uri).unwrap_or_default();
    let dialect = dialect_at(path);
    let tell = |refused: &Refused| {
        let (response, body) = refused.response(dialect);
        response.map(|()| ResponseBody::Whole(body))
    };
    let Some(route) = Route::at(path) else {
        return tell(&Refused::NotFound);
    };
    if head.method != route.method() {
        let mut response = tell(&Refused::MethodNotAllowed(route.method()));
        if let Ok(allow) = HeaderValue::from_str(route.method().as_str()) {
            response.headers_mut().insert(ALLOW, allow);
        }
        return response;
    }
    let is_query_known = match (route, query) {
        (_, None) => true,
        (Route::Endpoint(Endpoint::Messages | Endpoint::CountTokens), Some(query)) => query == "beta=true",
        (Route::Models, Some(query)) => {
            query.split('&').all(|pair| pair.starts_with("limit=") || pair == "beta=true")
        }
        _ => false,
    };
    if !is_query_known {
        return tell(&Refused::UnsupportedQuery);
    }
    let whole = |status, kind: &'static str, body: Bytes| {
        let mut response = Response::new(ResponseBody::Whole(body));
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        response
    };
    match route {
        Route::Endpoint(endpoint) => call(shared, connection, endpoint, &head, body).await,
        Route::Models => match call::authenticate(shared, connection, &head.headers) {
            Ok(run) => {
                let anthropic = head.headers.contains_key(&VERSION);
                whole(StatusCode::OK, "application/json", models(&run.grant(), anthropic))
            }
            Err(refused) => tell(&refused),
        },
        Route::Health => whole(StatusCode::OK, "text/plain", Bytes::from_static(b"ok\n")),
        Route::Ready if shared.upstreams().is_empty() => {
            whole(StatusCode::SERVICE_UNAVAILABLE, "text/plain", Bytes::from_static(b"no upstream\n"))
        }
        Route::Ready => whole(StatusCode::OK, "text/plain", Bytes::from_static(b"ready\n")),
        Route::Metrics => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            audit_writer::write(shared);
            whole(StatusCode::OK, kind, Bytes::from(shared.metrics.text()))
        }
    }
}

/// The path and the query of a target in origin form. The absolute form is for proxies, the authority form for tunnels:
/// the router is neither.
pub(super) fn origin_form(uri: &Uri) -> Option<(&str, Option<&str>)> {
    let is_origin = uri.scheme().is_none() && uri.authority().is_none() && uri.path().starts_with('/');
    is_origin.then(|| (uri.path(), uri.query()))
}

/// The dialect of an error at a path.
fn dialect_at(path: &str) -> Dialect {
    match endpoint_at(path) {
        Some(endpoint) => dialect_of(endpoint),
        None if path.starts_with("/v1/messages") => Dialect::Messages,
        None => Dialect::Chat,
    }
}

/// The models of a run, in the shape of either API.
fn models(grant: &Grant, anthropic: bool) -> Bytes {
    let names: Vec<&String> = grant.models.keys().collect();
    let list = if anthropic {
        let of = |name: &&String| json!({"type": "model", "id": name, "display_name": name, "created_at": "1970-01-01T00:00:00Z"});
        json!({
            "data": names.iter().map(of).collect::<Vec<_>>(),
            "first_id": names.first(),
            "last_id": names.last(),
            "has_more": false,
        })
    } else {
        let of = |name: &&String| json!({"id": name, "object": "model", "created": 0, "owned_by": "herma"});
        json!({"object": "list", "data": names.iter().map(of).collect::<Vec<_>>()})
    };
    Bytes::from(list.to_string())
}
