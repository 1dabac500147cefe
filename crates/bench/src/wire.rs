//! Requests and responses, with the sizes and shapes of a coding agent's chat.

use std::time::Duration;

use bytes::Bytes;

/// The model that is asked for, in every contender's configuration.
pub(crate) const MODEL: &str = "bench";
/// The path that is asked.
pub(crate) const PATH: &str = "/v1/chat/completions";
/// The end of a stream.
pub(crate) const DONE: &[u8] = b"data: [DONE]\n\n";

/// Stands in the prompt before the number of chunks that the upstream is to send. Every gateway passes a prompt on as it is.
const CHUNKS: &str = "chunks=";
/// Stands before the microseconds between two chunks.
const PACE: &str = "pace_us=";

/// The shape of a requested stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Chunks before the one with the usage.
    pub(crate) chunks: u32,
    /// Between two chunks; none at all where it is zero.
    pub(crate) pace: Duration,
}

/// A request of about 1 KB: a few turns of a conversation. As a stream of this shape, or whole.
pub(crate) fn request(model: &str, stream: Option<Shape>) -> Bytes {
    let asks = stream.map_or_else(
        || "Answer in one piece.".to_owned(),
        |shape| format!("Answer in pieces: {CHUNKS}{} {PACE}{}", shape.chunks, shape.pace.as_micros()),
    );
    let streaming =
        if stream.is_some() { r#","stream":true,"stream_options":{"include_usage":true}"# } else { "" };
    let system = "You are a careful engineer. You change as little as possible, you run the tests before you say that \
                  something works, and you say plainly what you did not do. Paths are relative to the repository. You \
                  never touch what the contract does not allow, you never push, and you ask before you add a dependency. \
                  Where a test is wrong you say so and leave it as it is. Answer with code first and keep what you say \
                  about it short: two or three sentences are enough for a change of this size";
    let code = r#"fn slug(text: &str) -> String {\n    text.trim().to_lowercase().split_whitespace().collect::<Vec<_>>().join(\"-\")\n}\n"#;
    Bytes::from(format!(
        r#"{{"model":"{model}","messages":[{{"role":"system","content":"{system}"}},{{"role":"user","content":"The function in src/slug.rs keeps punctuation. Show me what it should be."}},{{"role":"assistant","content":"This is what it is now:\n\n{code}"}},{{"role":"user","content":"Good. Now fix it, keep the signature, and add a case for an empty text. {asks}"}}],"max_tokens":256,"temperature":0{streaming}}}"#
    ))
}

/// The stream that a request asks for; none where it asks for a whole response.
pub(crate) fn asked(body: &[u8]) -> Option<Shape> {
    let streams = memchr::memmem::find(body, br#""stream":true"#).is_some()
        || memchr::memmem::find(body, br#""stream": true"#).is_some();
    streams.then(|| Shape {
        chunks: u32::try_from(after(body, CHUNKS).unwrap_or(16)).unwrap_or(16),
        pace: Duration::from_micros(after(body, PACE).unwrap_or(0)),
    })
}

fn after(body: &[u8], word: &str) -> Option<u64> {
    let start = memchr::memmem::find(body, word.as_bytes())? + word.len();
    let digits = body[start..].iter().take_while(|byte| byte.is_ascii_digit()).take(9);
    digits.fold(None, |sum, digit| Some(sum.unwrap_or(0) * 10 + u64::from(digit - b'0')))
}

/// A whole answer of about 1 KB.
pub(crate) fn answer() -> Bytes {
    let text = "Here is the function with its signature kept. Punctuation is dropped, runs of white space become one \
                dash, and an empty text stays empty:\\n\\n```rust\\npub fn slug(text: &str) -> String {\\n    let words = \
                text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());\\n    words.map(str::to_lowercase)\
                .collect::<Vec<_>>().join(\\\"-\\\")\\n}\\n```\\n\\nI added the case for an empty text and ran the tests: \
                all of them pass. I did not touch anything else; the callers in src/main.rs compile as they are, because \
                the signature is the same.";
    Bytes::from(format!(
        r#"{{"id":"chatcmpl-bench00000000000000000000000","object":"chat.completion","created":1754000000,"model":"{MODEL}","choices":[{{"index":0,"message":{{"role":"assistant","content":"{text}","refusal":null}},"logprobs":null,"finish_reason":"stop"}}],"usage":{USAGE},"system_fingerprint":"fp_bench"}}"#
    ))
}

const USAGE: &str = r#"{"prompt_tokens":241,"completion_tokens":128,"total_tokens":369,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}"#;

/// The contents of the chunks of a stream, in turns. There are gateways that take a model for mad that
/// says the same word a hundred times.
const WORDS: [&str; 8] = [" keep", " what", " tests", " say", " about", " every", " empty", " text"];

/// The chunks of a stream, about 200 bytes each.
pub(crate) fn chunks() -> Vec<Bytes> {
    let chunk = |word: &&str| {
        let choices = format!(r#"[{{"index":0,"delta":{{"content":"{word}"}},"finish_reason":null}}]"#);
        event(&choices, "null")
    };
    WORDS.iter().map(chunk).collect()
}

/// The end of a stream: why it stopped, what it used, and that it is done.
pub(crate) fn tail() -> Bytes {
    let stop = event(r#"[{"index":0,"delta":{},"finish_reason":"stop"}]"#, "null");
    let usage = event("[]", USAGE);
    [&stop[..], &usage[..], DONE].concat().into()
}

fn event(choices: &str, usage: &str) -> Bytes {
    Bytes::from(format!(
        "data: {{\"id\":\"chatcmpl-bench00000000000000000000000\",\"object\":\"chat.completion.chunk\",\"created\":1754000000,\
         \"model\":\"{MODEL}\",\"choices\":{choices},\"usage\":{usage}}}\n\n"
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn parse(bytes: &[u8]) -> Value {
        serde_json::from_slice(bytes).unwrap()
    }

    #[test]
    fn the_upstream_reads_the_shape_that_was_asked_for() {
        let shape = Shape { chunks: 400, pace: Duration::from_millis(5) };
        let body = request(MODEL, Some(shape));
        assert_eq!(parse(&body)["stream"], true);
        assert_eq!(asked(&body), Some(shape));
        // A gateway may write the JSON anew.
        let again = serde_json::to_vec_pretty(&parse(&body)).unwrap();
        assert_eq!(asked(&again), Some(shape));
        assert_eq!(asked(&request(MODEL, None)), None);
    }

    #[test]
    fn all_of_it_is_json_of_the_size_of_real_traffic() {
        let (asked, answer) = (request(MODEL, None), answer());
        assert!((900..1_300).contains(&asked.len()), "{}", asked.len());
        assert!((900..1_300).contains(&answer.len()), "{}", answer.len());
        assert!(chunks().iter().all(|chunk| (170..230).contains(&chunk.len())), "{:?}", chunks());
        assert_eq!(parse(&asked)["model"], MODEL);
        assert_eq!(parse(&answer)["usage"]["total_tokens"], 369);
        let tail = tail();
        let events: Vec<&str> = std::str::from_utf8(&tail).unwrap().split("\n\n").collect();
        assert_eq!(parse(&events[1].as_bytes()[6..])["usage"]["completion_tokens"], 128);
        assert_eq!(events[2..], ["data: [DONE]", ""]);
    }
}
