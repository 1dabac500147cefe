//! Which turn answers, and which requests are beside the conversation.

use herma_core::units::Span;
use herma_dialect::Dialect;
use herma_scripted::{Answer, Attempts, Scripts, count_tokens};
use serde_json::json;

use super::agents;
use super::check;
use super::kit::{DIALECTS, Request, body, scripted};

/// The text of the answer to a whole request.
fn said(script: &str, request: &Request) -> String {
    let request = request.clone().whole();
    check::whole(request.dialect, &body(&request.answer(&scripted(script)))).say
}

const TWO: &str =
    "name: two\nturns:\n  - say: first\n  - { say: second, call: { shell: ls } }\nafterwards: The end.\n";

#[test]
fn a_turn_is_chosen_by_how_often_the_model_spoke() {
    for dialect in DIALECTS {
        let at = |n| said(TWO, &Request::new(dialect).answered(n));
        assert_eq!([at(0), at(1), at(2), at(7)], ["first", "second", "The end.", "The end."], "{dialect}");
        let again = |n| said(&format!("{TWO}repeat: true\n"), &Request::new(dialect).answered(n));
        assert_eq!(
            [again(0), again(1), again(2), again(7)],
            ["first", "second", "first", "second"],
            "{dialect}"
        );
    }
}

#[test]
fn a_request_without_tools_is_beside_the_conversation_of_a_script_with_calls() {
    let request = Request::new(Dialect::Chat).without_tools();
    assert_eq!(said(TWO, &request), "two", "the script's name makes a fine title");
    assert_eq!(said(&format!("{TWO}side: {{ say: A title. }}\n"), &request), "A title.");
    let no_calls = "name: talk\nturns: [{ say: first }]\n";
    assert_eq!(said(no_calls, &request), "first", "a script without calls is for clients without tools too");
    assert_eq!(said(&format!("{no_calls}side: {{ say: A title. }}\n"), &request), "A title.");
}

#[test]
fn a_side_is_also_known_by_its_markers() {
    let script = format!("{TWO}side: {{ say: A title., markers: [Generate a title] }}\n");
    assert_eq!(said(&script, &Request::new(Dialect::Chat).prompt("Generate a title for this.")), "A title.");
    assert_eq!(said(&script, &Request::new(Dialect::Chat).prompt("generate a title")), "first");
}

#[test]
fn scripts_are_chosen_by_run_and_marker_in_order() {
    let script =
        |name: &str, matches: &str| scripted(&format!("name: {name}\n{matches}turns: [{{ say: hi }}]\n"));
    let scripts = Scripts::new(vec![
        script("both", "match: { run: r1, marker: MARK }\n"),
        script("run", "match: { run: r1 }\n"),
        script("marker", "match: { marker: MARK }\n"),
    ])
    .unwrap();
    let name = |run, prompt| {
        let asked = Request::new(Dialect::Responses).prompt(prompt).asked();
        scripts.choose(run, &asked).map(|script| script.name().to_owned())
    };
    assert_eq!(name(Some("r1"), "a MARK b").as_deref(), Some("both"));
    assert_eq!(name(Some("r1"), "plain").as_deref(), Some("run"));
    assert_eq!(name(Some("r2"), "a MARK b").as_deref(), Some("marker"));
    assert_eq!(name(None, "mark"), None);
    let twice = Scripts::new(vec![script("a", ""), script("a", "")]).unwrap_err();
    assert_eq!(twice.to_string(), "two scripts have the name `a`; give one of them another");
}

#[test]
fn a_fault_that_happens_so_many_times_is_over_then() {
    let script =
        scripted("name: flaky\nturns: [{ error: { status: 503, retry_after: 2s }, times: 2, say: Now. }]\n");
    let mut attempts = Attempts::default();
    let request = Request::new(Dialect::Messages).whole();
    let mut ask = |run, prompt: &str| {
        let asked = request.clone().prompt(prompt).asked();
        let attempt = attempts.count(&script, run, &asked);
        match script.answer_again(Dialect::Messages, &asked, attempt) {
            Answer::Error { status, headers, after, .. } => {
                assert!(headers.contains(&("retry-after", "2".to_owned())), "{headers:?}");
                assert_eq!(after, Span(0));
                status
            }
            Answer::Whole { .. } => 200,
            Answer::Stream { .. } => 0,
        }
    };
    assert_eq!([ask(None, "a"), ask(None, "a"), ask(None, "a"), ask(None, "a")], [503, 503, 200, 200]);
    assert_eq!([ask(None, "b"), ask(Some("r"), "a")], [503, 503], "another conversation, another run");
}

#[test]
fn an_output_maximum_is_kept_unless_the_script_counts_itself() {
    let limited = |turn: &str, most: u64| {
        let script = scripted(&format!("name: long\nturns:\n  - {turn}\n"));
        let request = Request::new(Dialect::Messages).whole().with(json!({ "max_tokens": most }));
        check::whole(Dialect::Messages, &body(&request.answer(&script)))
    };
    let short = limited("say: 12345678abcd", 2);
    assert_eq!((short.say.as_str(), short.stop.as_str()), ("12345678", "max_tokens"));
    assert_eq!(short.usage.unwrap()["output_tokens"], 2);
    let fits = limited("say: 12345678", 2);
    assert_eq!((fits.say.as_str(), fits.stop.as_str()), ("12345678", "end_turn"));
    let between = limited("say: 1234567ü", 2);
    assert_eq!(between.say, "1234567", "no character is cut in two");
    let no_room = limited("{ say: 1234567, call: { shell: ls } }", 2);
    assert_eq!((no_room.calls.len(), no_room.stop.as_str()), (0, "max_tokens"));
    let counted = limited("{ say: 12345678abcd, usage: { input: 1, output: 900 } }", 2);
    assert_eq!((counted.say.as_str(), counted.stop.as_str()), ("12345678abcd", "end_turn"));
}

#[test]
fn tokens_are_a_quarter_of_the_bytes() {
    assert_eq!(count_tokens(&Request::new(Dialect::Chat).prompt("12345678").asked()), 2);
    assert_eq!(count_tokens(&Request::new(Dialect::Chat).prompt("123456789").asked()), 3);
    assert_eq!(count_tokens(&Request::new(Dialect::Chat).prompt("").asked()), 1);
}

#[test]
fn calls_that_no_tool_can_do_are_said() {
    let script = scripted("name: odd\nturns: [{ say: First., call: { shell: ls } }]\n");
    let request = agents::claude().tools(vec![super::kit::function("weather", &["city"])], vec![]).whole();
    let said = check::whole(Dialect::Messages, &body(&request.answer(&script)));
    assert_eq!(said.say, "First.\nThe script wants to run `ls`, but the client advertises no tool that can.");
    assert_eq!((said.calls.len(), said.stop.as_str()), (0, "end_turn"));
}

#[test]
fn models_are_those_that_the_script_claims() {
    assert_eq!(scripted(TWO).models(), ["scripted"]);
    let named = scripted("name: m\nmodels: [gpt-5, claude-x]\nturns: [{ say: hi }]\n");
    assert_eq!(named.models(), ["gpt-5", "claude-x"]);
    let both = Scripts::new(vec![named, scripted("name: n\nmodels: [claude-x, z]\nturns: [{ say: hi }]\n")])
        .unwrap();
    assert_eq!(both.models(), ["gpt-5", "claude-x", "z"]);
}
