//! A count of tokens that cannot be, or that the answer itself contradicts, is not believed: the call is charged at the
//! most, and the record says why.

use herma_core::model_call::Ended;

use super::kit::{ENDPOINTS, STREAMS, Setup};
use super::server::{Server, http, stream};

const CHAT: usize = 0;
const RESPONSES: usize = 1;
const MESSAGES: usize = 2;

fn chat(usage: &str) -> String {
    format!(r#"{{"model":"x","choices":[],"usage":{usage}}}"#)
}

fn say() -> &'static str {
    r#"data: {"model":"x","choices":[{"index":0,"delta":{"content":"Hello."},"finish_reason":"stop"}]}"#
}

/// Asks for a stream of these events, and sees that it is charged at the most for this reason, or not at all.
#[track_caller]
fn charged(endpoint: usize, events: &[&str], reason: Option<&str>) {
    let body = events.iter().flat_map(|event| [event, "\n\n"]).collect::<String>();
    let server = Server::answering(stream(body.as_bytes()));
    let router = Setup::new(&[&server]).start();
    let (path, asked) = STREAMS[endpoint];
    assert_eq!(router.post(path, asked).status, 200);
    check(&router.record(), reason, asked.len());
}

#[track_caller]
fn check(record: &herma_core::model_call::ModelCall, reason: Option<&str>, asked: usize) {
    assert_eq!(record.reason.as_deref(), reason, "{record:?}");
    if reason.is_some() {
        assert_eq!((record.ended, record.settled), (Ended::Uncounted, false), "{record:?}");
        assert!(record.charged.tokens >= asked as u64 + 50, "{record:?}");
    } else {
        assert_eq!((record.ended, record.settled), (Ended::Answered, true), "{record:?}");
        assert!(record.charged.tokens < 40, "{record:?}");
    }
}

