//! Streams: what passes, what is seen, and that the cuts do not matter.

use std::ops::Range;

use herma_dialect::tap::{MAX_EVENT, Passed, StreamSummary, Tap};
use herma_dialect::{Dialect, Usage};
use proptest::prelude::*;

use crate::kit::{DIALECTS, all_golden, golden, run};

const USAGE_CHUNK: &str = r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}"#;

fn whole(tap: Tap, bytes: &[u8]) -> (Vec<u8>, StreamSummary) {
    run(tap, [bytes])
}

fn part(earlier: &[u8], part: Range<usize>) -> Passed {
    Passed::Parts { earlier: earlier.to_vec(), of_chunk: vec![part] }
}

fn hiding() -> Tap {
    Tap::new(Dialect::Chat).hide_usage_chunk()
}

fn ended(model: &str, stop: &str, usage: Option<Usage>, events: u64) -> StreamSummary {
    let (model, stop) = (Some(model.to_owned()), Some(stop.to_owned()));
    StreamSummary { model, stop, usage, events, done: true, ..StreamSummary::default() }
}

#[test]
fn every_golden_stream_is_read() {
    let mini = "gpt-5-mini-2025-08-07";
    let (codex, claude) = ("gpt-5-codex", "claude-sonnet-4-5-20250929");
    let plain = |input, output| Some(Usage { input, output, ..Usage::default() });
    let open_ai = Usage { input: 1212, output: 87, cached_input: 1024, reasoning: 64, ..Usage::default() };
    let deepseek = Usage { input: 50, output: 25, cached_input: 20, ..Usage::default() };
    let responses = Usage { input: 328, output: 52, cached_input: 256, reasoning: 40, ..Usage::default() };
    let cached = Usage {
        input: 17_003,
        output: 120,
        cached_input: 15_000,
        cache_write: 2_000,
        cache_write_long: 1_500,
        reasoning: 0,
    };
    let begun =
        |model: &str, events| StreamSummary { stop: None, done: false, ..ended(model, "", None, events) };
    let failed = StreamSummary { error_event: true, ..ended(codex, "failed", None, 2) };
    let calling = |tool_calls, seen| StreamSummary { tool_calls, ..seen };
    let rows = [
        ("chat/cut.sse", StreamSummary { malformed: true, ..begun(mini, 2) }),
        ("chat/error-in-stream.sse", StreamSummary { error_event: true, ..begun(mini, 2) }),
        ("chat/llama-cpp-timings.sse", ended("local", "stop", plain(9, 2), 5)),
        ("chat/openai-no-usage.sse", ended(mini, "length", None, 4)),
        ("chat/openai-tool-calls.sse", calling(1, ended(mini, "tool_calls", Some(open_ai), 6))),
        ("chat/openai-usage-chunk.sse", ended(mini, "stop", Some(open_ai), 5)),
        ("chat/openrouter-comments.sse", ended("deepseek-chat", "stop", Some(deepseek), 3)),
        ("chat/parallel-tool-calls.sse", calling(3, ended(mini, "tool_calls", plain(40, 12), 11))),
        ("chat/vllm-usage-in-every-chunk.sse", ended("Qwen/Qwen3-Coder-30B", "stop", plain(31, 3), 6)),
        ("responses/completed.sse", ended(codex, "completed", Some(responses), 9)),
        ("responses/error.sse", StreamSummary { error_event: true, ..begun(codex, 2) }),
        ("responses/failed.sse", failed),
        ("responses/function-call.sse", calling(1, ended(codex, "completed", Some(responses), 6))),
        ("responses/incomplete.sse", ended(codex, "max_output_tokens", Some(responses), 2)),
        ("responses/tool-calls.sse", calling(4, ended(codex, "completed", Some(responses), 23))),
        ("messages/cut-after-start.sse", StreamSummary { usage: plain(10, 1), ..begun(claude, 2) }),
        (
            "messages/overloaded.sse",
            StreamSummary { usage: plain(10, 1), error_event: true, ..begun(claude, 2) },
        ),
        ("messages/parallel-tools.sse", calling(2, ended(claude, "tool_use", plain(472, 89), 18))),
        ("messages/text-with-cache.sse", ended(claude, "end_turn", Some(cached), 7)),
        ("messages/thinking-and-tool.sse", calling(1, ended(claude, "tool_use", plain(472, 89), 11))),
    ];
    let mut row = rows.iter();
    for dialect in DIALECTS {
        for file in all_golden(dialect, ".sse") {
            let (name, expected) = row.next().unwrap();
            assert_eq!(*name, file, "every golden stream has its row");
            let bytes = golden(&file);
            let (client, seen) = whole(Tap::new(dialect), &bytes);
            assert_eq!(&seen, expected, "{file}");
            assert_eq!(client, bytes, "{file}");
        }
    }
    assert!(row.next().is_none(), "every row has its golden stream");
}

