//! Models of every kind, as scripts, in all three APIs.

use std::time::Instant;

use herma_core::Blocker;
use herma_dialect::endpoint::Endpoint;
use herma_router::probe::{ProbeBudget, Support, probe};

use super::kit::{ENDPOINTS, GOOD, Routed, SHORT, Turns, probed, why};

#[test]
fn a_good_model_can_do_everything_and_each_question_is_a_recorded_call() {
    for endpoint in ENDPOINTS {
        let routed = Routed::new(GOOD);
        let found = routed.probe(&[endpoint]).unwrap();
        assert_eq!((&found.content, &found.streaming), (&Support::Yes, &Support::Yes), "{endpoint:?}");
        assert_eq!((&found.tool_calls, found.reasoning_only), (&Support::Yes, false), "{endpoint:?}");
        assert_eq!((&*found.endpoints, found.blocker()), (&[endpoint][..], None));
        assert_eq!(found.model_answered.as_deref(), Some("m-1"));
        let sums = routed.handle.revoke("probe").unwrap().unwrap().sums;
        assert_eq!((sums.records, sums.refused, sums.unsettled), (3, 0, 0), "{endpoint:?}");
        assert_eq!(sums.used, found.used, "{endpoint:?}");
        assert!(found.used.input > 0 && found.used.output > 0);
    }
}

#[test]
fn all_apis_are_asked_in_one_go() {
    let routed = Routed::new(GOOD);
    let found = routed
        .probe(&[Endpoint::Messages, Endpoint::Chat, Endpoint::Embeddings, Endpoint::Responses])
        .unwrap();
    assert_eq!(found.endpoints, ENDPOINTS);
    assert_eq!(found.tool_calls, Support::Yes);
    assert_eq!(routed.handle.revoke("probe").unwrap().unwrap().sums.records, 9);
}

#[test]
fn reasoning_and_text_is_content() {
    let turns = Turns { content: "{ think: What do they want?, say: ready }", ..GOOD };
    for endpoint in ENDPOINTS {
        let found = probed(turns, endpoint).unwrap();
        assert_eq!((found.content, found.reasoning_only), (Support::Yes, false), "{endpoint:?}");
    }
}

#[test]
fn reasoning_alone_is_told_apart_from_nothing() {
    let turns = [
        ("{ think: I wonder what they want. }", true),
        ("{ think: I wonder what they want., stop: length }", true),
        ("{ empty: true, usage: { input: 9, output: 1024 }, stop: length }", true),
        ("{ say: '  ', think: I wonder }", true),
        ("{ say: \"<think>Let me see, there is\", stop: length }", true),
        ("{ empty: true }", false),
        ("{ say: \" \\n\" }", false),
        ("{ refuse: I will not. }", false),
    ];
    for (content, reasoning_only) in turns {
        for endpoint in ENDPOINTS {
            let found = probed(Turns { content, ..GOOD }, endpoint).unwrap();
            let expected =
                if reasoning_only { Blocker::ProviderReasoningOnly } else { Blocker::ProviderUnavailable };
            assert_eq!(found.reasoning_only, reasoning_only, "{endpoint:?} {content}: {found:?}");
            assert_eq!(found.blocker().unwrap().0, expected, "{endpoint:?} {content}");
            assert_eq!(found.streaming, Support::NotAsked, "nothing more is asked: {endpoint:?} {content}");
            assert_eq!(found.tool_calls, Support::NotAsked);
        }
    }
}

#[test]
fn hidden_reasoning_shows_in_the_count() {
    let turns = Turns { content: "{ empty: true, usage: { input: 9, output: 90, reasoning: 90 } }", ..GOOD };
    for endpoint in [Endpoint::Chat, Endpoint::Responses] {
        assert!(probed(turns, endpoint).unwrap().reasoning_only, "{endpoint:?}");
    }
}

#[test]
fn a_small_budget_makes_a_good_model_look_bad_and_the_usual_one_does_not() {
    let thought = "x".repeat(1500);
    let turn: &'static str = format!("{{ think: {thought}, say: ready }}").leak();
    let routed = Routed::new(Turns { content: turn, ..GOOD });
    for endpoint in ENDPOINTS {
        let small = ProbeBudget { output: 64, ..ProbeBudget::default() };
        assert!(probe(&routed.address, &routed.token, "m", &[endpoint], small).unwrap().reasoning_only);
        let usual = probe(&routed.address, &routed.token, "m", &[endpoint], ProbeBudget::default()).unwrap();
        assert_eq!(usual.content, Support::Yes, "{endpoint:?}");
    }
}