#[test]
fn an_answer_that_used_nothing_is_charged_at_the_most() {
    let answers = [
        (
            ENDPOINTS[0],
            chat(r#"{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}"#),
            Some("zero_usage"),
        ),
        (ENDPOINTS[0], chat(r#"{"prompt_tokens":9,"completion_tokens":0}"#), Some("zero_usage")),
        (ENDPOINTS[0], chat(r#"{"prompt_tokens":0,"completion_tokens":5}"#), Some("zero_usage")),
        (
            ENDPOINTS[1],
            r#"{"model":"x","status":"completed","usage":{"input_tokens":0,"output_tokens":0}}"#.to_owned(),
            Some("zero_usage"),
        ),
        (
            ENDPOINTS[2],
            r#"{"model":"x","stop_reason":"end_turn","usage":{"input_tokens":0,"output_tokens":0}}"#
                .to_owned(),
            Some("zero_usage"),
        ),
        (ENDPOINTS[0], chat(r#"{"prompt_tokens":9,"completion_tokens":1}"#), None),
        (
            ENDPOINTS[2],
            r#"{"model":"x","usage":{"input_tokens":0,"cache_read_input_tokens":9,"output_tokens":1}}"#
                .to_owned(),
            None,
        ),
        // Embeddings have no output.
        (ENDPOINTS[5], chat(r#"{"prompt_tokens":9,"total_tokens":9}"#), None),
        (ENDPOINTS[5], chat(r#"{"prompt_tokens":0,"total_tokens":0}"#), Some("zero_usage")),
    ];
    for ((path, asked), answer, reason) in answers {
        let server = Server::answering(http(200, "application/json", "", &answer));
        let router = Setup::new(&[&server]).start();
        assert_eq!(router.post(path, asked).status, 200);
        let record = router.record();
        assert_eq!(record.reason.as_deref(), reason, "{answer}: {record:?}");
        assert_eq!(record.settled, reason.is_none(), "{answer}: {record:?}");
        if reason.is_some() {
            assert!(record.charged.tokens >= asked.len() as u64, "{answer}: {record:?}");
        }
    }
}

#[test]
fn a_cache_that_is_only_warmed_has_no_output() {
    let answer = r#"{"model":"x","usage":{"input_tokens":9,"output_tokens":0}}"#;
    let server = Server::answering(http(200, "application/json", "", answer));
    let router = Setup::new(&[&server]).start();
    let (path, asked) = ENDPOINTS[2];
    assert_eq!(router.post(path, &asked.replace("50", "0")).status, 200);
    assert_eq!(router.record().reason, None);
}

#[test]
fn a_stream_that_used_nothing_is_charged_at_the_most() {
    let zero = format!("data: {}", chat(r#"{"prompt_tokens":0,"completion_tokens":0}"#));
    charged(CHAT, &[say(), &zero, "data: [DONE]"], Some("zero_usage"));
    let zero = r#"data: {"type":"response.completed","response":{"model":"x","usage":{"input_tokens":0,"output_tokens":0}}}"#;
    charged(RESPONSES, &[zero], Some("zero_usage"));
    let start = r#"data: {"type":"message_start","message":{"model":"x","usage":{"input_tokens":0,"output_tokens":0}}}"#;
    charged(MESSAGES, &[start, r#"data: {"type":"message_stop"}"#], Some("zero_usage"));
}

#[test]
fn a_second_report_that_says_less_is_not_believed() {
    let usage = |input: u64, output: u64| {
        format!("data: {}", chat(&format!(r#"{{"prompt_tokens":{input},"completion_tokens":{output}}}"#)))
    };
    let (much, little) = (usage(20, 10), usage(1, 1));
    charged(CHAT, &[say(), &much, "data: [DONE]"], None);
    charged(CHAT, &[say(), &much, &little, "data: [DONE]"], Some("contradictory_usage"));
    // The last report of a chat comes once, whatever it says.
    charged(CHAT, &[say(), &little, &much, "data: [DONE]"], Some("contradictory_usage"));
    // A report with each chunk is what some servers send; it only grows.
    let growing = |output: u64| {
        format!(
            r#"data: {{"model":"x","choices":[{{"index":0,"delta":{{"content":"a"}}}}],"usage":{{"prompt_tokens":9,"completion_tokens":{output}}}}}"#
        )
    };
    charged(CHAT, &[&growing(1), &growing(2), &usage(9, 2), "data: [DONE]"], None);
    charged(CHAT, &[&growing(2), &growing(1), "data: [DONE]"], Some("contradictory_usage"));
    let start = r#"data: {"type":"message_start","message":{"model":"x","usage":{"input_tokens":20,"output_tokens":8}}}"#;
    let delta = |usage: &str| {
        format!(r#"data: {{"type":"message_delta","delta":{{"stop_reason":"end_turn"}},"usage":{usage}}}"#)
    };
    let stop = r#"data: {"type":"message_stop"}"#;
    // The output at the start of Messages is a guess.
    charged(MESSAGES, &[start, &delta(r#"{"output_tokens":5}"#), stop], None);
    charged(
        MESSAGES,
        &[start, &delta(r#"{"input_tokens":1,"output_tokens":9}"#), stop],
        Some("contradictory_usage"),
    );
    let deltas = [delta(r#"{"output_tokens":9}"#), delta(r#"{"output_tokens":1}"#)];
    charged(MESSAGES, &[start, &deltas[0], &deltas[1], stop], Some("contradictory_usage"));
}

#[test]
fn a_stream_that_goes_on_after_its_end_is_not_believed() {
    let usage = format!("data: {}", chat(r#"{"prompt_tokens":9,"completion_tokens":2}"#));
    charged(CHAT, &[say(), &usage, "data: [DONE]", say()], Some("events_after_end"));
    charged(CHAT, &[say(), &usage, "data: [DONE]", "data: [DONE]"], None);
    let completed = r#"data: {"type":"response.completed","response":{"model":"x","usage":{"input_tokens":9,"output_tokens":2}}}"#;
    charged(RESPONSES, &[completed, "data: [DONE]"], None);
    charged(
        RESPONSES,
        &[completed, r#"data: {"type":"response.output_text.delta","delta":"more"}"#],
        Some("events_after_end"),
    );
    charged(RESPONSES, &[completed, completed], Some("events_after_end"));
    let start = r#"data: {"type":"message_start","message":{"model":"x","usage":{"input_tokens":9,"output_tokens":2}}}"#;
    let stop = r#"data: {"type":"message_stop"}"#;
    let more =
        r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"more"}}"#;
    charged(MESSAGES, &[start, stop], None);
    charged(MESSAGES, &[start, stop, more], Some("events_after_end"));
}
