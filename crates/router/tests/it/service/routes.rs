//! Nothing on the agent's listener changes anything: every path, every method, with the token and without.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use herma_router::config::Address;
use herma_router::service::paths;

use super::kit::{ENDPOINTS, Router, Setup, TOKEN};
use super::server::fine;

const METHODS: [&str; 10] =
    ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "PURGE", "PROPFIND"];

/// Paths of the operator's listener and of other programs.
const ELSEWHERE: [&str; 24] = [
    "/",
    "/health",
    "/state",
    "/budgets",
    "/upstreams",
    "/in-flight",
    "/reload",
    "/admin",
    "/admin/reload",
    "/config",
    "/keys",
    "/drain",
    "/stop",
    "/debug/pprof",
    "/v1",
    "/v1/",
    "/v1/files",
    "/v1/models/m",
    "/v1/responses/resp_1",
    "/v1/messages/batches",
    "/v1/batches",
    "/v1/threads",
    "/v1/realtime",
    "/v1/organization/admin_api_keys",
];

/// Everything that an operator sees, apart from what calls spend.
fn decided(router: &Router) -> String {
    let state = router.state();
    let runs: Vec<_> = state.runs.iter().map(|run| (&run.run, &run.models)).collect();
    let upstreams: Vec<_> = state.upstreams.iter().map(|up| (&up.name, up.provider, up.resting_ms)).collect();
    // The day's budget is opened by the first call.
    let budgets: Vec<_> = state.budgets.iter().filter(|budget| budget.leased.is_none()).collect();
    let budgets: Vec<_> = budgets.iter().map(|budget| (&budget.scope, budget.limits)).collect();
    format!("{runs:?} {upstreams:?} {budgets:?} {:?}", router.handle().runs())
}

fn files(router: &Router) -> BTreeSet<String> {
    let names = |dir: &str| {
        let entries = std::fs::read_dir(router.path().join(dir)).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>()
    };
    names("").into_iter().chain(names("audit")).collect()
}

#[test]
fn no_path_and_no_method_changes_anything() {
    let server = fine();
    let router = Setup::new(&[&server]).client("budget = { requests = 1000 }").start();
    let (before, files_before) = (decided(&router), files(&router));
    let mut calls = 0;
    let known = paths();
    assert_eq!(known.len(), ENDPOINTS.len() + 4);
    for path in known.iter().map(|(_, path)| *path).chain(ELSEWHERE) {
        let body = ENDPOINTS
            .iter()
            .find(|(endpoint, _)| *endpoint == path)
            .map_or("{\"model\":\"other\"}", |(_, body)| body);
        for method in METHODS {
            for token in ["", "x", TOKEN] {
                let authorization = if token.is_empty() {
                    String::new()
                } else {
                    format!("authorization: Bearer {token}\r\n")
                };
                let request = format!(
                    "{method} {path} HTTP/1.1\r\nhost: r\r\n{authorization}content-type: application/json\r\n\
                     content-length: {}\r\nconnection: close\r\n\r\n{body}",
                    body.len()
                );
                let mut connection = router.client.connect();
                connection.send(request.as_bytes());
                let answer = connection.rest().0;
                let status: u16 = answer.split(' ').nth(1).unwrap().parse().unwrap();
                let is_endpoint = ENDPOINTS.iter().any(|(endpoint, _)| *endpoint == path);
                let is_read = matches!(path, "/healthz" | "/readyz" | "/metrics");
                let wanted = match (known.iter().find(|(_, known)| *known == path), token == TOKEN) {
                    (None, _) => 404,
                    (Some((right, _)), _) if right != method => 405,
                    (Some(_), true) => 200,
                    (Some(_), false) if is_read => 200,
                    (Some(_), false) => 401,
                };
                assert_eq!(status, wanted, "{method} {path} with token {token:?}: {answer}");
                calls += usize::from(is_endpoint && wanted == 200);
            }
        }
    }
    assert_eq!(calls, ENDPOINTS.len());
    assert_eq!(decided(&router), before);
    assert_eq!(files(&router), files_before);
    let charged: u64 = router.records(calls).iter().map(|record| record.charged.requests).sum();
    assert_eq!(router.budget().spent.requests, charged, "only calls are charged");
    assert_eq!(server.requests().len(), calls);
    assert!(server.requests().iter().all(|request| request.starts_with("POST ")));
}

fn ask(socket: &std::path::Path, request: &str) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn the_agents_socket_is_no_other_than_its_port() {
    let server = fine();
    let router = Setup::new(&[&server]).start();
    for path in ["/state", "/reload", "/budgets", "/health"] {
        for method in ["GET", "POST"] {
            let request = format!(
                "{method} {path} HTTP/1.1\r\nhost: r\r\nauthorization: Bearer {TOKEN}\r\nconnection: close\r\n\r\n"
            );
            assert!(ask(&router.unix, &request).starts_with("HTTP/1.1 404 "), "{method} {path}");
        }
    }
    let (path, body) = ENDPOINTS[0];
    let call = super::client::request_with(path, "connection: close\r\n", body);
    assert!(ask(&router.unix, &call).starts_with("HTTP/1.1 200 "));
    router.record();
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&router.unix).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn the_operators_socket_answers_the_operator_and_takes_no_calls() {
    let server = fine();
    let router = Setup::new(&[&server]).start();
    let socket = router.path().join("admin.sock");
    router
        .handle()
        .listen_admin(&Address::Unix(socket.clone()), || Err("the file is broken".to_owned()))
        .unwrap();
    let get = |line: &str| ask(&socket, &format!("{line} HTTP/1.1\r\nhost: r\r\nconnection: close\r\n\r\n"));
    for path in ["/health", "/state", "/budgets", "/upstreams", "/in-flight"] {
        assert!(get(&format!("GET {path}")).starts_with("HTTP/1.1 200 "), "{path}");
    }
    let said = get("POST /reload");
    assert!(said.starts_with("HTTP/1.1 422 ") && said.contains("the file is broken"), "{said}");
    assert!(get("GET /reload").starts_with("HTTP/1.1 404 "), "reading changes nothing");
    for (path, body) in ENDPOINTS {
        let call = super::client::request_with(path, "connection: close\r\n", body);
        assert!(ask(&socket, &call).starts_with("HTTP/1.1 404 "), "{path}");
    }
    assert_eq!(server.connections(), 0);
}