#[test]
fn streams_that_end_badly_are_no_streams() {
    let turns = [
        ("{ say: one two three four five six seven, cut: { after_events: 3 } }", "error: the connection to"),
        ("{ say: one two three, malformed: true }", "cannot be read"),
        ("{ say: one two three, error: { status: 529, late: true } }", "ended with an error"),
        ("{ error: { status: 400, message: No streams here. } }", "status 400: No streams here."),
        ("{ error: 429 }", "status 429"),
        ("{ think: one two three }", "reasoning and no content"),
        ("{ empty: true }", "the answer is empty"),
    ];
    for (stream, part) in turns {
        for endpoint in ENDPOINTS {
            let found = probed(Turns { stream, ..GOOD }, endpoint).unwrap();
            assert_eq!((&found.content, &found.tool_calls), (&Support::Yes, &Support::Yes));
            let why = why(&found.streaming);
            assert!(why.contains(part), "{endpoint:?} {stream}: {why}");
            assert_eq!(found.blocker(), None, "content is what a run depends on");
        }
    }
}

#[test]
fn a_stream_that_never_ends_is_left() {
    for forever in ["text", "ping", "silence"] {
        for endpoint in ENDPOINTS {
            let stream = format!("{{ say: And on, forever: {forever}, delay: {{ between: 10ms }} }}").leak();
            let routed = Routed::new(Turns { stream, ..GOOD });
            let started = Instant::now();
            let found = probe(&routed.address, &routed.token, "m", &[endpoint], SHORT).unwrap();
            assert!(
                why(&found.streaming).contains("did not end in time"),
                "{endpoint:?} {forever}: {found:?}"
            );
            assert!(started.elapsed() < SHORT.time * 5);
            let sums = routed.handle.revoke("probe").unwrap().unwrap().sums;
            assert_eq!(
                (sums.records, sums.unsettled),
                (3, 1),
                "the one that was left is charged at the most"
            );
        }
    }
}

#[test]
fn tool_calls_must_be_of_the_tool_and_have_arguments() {
    let turns = [
        ("{ say: I would call it. }", "answered in words"),
        ("{ think: Should I? }", "reasoning and called no tool"),
        ("{ empty: true }", "called no tool"),
        ("{ refuse: No. }", "refused"),
        ("{ call: { tool: { name: teleport, arguments: { command: x } } } }", "not given"),
        ("{ call: { tool: { name: run_command, arguments: { comand: x } } } }", "not those that"),
        ("{ call: { tool: { name: run_command, arguments: { command: 7 } } } }", "not those that"),
        ("{ call: { tool: { name: run_command, text: '[1]' } } }", "not a JSON object"),
        ("{ error: { status: 404, message: No tools. } }", "status 404: No tools."),
        ("{ error: 503 }", "status 503"),
        ("{ say: a, malformed: true }", "not one of this API"),
    ];
    for (tool, part) in turns {
        for endpoint in ENDPOINTS {
            let found = probed(Turns { tool, ..GOOD }, endpoint).unwrap();
            assert_eq!((&found.content, &found.streaming), (&Support::Yes, &Support::Yes));
            let why = why(&found.tool_calls);
            assert!(why.contains(part), "{endpoint:?} {tool}: {why}");
        }
    }
    let tool = "{ call: { tool: { name: run_command, text: '{\"command\": \"ls' } } }";
    for endpoint in ENDPOINTS {
        let found = probed(Turns { tool, ..GOOD }, endpoint).unwrap();
        assert!(
            why(&found.tool_calls).contains("not JSON") || endpoint == Endpoint::Messages,
            "{endpoint:?}: {found:?}"
        );
        assert_ne!(found.tool_calls, Support::Yes);
    }
}

#[test]
fn a_model_that_cannot_be_made_to_call_is_asked_to() {
    let tool = "{ error: 400, times: 1, call: { shell: echo ready } }";
    for endpoint in ENDPOINTS {
        assert_eq!(
            probed(Turns { tool, ..GOOD }, endpoint).unwrap().tool_calls,
            Support::Yes,
            "{endpoint:?}"
        );
    }
}