#[test]
fn any_two_cuts_of_a_golden_stream_change_nothing() {
    for dialect in DIALECTS {
        for file in all_golden(dialect, ".sse") {
            let bytes = golden(&file);
            for tap in [|d| Tap::new(d), |d| Tap::new(d).hide_usage_chunk()] {
                let expected = whole(tap(dialect), &bytes);
                for at in 0..=bytes.len() {
                    let (left, right) = bytes.split_at(at);
                    assert_eq!(run(tap(dialect), [left, right]), expected, "{file} at {at}");
                }
                assert_eq!(run(tap(dialect), bytes.chunks(1)), expected, "{file} byte by byte");
            }
        }
    }
}

#[test]
fn the_usage_chunk_alone_is_hidden_and_counted_all_the_same() {
    for file in
        ["chat/openai-usage-chunk.sse", "chat/vllm-usage-in-every-chunk.sse", "chat/llama-cpp-timings.sse"]
    {
        let bytes = golden(file);
        let text = String::from_utf8(bytes.clone()).unwrap();
        let end = if text.contains("\r\n") { "\r\n\r\n" } else { "\n\n" };
        let kept: Vec<&str> = text
            .split_inclusive(end)
            .filter(|event| !event.contains(r#""choices":[]"#) && !event.contains(r#""choices": []"#))
            .collect();
        let (client, seen) = whole(hiding(), &bytes);
        assert_eq!(String::from_utf8(client).unwrap(), kept.concat(), "{file}");
        assert_eq!(seen, whole(Tap::new(Dialect::Chat), &bytes).1, "{file}");
    }
}

#[test]
fn nothing_else_is_hidden() {
    for data in [
        r#"{"choices":[],"prompt_filter_results":[]}"#,
        r#"{"choices":[],"usage":null}"#,
        r#"{"choices":[{"delta":{}}],"usage":{"prompt_tokens":3,"completion_tokens":4}}"#,
        r#"{"usage":{"prompt_tokens":3,"completion_tokens":4}}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4},"error":{"message":"x"}}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}"#,
        "[DONE]",
        "",
    ] {
        let stream = format!("data: {data}\n\n");
        assert_eq!(whole(hiding(), stream.as_bytes()).0, stream.as_bytes(), "{data}");
    }
    for dialect in [Dialect::Responses, Dialect::Messages] {
        let stream = format!("data: {USAGE_CHUNK}\n\n");
        assert_eq!(whole(Tap::new(dialect).hide_usage_chunk(), stream.as_bytes()).0, stream.as_bytes());
    }
}

#[test]
fn the_usage_chunk_is_hidden_with_any_line_ends_and_also_where_the_stream_stops_in_it() {
    for end in ["\n", "\r\n", "\r"] {
        let hidden = format!("id: 7{end}data: {USAGE_CHUNK}{end}{end}");
        let before = format!(": c{end}{end}data: {{\"choices\":[{{}}]}}{end}{end}");
        let stream = format!("{before}{hidden}data: [DONE]{end}{end}");
        let (client, seen) = whole(hiding(), stream.as_bytes());
        assert_eq!(String::from_utf8(client).unwrap(), format!("{before}data: [DONE]{end}{end}"));
        assert_eq!((seen.events, seen.done), (3, true));
    }
    let two_lines =
        "data: {\"choices\":[],\ndata: \"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4}}\n\n";
    assert_eq!(whole(hiding(), two_lines.as_bytes()).0, b"");
    for open in [format!("data: {USAGE_CHUNK}"), format!("data: {USAGE_CHUNK}\n")] {
        let (client, seen) = whole(hiding(), open.as_bytes());
        assert_eq!((client.len(), seen.usage.is_some()), (0, true));
    }
}

#[test]
fn without_the_option_nothing_is_ever_held_back() {
    for dialect in DIALECTS {
        for file in all_golden(dialect, ".sse") {
            let mut tap = Tap::new(dialect);
            for chunk in golden(&file).chunks(3) {
                assert_eq!(tap.feed(chunk), Passed::All);
            }
            assert_eq!(tap.finish().0, b"");
        }
    }
}

#[test]
fn with_it_an_event_is_held_no_longer_than_it_is_undecided() {
    let mut tap = hiding();
    let start = b"data: {\"id\":\"x\",\"choices\":[";
    assert_eq!(tap.feed(start), Passed::Parts { earlier: vec![], of_chunk: vec![] });
    assert_eq!(tap.feed(b"{"), part(start, 0..1));
    assert_eq!(tap.feed(b"\"delta\":{\"content\":\"a long"), Passed::All);
    assert_eq!(tap.feed(b" text\"}}]}\n\n"), Passed::All);
    assert_eq!(tap.feed(b": comment"), Passed::All);
    assert_eq!(tap.feed(b"\n\ndata: {\"choices\":[{}]}\n\n"), Passed::All);
    let held = format!("data: {USAGE_CHUNK}");
    assert_eq!(tap.feed(held.as_bytes()), Passed::Parts { earlier: vec![], of_chunk: vec![] });
    assert_eq!(tap.feed(b"\n\ndata: [DONE]\n\n"), part(b"", 2..16));
}

#[test]
fn an_event_that_is_too_large_passes_and_is_counted() {
    let filler = "x".repeat(MAX_EVENT);
    let large = format!(
        "data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":1,\"completion_tokens\":1}},\"f\":\"{filler}\"}}\n\n"
    );
    let stream = format!("{large}data: {USAGE_CHUNK}\n\n");
    for size in [stream.len(), 1 << 16, 1000] {
        let (client, seen) = run(hiding(), stream.as_bytes().chunks(size));
        assert_eq!(client, large.as_bytes());
        let usage = Some(Usage { input: 3, output: 4, ..Usage::default() });
        assert_eq!(seen, StreamSummary { usage, events: 2, unparsed: 1, ..StreamSummary::default() });
    }
    let mut tap = hiding();
    let mut passed = false;
    for chunk in stream.as_bytes().chunks(1 << 14).take(66) {
        passed |= tap.feed(chunk) != Passed::Parts { earlier: vec![], of_chunk: vec![] };
    }
    assert!(passed, "no more than an event's limit is held");
}

#[test]
fn the_odd_corners_of_the_standard() {
    let ok = r#"{"choices":[{"finish_reason":"stop"}]}"#;
    for (stream, events, stop) in [
        (format!("\u{feff}data: {ok}\n\n"), 1, true),
        (format!("\u{feff}\u{feff}data: {ok}\n\n"), 0, false),
        (format!("data:{ok}\n\n"), 1, true),
        (format!("data : {ok}\n\n"), 0, false),
        (format!("Data: {ok}\n\n"), 0, false),
        (format!(":data: {ok}\n\n"), 0, false),
        (format!("event: x\nid: 1\nretry: 5\nunknown\n\ndata: {ok}\n\n"), 1, true),
        (format!("data: {ok}\n\n\n\n\n"), 1, true),
        (format!("data: {ok}\r\rdata: {ok}\n\r\n"), 2, true),
        (format!("data: {ok}"), 1, true),
        (format!("databases: x\ndata: {ok}\n\n"), 1, true),
        ("\n\n: only comments\n\n".to_owned(), 0, false),
        ("event: error\n\n".to_owned(), 0, false),
    ] {
        let (client, seen) = whole(Tap::new(Dialect::Chat), stream.as_bytes());
        assert_eq!(client, stream.as_bytes());
        let expected =
            StreamSummary { events, stop: stop.then(|| "stop".to_owned()), ..StreamSummary::default() };
        assert_eq!(seen, expected, "{stream:?}");
    }
    for stream in ["data\n\n", "data: {\n\n", "data: []\n\n", "data: {}\ndata: {}\n\n", "data: {}{}\n\n"] {
        let seen = whole(Tap::new(Dialect::Chat), stream.as_bytes()).1;
        assert_eq!((seen.events, seen.malformed), (1, true), "{stream:?}");
    }
    assert!(whole(Tap::new(Dialect::Chat), b"data: {\"a\":\"\xff\"}\n\n").1.malformed);
    assert!(whole(Tap::new(Dialect::Messages), b"event: error\ndata: oops\n\n").1.error_event);
}

/// Lines of streams, whole and broken, with all line ends.
fn any_stream() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        4 => Just(format!("data: {USAGE_CHUNK}").into_bytes()),
        4 => Just(b"data: {\"choices\":[{\"delta\":{\"content\":\"\xc3\xbc\"}}]}".to_vec()),
        2 => Just(b"data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":1},{}]}}]}".to_vec()),
        2 => Just(b"data: {\"content_block\":{\"type\":\"tool_use\"}}".to_vec()),
        2 => Just(b"data: {\"item\":{\"type\":\"function_call\"},\"type\":\"response.output_item.done\"}".to_vec()),
        2 => Just(b"data: {\"choices\" : [".to_vec()),
        2 => Just(b"data: ],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}".to_vec()),
        1 => Just(b"data: {\"usage\":{\"choices\":[1],\"prompt_tokens\":1,\"completion_tokens\":1},\"choices\":[]}".to_vec()),
        1 => Just(b"data: [DONE]".to_vec()),
        1 => Just(b": comment".to_vec()),
        1 => Just(b"event: error".to_vec()),
        1 => Just(b"data".to_vec()),
        1 => Just(b"\xef\xbb\xbf".to_vec()),
        1 => Just(b"data: {\"error\":{}}".to_vec()),
        6 => Just(Vec::new()),
        1 => proptest::collection::vec(any::<u8>(), 0..12),
    ];
    let end = prop_oneof![4 => Just("\n"), 2 => Just("\r\n"), 2 => Just("\r"), 1 => Just("")];
    let joined = |lines: Vec<(Vec<u8>, &str)>| {
        lines.into_iter().flat_map(|(line, end)| [line, end.as_bytes().to_vec()].concat()).collect()
    };
    proptest::collection::vec((line, end), 0..16).prop_map(joined)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_cuts_do_not_matter(stream in any_stream(), cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..8)) {
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        places.sort_unstable();
        let mut chunks = Vec::new();
        let mut from = 0;
        for place in places {
            chunks.push(&stream[from..place]);
            from = place;
        }
        chunks.push(&stream[from..]);
        for dialect in DIALECTS {
            let (client, seen) = run(Tap::new(dialect), chunks.iter().copied());
            prop_assert_eq!(&client, &stream);
            prop_assert_eq!(&seen, &whole(Tap::new(dialect), &stream).1);
        }
        let cut = run(hiding(), chunks.iter().copied());
        prop_assert_eq!(&cut, &whole(hiding(), &stream));
        prop_assert_eq!(cut, run(hiding(), stream.chunks(1)));
    }
}
