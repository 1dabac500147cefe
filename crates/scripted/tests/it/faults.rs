//! Faults occur as the script defines them.

use herma_core::units::Span;
use herma_dialect::Dialect;
use herma_scripted::{Answer, StreamStep};

use super::kit::{DIALECTS, Request, scripted, streamed};

fn steps(turn: &str, request: &Request) -> (Span, Vec<StreamStep>) {
    match request.answer(&scripted(&format!("name: fault\nturns:\n  - {turn}\n"))) {
        Answer::Stream { first_byte_after, steps, .. } => (first_byte_after, steps),
        other => panic!("{other:?}"),
    }
}

fn bytes(steps: &[StreamStep]) -> Vec<u8> {
    let sent = steps.iter().filter_map(|step| match step {
        StreamStep::Bytes(bytes) => Some(bytes.as_slice()),
        _ => None,
    });
    sent.collect::<Vec<&[u8]>>().concat()
}

#[test]
fn a_cut_stream_is_a_beginning_of_the_whole_one() {
    for dialect in DIALECTS {
        let request = Request::new(dialect);
        let all =
            streamed(&request.answer(&scripted("name: fault\nturns:\n  - say: Something long enough.\n")));
        for cut in [0, 1, 7, 100, 101, all.len() - 1, all.len(), 1 << 20] {
            let (_, steps) =
                steps(&format!("{{ say: Something long enough., cut: {{ after_bytes: {cut} }} }}"), &request);
            // Names are drawn from the script, which is another one here: only the length is the same.
            assert_eq!(bytes(&steps).len(), cut.min(all.len()), "{dialect} {cut}");
            assert_eq!(steps.last(), Some(&StreamStep::Cut));
            assert_eq!(steps.iter().filter(|step| **step == StreamStep::Cut).count(), 1);
            assert!(!steps.contains(&StreamStep::Bytes(Vec::new())));
        }
        let (_, cut) = steps("{ say: Something., cut: { after_events: 1 } }", &request);
        assert_eq!(cut.len(), 2);
    }
}

#[test]
fn a_body_can_be_cut_broken_or_never_come() {
    for dialect in DIALECTS {
        let request = Request::new(dialect).whole();
        let (_, cut) = steps("{ say: Hello., cut: { after_bytes: 10 } }", &request);
        assert_eq!((bytes(&cut).len(), cut.last()), (10, Some(&StreamStep::Cut)));
        let broken = request.answer(&scripted("name: b\nturns: [{ say: Hello., malformed: true }]\n"));
        let Answer::Whole { body, .. } = broken else { panic!("{broken:?}") };
        assert!(serde_json::from_slice::<serde_json::Value>(&body).is_err());
        let (_, never) = steps("{ say: Hello., forever: text }", &request);
        assert_eq!(never, [StreamStep::Forever { every: Span(50), bytes: b" ".to_vec() }]);
    }
}

#[test]
fn a_stream_without_end_goes_on_with_what_it_says() {
    for dialect in DIALECTS {
        let request = Request::new(dialect);
        for (forever, wanted) in [("text", "more "), ("ping", "ping"), ("silence", "")] {
            let (_, steps) = steps(&format!("{{ say: Hello., forever: {forever} }}"), &request);
            let Some(StreamStep::Forever { every, bytes: again }) = steps.last() else { panic!("{steps:?}") };
            assert_eq!(*every, Span(50));
            let again = String::from_utf8(again.clone()).unwrap();
            assert_eq!(again.is_empty(), wanted.is_empty(), "{dialect} {forever}");
            assert!(again.contains(wanted) && (again.is_empty() || again.ends_with("\n\n")), "{again}");
            let before = String::from_utf8(bytes(&steps)).unwrap();
            for end in
                ["[DONE]", "finish_reason\":\"", "message_stop", "content_block_stop", ".done", ".completed"]
            {
                assert!(!before.contains(end), "{dialect}: {end} in {before}");
            }
        }
    }
}

#[test]
fn text_without_end_has_a_block_to_stand_in() {
    let (_, steps) = steps("{ think: Hm., forever: text }", &Request::new(Dialect::Messages));
    let before = String::from_utf8(bytes(&steps)).unwrap();
    assert!(
        before.contains(
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#
        )
    );
    let Some(StreamStep::Forever { bytes, .. }) = steps.last() else { panic!("{steps:?}") };
    assert!(String::from_utf8(bytes.clone()).unwrap().contains(r#""index":1"#));
}

#[test]
fn one_event_is_malformed_and_the_rest_is_not() {
    for dialect in DIALECTS {
        let answer = Request::new(dialect).answer(&scripted(
            "name: m\nturns: [{ say: Something long enough for two., malformed: true }]\n",
        ));
        let events = super::check::events(&streamed(&answer));
        let is_json =
            |data: &str| data == "[DONE]" || serde_json::from_str::<serde_json::Value>(data).is_ok();
        let bad: Vec<usize> = (0..events.len()).filter(|at| !is_json(&events[*at].1)).collect();
        let [at] = bad[..] else { panic!("{dialect}: {bad:?}") };
        assert!(at > 0 && at + 1 < events.len());
    }
}

#[test]
fn time_passes_where_the_script_says() {
    let (first, slow) = steps(
        "{ say: 0123456789, chunk: 5, delay: { first_byte: 2s, between: 30ms } }",
        &Request::new(Dialect::Chat),
    );
    assert_eq!(first, Span(2000));
    let waits = slow.iter().filter(|step| **step == StreamStep::Wait(Span(30))).count();
    let sent = slow.iter().filter(|step| matches!(step, StreamStep::Bytes(_))).count();
    assert_eq!(waits + 1, sent);
    assert!(matches!(slow[0], StreamStep::Bytes(_)), "the first byte has its own wait");
    let (first, fast) = steps("{ say: 0123456789, delay: 250ms }", &Request::new(Dialect::Chat));
    assert_eq!(first, Span(250));
    assert!(fast.iter().all(|step| matches!(step, StreamStep::Bytes(_))));
}
