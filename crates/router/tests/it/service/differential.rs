//! However an upstream's bytes are cut on their way, the client gets the same and the router counts the same.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use herma_core::Digest;
use herma_core::model_call::{Charge, Ended, TokensUsed};
use herma_dialect::Dialect;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::kit::{Router, STREAMS, Setup};
use super::server::{Do, STREAM, Server, chunk};
use crate::kit::{all_golden, golden};

/// How the bytes of a stream come.
#[derive(Clone, Debug)]
struct Cuts {
    /// The sizes of the chunks; over and over.
    sizes: Vec<usize>,
    /// After which of them there is a pause.
    pauses: Vec<bool>,
    /// Whether the chunks of HTTP are cut again on their way.
    torn: bool,
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq)]
struct Came {
    status: u16,
    body: Vec<u8>,
    ended: Ended,
    used: Option<TokensUsed>,
    charged: Charge,
    response: Option<Digest>,
    answered: Option<String>,
    stop: Option<String>,
    tool_calls: u64,
}

fn plan(body: &[u8], cuts: &Cuts) -> Vec<Do> {
    let mut steps = vec![Do::Send(STREAM.as_bytes().to_vec())];
    let (mut rest, mut at) = (body, 0);
    while !rest.is_empty() {
        let (part, left) = rest.split_at(cuts.sizes[at % cuts.sizes.len()].min(rest.len()));
        let bytes = chunk(part);
        if cuts.torn {
            let (first, second) = bytes.split_at(bytes.len() / 2);
            steps.extend([Do::Send(first.to_vec()), Do::Send(second.to_vec())]);
        } else {
            steps.push(Do::Send(bytes));
        }
        if at < 40 && cuts.pauses[at % cuts.pauses.len()] {
            steps.push(Do::Pause(Duration::from_micros(500)));
        }
        (rest, at) = (left, at + 1);
    }
    steps.push(Do::Send(b"0\r\n\r\n".to_vec()));
    steps
}

/// A router whose upstream does what was said last.
struct Bench {
    router: Router,
    next: Arc<Mutex<Vec<Do>>>,
    calls: usize,
    _server: Server,
}

impl Bench {
    fn new() -> Self {
        let next = Arc::new(Mutex::new(Vec::new()));
        let steps = next.clone();
        let server = Server::new(move |_, _| steps.lock().unwrap().clone());
        let router = Setup::new(&[&server]).start();
        Self { router, next, calls: 0, _server: server }
    }

    fn came(&mut self, (path, body): (&str, &str), steps: Vec<Do>) -> Came {
        *self.next.lock().unwrap() = steps;
        let reply = self.router.post(path, body);
        assert!(reply.is_whole);
        self.calls += 1;
        let record = self.router.records(self.calls).pop().unwrap();
        assert_eq!(record.response, Some(Digest::of(&reply.body)), "the digest is of what the client got");
        Came {
            status: reply.status,
            body: reply.body,
            ended: record.ended,
            used: record.used,
            charged: record.charged,
            response: record.response,
            answered: record.answered,
            stop: record.stop,
            tool_calls: record.tool_calls,
        }
    }
}

#[test]
fn any_cut_of_a_stream_gives_the_same_bytes_and_the_same_count() {
    let dialects = [Dialect::Chat, Dialect::Responses, Dialect::Messages];
    let streams: Vec<(usize, String)> = dialects
        .into_iter()
        .enumerate()
        .flat_map(|(at, dialect)| all_golden(dialect, ".sse").into_iter().map(move |name| (at, name)))
        .collect();
    let cuts = (
        prop::collection::vec(prop_oneof![1..8_usize, 8..200_usize, 200..4000_usize], 1..6),
        prop::collection::vec(any::<bool>(), 1..5),
        any::<bool>(),
    );
    let cuts = cuts.prop_map(|(sizes, pauses, torn)| Cuts { sizes, pauses, torn });
    let mut bench = Bench::new();
    let (mut counted, mut calling) = (0, 0);
    for (at, name) in streams {
        let body = golden(&name);
        let ask = STREAMS[at];
        // A client that wants the usage of a chat, and one that must not see it.
        let with_usage = ask.1.replacen('{', r#"{"stream_options":{"include_usage":true},"#, 1);
        let asks = if at == 0 { vec![ask.1.to_owned(), with_usage] } else { vec![ask.1.to_owned()] };
        for asked in asks {
            let whole = bench.came(
                (ask.0, &asked),
                plan(&body, &Cuts { sizes: vec![body.len()], pauses: vec![false], torn: false }),
            );
            counted += usize::from(whole.used.is_some());
            calling += usize::from(whole.tool_calls > 0);
            let mut runner =
                TestRunner::new(Config { cases: 6, failure_persistence: None, ..Config::default() });
            let bench = std::cell::RefCell::new(&mut bench);
            runner
                .run(&cuts, |cuts| {
                    let came = bench.borrow_mut().came((ask.0, &asked), plan(&body, &cuts));
                    prop_assert_eq!(&came, &whole, "{}", name);
                    Ok(())
                })
                .unwrap_or_else(|e| panic!("{name}: {e}"));
        }
    }
    assert!(counted >= 10, "only {counted} streams were counted");
    assert!(calling >= 6, "only {calling} streams asked for a tool");
}
