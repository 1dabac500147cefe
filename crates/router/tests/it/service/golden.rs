//! The request to each provider and the response to the client, through the whole router: one file for each pair.

use super::kit::{ENDPOINTS, KEY, STREAMS, Setup, TOKEN};
use super::server::{Server, fine};

/// A request as the upstream got it, without what differs from time to time.
fn shown(server: &Server) -> String {
    let request = server.requests().pop().unwrap();
    assert!(!request.contains(TOKEN), "{request}");
    request
        .replace('\r', "")
        .replace(&server.address().to_string(), "[address]")
        .replace(KEY, "[key]")
        .replace(herma_core::VERSION, "[version]")
}

/// A request to an endpoint, and its result.
fn through(provider: &str, (path, body): (&str, &str)) -> String {
    let server = fine();
    let router = Setup::of(provider, &[&server]).start();
    let more = "accept: application/json\r\nuser-agent: client/1\r\nanthropic-beta: something-new\r\ncookie: a=b\r\n";
    let reply = router.client.send(super::client::request_with(path, more, body).as_bytes());
    let headers: Vec<String> = reply
        .headers
        .iter()
        .filter(|(name, _)| name != "date")
        .map(|(name, value)| format!("{name}: {value}\n"))
        .collect();
    let mut record = serde_json::to_value(router.record()).unwrap();
    for key in ["first_byte_us", "latency_us", "prev", "request", "response", "time"] {
        record.as_object_mut().unwrap().remove(key);
    }
    record.sort_all_objects();
    format!(
        "--- the client sends\n{path}\n{body}\n\n--- the upstream gets\n{}\n\n--- the client gets\n{}\n{}\n{}\n\
         --- the record\n{}\n",
        shown(&server),
        reply.status,
        headers.concat(),
        reply.text(),
        serde_json::to_string_pretty(&record).unwrap()
    )
}

fn each(provider: &str, endpoints: &[usize], streams: &[usize]) {
    for at in endpoints {
        let name = ENDPOINTS[*at].0.trim_start_matches("/v1/").replace('/', "_");
        insta::assert_snapshot!(format!("{provider}_{name}"), through(provider, ENDPOINTS[*at]));
    }
    for at in streams {
        let name = STREAMS[*at].0.trim_start_matches("/v1/").replace('/', "_");
        insta::assert_snapshot!(format!("{provider}_{name}_stream"), through(provider, STREAMS[*at]));
    }
}

#[test]
fn openai_and_its_clients_see_this() {
    each("openai", &[0, 1, 4, 5], &[0, 1]);
}

#[test]
fn anthropic_and_its_clients_see_this() {
    each("anthropic", &[2, 3], &[2]);
}

#[test]
fn a_compatible_server_and_its_clients_see_this() {
    each("compatible", &[0, 1, 2, 3, 4, 5], &[0, 1, 2]);
}

#[test]
fn the_record_of_a_call_says_how_many_tool_calls_its_answer_asks_for() {
    let script = "name: works\nmatch: { marker: Hello }\nturns:\n  - calls: [shell: ls, shell: pwd]\n";
    let schema = r#"{"type":"object","properties":{"command":{"type":"string"}}}"#;
    let tools = [
        format!(r#"{{"type":"function","function":{{"name":"bash","parameters":{schema}}}}}"#),
        format!(r#"{{"type":"function","name":"bash","parameters":{schema}}}"#),
        format!(r#"{{"name":"bash","input_schema":{schema}}}"#),
    ];
    for endpoints in [&ENDPOINTS[..3], &STREAMS] {
        for ((path, body), tool) in endpoints.iter().zip(&tools) {
            let router = Setup::scripted(script).start();
            let body = body.replacen('{', &format!(r#"{{"tools":[{tool}],"#), 1);
            let reply = router.post(path, &body);
            assert_eq!((reply.status, router.record().tool_calls), (200, 2), "{path}: {}", reply.text());
        }
    }
}

#[test]
fn the_scripted_upstreams_clients_see_this() {
    let script = "name: hello\nmatch: { marker: Hello }\nturns:\n  - { say: Good day. }\n";
    for (path, body) in ENDPOINTS.into_iter().take(3).chain(STREAMS) {
        let router = Setup::scripted(script).start();
        let reply = router.post(path, body);
        let kind = reply.header("content-type").unwrap().to_owned();
        let stream = if kind.starts_with("text/event-stream") { "_stream" } else { "" };
        let name = format!("scripted_{}{stream}", path.trim_start_matches("/v1/").replace('/', "_"));
        let used = router.record().used;
        insta::assert_snapshot!(name, format!("{} {kind}\n{}\n{used:?}\n", reply.status, reply.text()));
    }
}
