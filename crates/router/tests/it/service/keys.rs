//! Only keys that an API lists reach an upstream, which may be a gateway with keys of its own.

use herma_core::model_call::Ended;

use super::kit::{ENDPOINTS, Setup};
use super::server::fine;

/// Keys by which gateways choose another address, key or model, or make further calls, and one unknown key.
const OTHERS: &[&str] = &[
    r#""user_config":{"model_list":[{"model_name":"m","litellm_params":{"api_base":"https://elsewhere.example"}}]}"#,
    r#""litellm_params":{"api_base":"https://elsewhere.example"}"#,
    r#""litellm_metadata":{}"#,
    r#""extra_body":{"api_base":"https://elsewhere.example"}"#,
    r#""extra_headers":{"x-forwarded-host":"elsewhere.example"}"#,
    r#""api_key":"sk-another""#,
    r#""custom_llm_provider":"other""#,
    r#""provider":{"order":["other"]}"#,
    r#""fallback_models":["other"]"#,
    r#""route":"fallback""#,
    r#""transforms":["middle-out"]"#,
    r#""webhook":"https://elsewhere.example""#,
    r#""thread":{"id":"thread_1"}"#,
    r#""something_new":null"#,
    r#""User_Config":{}"#,
];

/// The listed keys of each API, with those that real agents send: Claude Code, Codex, `OpenCode`, Hermes and Pi.
const LISTED: &[(usize, &str)] = &[
    (
        0,
        r#""metadata":{"user_id":"u"},"parallel_tool_calls":true,"prompt_cache_key":"k","reasoning_effort":"low""#,
    ),
    (
        0,
        r#""stream_options":{"include_usage":true},"tool_choice":"auto","temperature":0,"top_p":1,"seed":1,"stop":["x"]"#,
    ),
    (
        0,
        r#""max_tokens":5,"max_completion_tokens":5,"store":false,"user":"u","verbosity":"low","response_format":{"type":"text"}"#,
    ),
    (
        1,
        r#""prompt_cache_key":"k","store":false,"include":["reasoning.encrypted_content"],"reasoning":{"effort":"low"}"#,
    ),
    (
        1,
        r#""instructions":"x","text":{"verbosity":"low"},"client_metadata":{"a":"b"},"parallel_tool_calls":false,"tool_choice":"auto""#,
    ),
    (
        1,
        r#""service_tier":"auto","truncation":"auto","max_output_tokens":5,"safety_identifier":"s","metadata":null"#,
    ),
    (
        2,
        r#""metadata":{"user_id":"u"},"thinking":{"type":"enabled","budget_tokens":1024},"system":[{"type":"text","text":"x"}]"#,
    ),
    (
        2,
        r#""context_management":{"edits":[]},"output_config":{"effort":"low"},"stop_sequences":["x"],"top_k":1,"temperature":1"#,
    ),
    (
        2,
        r#""tool_choice":{"type":"auto"},"cache_control":{"type":"ephemeral"},"service_tier":"auto","speed":"standard""#,
    ),
    (3, r#""thinking":{"type":"adaptive"},"system":"x","tools":[],"output_config":{}"#),
    (4, r#""suffix":"x","echo":false,"logprobs":1,"best_of":1,"max_tokens":5"#),
    (5, r#""dimensions":8,"encoding_format":"float","user":"u""#),
];

fn with(endpoint: usize, keys: &str) -> (&'static str, String) {
    let (path, body) = ENDPOINTS[endpoint];
    (path, body.replacen('{', &format!("{{{keys},"), 1))
}

#[test]
fn a_key_that_the_api_does_not_list_is_refused_before_any_upstream_is_contacted() {
    let server = fine();
    let router = Setup::new(&[&server]).start();
    let mut count = 0;
    for endpoint in 0..ENDPOINTS.len() {
        for keys in OTHERS {
            let (path, body) = with(endpoint, keys);
            let reply = router.post(path, &body);
            let said = reply.error(path, 400);
            let key = keys.split('"').nth(1).unwrap();
            assert!(said.contains(&format!("`{key}`")), "{said}");
            if !path.starts_with("/v1/messages") {
                let error = &reply.json()["error"];
                assert_eq!(
                    (error["param"].as_str(), error["code"].as_str()),
                    (Some(key), Some("unknown_parameter"))
                );
            }
            count += 1;
        }
    }
    assert_eq!(server.connections(), 0);
    for record in router.records(count) {
        assert_eq!((record.ended, record.reason.as_deref()), (Ended::Refused, Some("unknown_parameter")));
    }
}

#[test]
fn listed_keys_pass_unchanged() {
    let server = fine();
    let router = Setup::new(&[&server]).start();
    for (endpoint, keys) in LISTED {
        let (path, body) = with(*endpoint, keys);
        let reply = router.post(path, &body);
        assert_eq!(reply.status, 200, "{keys}: {}", reply.text());
        let sent: serde_json::Value = serde_json::from_str(&server.last_body()).unwrap();
        let asked: serde_json::Value = serde_json::from_str(&body).unwrap();
        for (key, value) in asked.as_object().unwrap().iter().filter(|(key, _)| *key != "model") {
            assert_eq!(sent[key], *value, "{keys}");
        }
    }
}

#[test]
fn labels_hold_no_lists_and_objects() {
    let server = fine();
    let router = Setup::new(&[&server]).start();
    for (endpoint, keys) in [
        (0, r#""metadata":{"tags":["other"]}"#),
        (1, r#""client_metadata":{"route":{"model":"other"}}"#),
        (2, r#""metadata":{"user_id":{"model":"other"}}"#),
    ] {
        let (path, body) = with(endpoint, keys);
        let said = router.post(path, &body).error(path, 400);
        assert!(said.contains("metadata."), "{said}");
    }
    assert_eq!(server.connections(), 0);
}

#[test]
fn an_upstream_takes_the_keys_that_its_configuration_adds_if_all_of_the_chain_do() {
    let (one, other) = (fine(), fine());
    let add = r#"extra_request_keys = ["top_k", "chat_template_kwargs"]"#;
    let router = Setup::new(&[&one]).upstream(0, add).start();
    let (path, body) = with(0, r#""top_k":20,"chat_template_kwargs":{"enable_thinking":false}"#);
    assert_eq!(router.post(path, &body).status, 200);
    assert!(one.last_body().contains(r#""top_k":20"#));
    let (path, min_p) = with(0, r#""min_p":0.1"#);
    router.post(path, &min_p).error(path, 400);
    // The second of the chain would get the same body.
    let router = Setup::new(&[&one, &other]).upstream(0, add).start();
    router.post(path, &body).error(path, 400);
    let router = Setup::new(&[&one, &other]).upstream(0, add).upstream(1, add).start();
    assert_eq!(router.post(path, &body).status, 200);
    assert_eq!(other.connections(), 0);
}

#[test]
fn a_configuration_adds_no_key_that_decides_who_answers() {
    for (key, why) in [
        ("litellm_params", "decides who answers"),
        ("provider", "decides who answers"),
        ("api_base", "by `admit`"),
        ("mcp_servers", "by `admit`"),
        ("Model", "is not the name of a key"),
        ("", "is not the name of a key"),
    ] {
        let text = format!(
            "[upstreams.a]\nprovider = \"compatible\"\nurl = \"http://127.0.0.1:1\"\nextra_request_keys = [\"{key}\"]\n"
        );
        let bad =
            herma_router::config::Config::parse(&text, std::path::Path::new("router.toml")).unwrap_err();
        assert!(bad.to_string().contains(why), "{key}: {bad}");
    }
    let text =
        "[upstreams.a]\nprovider = \"openai\"\nkey = { env = \"KEY\" }\nextra_request_keys = [\"top_k\"]\n";
    let bad = herma_router::config::Config::parse(text, std::path::Path::new("router.toml")).unwrap_err();
    assert!(bad.to_string().contains("unknown key `extra_request_keys`"), "{bad}");
}

#[test]
fn queries_and_headers_of_gateways_do_not_pass() {
    let server = fine();
    let router = Setup::new(&[&server]).start();
    for (path, body) in ENDPOINTS {
        for query in ["?api_base=https://elsewhere.example", "?model=other", "?beta=true&provider=other"] {
            assert_eq!(router.post(&format!("{path}{query}"), body).status, 400, "{path}{query}");
        }
    }
    assert_eq!(server.connections(), 0);
    let (path, body) = ENDPOINTS[0];
    let more = "x-litellm-api-base: https://elsewhere.example\r\nhelicone-target-url: https://elsewhere.example\r\n\
                x-portkey-config: {}\r\nx-forwarded-host: elsewhere.example\r\nopenai-organization: other\r\n";
    let sent = super::client::request_with(path, more, body);
    assert_eq!(router.client.send(sent.as_bytes()).status, 200);
    let got = server.requests().pop().unwrap().to_ascii_lowercase();
    for name in ["litellm", "helicone", "portkey", "forwarded", "organization", "elsewhere"] {
        assert!(!got.contains(name), "{got}");
    }
}
