//! Whatever comes back, a probe ends, and never takes it for a model.

use std::io::Write as _;

use herma_dialect::endpoint::Endpoint;
use herma_router::probe::Support;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::kit::{answer, of_server};

fn any_endpoint() -> impl Strategy<Value = Endpoint> {
    prop::sample::select(vec![Endpoint::Chat, Endpoint::Responses, Endpoint::Messages])
}

/// JSON that has the words of answers in wrong places.
fn any_answer() -> impl Strategy<Value = Value> {
    let words = vec![
        "choices",
        "message",
        "delta",
        "content",
        "output",
        "type",
        "text",
        "tool_calls",
        "function",
        "arguments",
        "name",
        "input",
        "usage",
        "prompt_tokens",
        "completion_tokens",
        "input_tokens",
        "output_tokens",
        "reasoning_content",
        "error",
        "status",
        "stop_reason",
        "item",
        "content_block",
        "thinking",
        "tool_use",
        "function_call",
        "output_text",
        "response",
        "response.output_text.delta",
    ];
    let keys = words.clone();
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        prop::sample::select(words).prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        let key = prop::sample::select(keys.clone()).prop_map(str::to_owned);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(key, inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn bytes_in_place_of_http(endpoint in any_endpoint(), bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let found = of_server(endpoint, move |_, stream| {
            let _ = stream.write_all(&bytes);
        });
        prop_assert!(found.is_err());
    }

    #[test]
    fn bytes_in_place_of_an_answer(endpoint in any_endpoint(), bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let found = of_server(endpoint, move |_, stream| answer(stream, "application/json", &bytes));
        prop_assert!(found.is_err());
    }

    #[test]
    fn wrong_answers_in_the_words_of_right_ones(
        endpoint in any_endpoint(), whole in any_answer(), events in prop::collection::vec(any_answer(), 0..8)
    ) {
        let stream_body = events.iter().fold(String::new(), |body, event| format!("{body}data: {event}\n\n"));
        // The small question is answered well, so that the others are asked too.
        let well = match endpoint {
            Endpoint::Chat => json!({"choices": [{"message": {"content": "ready"}}]}),
            Endpoint::Responses => {
                json!({"output": [{"type": "message", "content": [{"type": "output_text", "text": "ready"}]}]})
            }
            _ => json!({"content": [{"type": "text", "text": "ready"}]}),
        };
        let found = of_server(endpoint, move |request, stream| {
            if request.contains("\"tools\"") {
                answer(stream, "application/json", whole.to_string().as_bytes());
            } else if request.contains("\"stream\"") {
                answer(stream, "text/event-stream", stream_body.as_bytes());
            } else {
                answer(stream, "application/json", well.to_string().as_bytes());
            }
        });
        let found = found.unwrap();
        prop_assert!(found.content.is_yes());
        prop_assert!(matches!(found.streaming, Support::No(_)), "none of these ends: {:?}", found);
        prop_assert!(matches!(found.tool_calls, Support::No(_)), "{:?}", found);
    }

    #[test]
    fn a_wrong_answer_to_the_small_question(endpoint in any_endpoint(), whole in any_answer()) {
        let _ = of_server(endpoint, move |_, stream| answer(stream, "application/json", whole.to_string().as_bytes()));
    }
}
