//! Requests that would make an upstream reach out are refused in every dialect, unless the grant admits them.

use herma_core::model_call::Ended;

use super::kit::{ENDPOINTS, Setup};
use super::server::fine;

const CHAT: usize = 0;
const RESPONSES: usize = 1;
const MESSAGES: usize = 2;

/// Requests that reach out: the word that admits them, the endpoint, and the additional keys of the body. `MESSAGE` is
/// replaced by the conversation of the endpoint.
const REACHING: &[(&str, usize, &str)] = &[
    ("hosted_tool", CHAT, r#""web_search_options":{"search_context_size":"low"}"#),
    ("hosted_tool", CHAT, r#""tools":[{"type":"web_search"}]"#),
    (
        "hosted_tool",
        CHAT,
        r#""tools":[{"type":"function","function":{"name":"a"}},{"type":"code_interpreter"}]"#,
    ),
    ("hosted_tool", RESPONSES, r#""tools":[{"type":"web_search"}]"#),
    ("hosted_tool", RESPONSES, r#""tools":[{"type":"web_search_preview_2025_03_11"}]"#),
    ("hosted_tool", RESPONSES, r#""tools":[{"type":"code_interpreter","container":{"type":"auto"}}]"#),
    ("hosted_tool", RESPONSES, r#""tools":[{"type":"file_search","vector_store_ids":["vs_1"]}]"#),
    ("hosted_tool", RESPONSES, r#""tools":[{"type":"image_generation"}]"#),
    ("hosted_tool", RESPONSES, r#""tools":[{"type":"something_new"}]"#),
    ("hosted_tool", MESSAGES, r#""tools":[{"type":"web_search_20250305","name":"web_search"}]"#),
    ("hosted_tool", MESSAGES, r#""tools":[{"type":"web_fetch_20250910","name":"web_fetch"}]"#),
    ("hosted_tool", MESSAGES, r#""tools":[{"type":"code_execution_20250825","name":"code_execution"}]"#),
    ("hosted_tool", MESSAGES, r#""container":"container_1""#),
    (
        "remote_mcp",
        RESPONSES,
        r#""tools":[{"type":"mcp","server_label":"x","server_url":"https://elsewhere.example"}]"#,
    ),
    (
        "remote_mcp",
        MESSAGES,
        r#""mcp_servers":[{"type":"url","url":"https://elsewhere.example","name":"x"}]"#,
    ),
    ("stored_conversation", RESPONSES, r#""previous_response_id":"resp_1""#),
    ("stored_conversation", RESPONSES, r#""conversation":"conv_1""#),
    ("stored_conversation", RESPONSES, r#""conversation":{"id":"conv_1"}"#),
    ("stored_conversation", RESPONSES, r#""store":true"#),
    ("stored_conversation", RESPONSES, r#""prompt":{"id":"pmpt_1"}"#),
    ("stored_conversation", CHAT, r#""store":true"#),
    ("background", RESPONSES, r#""background":true"#),
    ("other_models", CHAT, r#""models":["other"]"#),
    ("other_models", CHAT, r#""fallbacks":["other"]"#),
];

/// Conversations that reach out.
const SAYING: &[(&str, usize, &str)] = &[
    ("remote_url", CHAT, r#"{"type":"image_url","image_url":{"url":"https://elsewhere.example/a.png"}}"#),
    ("remote_url", CHAT, r#"{"type":"image_url","image_url":{"url":"HTTP://elsewhere.example/a.png"}}"#),
    ("remote_url", RESPONSES, r#"{"type":"input_image","image_url":"https://elsewhere.example/a.png"}"#),
    ("remote_url", RESPONSES, r#"{"type":"input_file","file_url":"https://elsewhere.example/a.pdf"}"#),
    (
        "remote_url",
        MESSAGES,
        r#"{"type":"image","source":{"type":"url","url":"https://elsewhere.example/a.png"}}"#,
    ),
    (
        "remote_url",
        MESSAGES,
        r#"{"type":"document","source":{"type":"url","url":"https://elsewhere.example/a.pdf"}}"#,
    ),
    ("stored_file", RESPONSES, r#"{"type":"input_file","file_id":"file-1"}"#),
    ("stored_file", RESPONSES, r#"{"type":"input_image","file_id":"file-1"}"#),
    ("stored_file", MESSAGES, r#"{"type":"document","source":{"type":"file","file_id":"file_1"}}"#),
];

/// Every request that reaches out: the word that admits it, the path, and the body.
fn all() -> Vec<(&'static str, &'static str, String)> {
    let with_keys = REACHING.iter().map(|(word, endpoint, keys)| {
        let (path, body) = ENDPOINTS[*endpoint];
        (*word, path, body.replacen('{', &format!("{{{keys},"), 1))
    });
    let saying = SAYING.iter().map(|(word, endpoint, part)| {
        let (path, body) = ENDPOINTS[*endpoint];
        let said = format!(r#"[{{"type":"text","text":"Look."}},{part}]"#);
        let body = match *endpoint {
            RESPONSES => body.replace("\"Hello.\"", &format!(r#"[{{"role":"user","content":{said}}}]"#)),
            _ => body.replace("\"Hello.\"", &said),
        };
        (*word, path, body)
    });
    with_keys.chain(saying).collect()
}

#[test]
fn it_is_refused_before_any_upstream_is_contacted() {
    let server = fine();
    let router = Setup::new(&[&server]).start();
    for (_, path, body) in all() {
        let reply = router.post(path, &body);
        assert_eq!(reply.status, 403, "{body}: {}", reply.text());
        let said = reply.error(path, 403);
        assert!(said.contains("admitted"), "{said}");
    }
    assert_eq!(server.connections(), 0);
    for record in router.records(all().len()) {
        assert_eq!(
            (record.ended, record.reason.as_deref()),
            (Ended::Refused, Some("reaches_out")),
            "{record:?}"
        );
        assert_eq!(record.asked, "m");
    }
}

#[test]
fn search_options_without_any_option_reach_out_too() {
    let server = fine();
    let router = Setup::new(&[&server]).start();
    let (path, body) = ENDPOINTS[CHAT];
    router.post(path, &body.replacen('{', r#"{"web_search_options":{},"#, 1)).error(path, 403);
    assert_eq!(server.connections(), 0);
}

#[test]
fn only_admitted_accesses_pass() {
    let words = [
        "hosted_tool",
        "remote_mcp",
        "remote_url",
        "stored_file",
        "stored_conversation",
        "background",
        "other_models",
    ];
    for admitted in words {
        let server = fine();
        let router = Setup::new(&[&server]).client(&format!("admit = [\"{admitted}\"]")).start();
        let mut passed = 0;
        for (word, path, body) in all() {
            let reply = router.post(path, &body);
            if word == admitted {
                assert_eq!(reply.status, 200, "{body}: {}", reply.text());
                passed += 1;
            } else {
                assert_eq!(reply.status, 403, "{body}");
            }
        }
        assert!(passed > 0, "{admitted} was not tried");
        assert_eq!(server.requests().len(), passed);
    }
}

#[test]
fn an_answer_is_not_stored_unless_that_is_asked_for_and_admitted() {
    let server = fine();
    let router = Setup::new(&[&server]).start();
    let (path, body) = ENDPOINTS[RESPONSES];
    for (store, sent) in [
        ("", r#""store":false"#),
        (r#""store":null,"#, r#""store":false"#),
        (r#""store":false,"#, r#""store":false"#),
    ] {
        let reply = router.post(path, &body.replacen('{', &format!("{{{store}"), 1));
        assert_eq!(reply.status, 200);
        assert!(server.last_body().contains(sent), "{}", server.last_body());
        assert_eq!(server.last_body().matches("\"store\"").count(), 1);
        let told = reply.header("x-herma-rewrites").unwrap().split(',').any(|name| name == "not_stored");
        assert_eq!(told, store != r#""store":false,"#, "{reply:?}");
    }
    router.post(path, &body.replacen('{', r#"{"store":true,"#, 1)).error(path, 403);
    let router = Setup::new(&[&server]).client("admit = [\"stored_conversation\"]").start();
    assert_eq!(router.post(path, &body.replacen('{', r#"{"store":true,"#, 1)).status, 200);
    assert!(server.last_body().contains(r#""store":true"#));
    assert_eq!(router.post(path, body).status, 200);
    assert!(server.last_body().contains(r#""store":false"#), "admitted is not asked for");
}
