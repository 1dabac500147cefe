//! Rewriting changes what it names, and not one other byte.

use herma_dialect::{Dialect, MaximumKey, Outline, OutputBound, Rewrite, outline};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::kit::DIALECTS;

fn of(dialect: Dialect, body: &str) -> Outline<'_> {
    outline(dialect, body.as_bytes()).unwrap()
}

fn bound(at_most: u64, key: MaximumKey) -> Rewrite<'static> {
    Rewrite { max_output: Some(OutputBound { at_most, key, beside_others: false }), ..Rewrite::default() }
}

#[test]
fn the_model_alone_is_replaced() {
    let rewrite = Rewrite { model: Some("new \"one\""), ..Rewrite::default() };
    for (body, expected) in [
        (r#"{"model":"old"}"#, r#"{"model":"new \"one\""}"#),
        (
            "{ \"x\" : {\"model\":\"old\"},\n\t\"mod\\u0065l\" : \"o\\u006cd\" , \"model2\":1.50e+1}",
            "{ \"x\" : {\"model\":\"old\"},\n\t\"mod\\u0065l\" : \"new \\\"one\\\"\" , \"model2\":1.50e+1}",
        ),
    ] {
        for dialect in DIALECTS {
            assert_eq!(of(dialect, body).rewritten(&rewrite), expected);
        }
    }
    let same = Rewrite { model: Some("old"), ..Rewrite::default() };
    assert!(of(Dialect::Chat, r#"{"model":"o\u006cd"}"#).splices(&same).is_empty());
}

#[test]
fn a_maximum_is_inserted_where_there_is_none_and_clamped_where_it_is_larger() {
    use Dialect::{Chat, Messages, Responses};
    use MaximumKey::{MaxCompletionTokens, MaxOutputTokens, MaxTokens};
    for (dialect, key, body, expected) in [
        (Chat, MaxCompletionTokens, r#"{"model":"a"}"#, r#"{"max_completion_tokens":50,"model":"a"}"#),
        (Chat, MaxTokens, r#"{ "model":"a"}"#, r#"{"max_tokens":50, "model":"a"}"#),
        (Responses, MaxOutputTokens, r#"{"model":"a"}"#, r#"{"max_output_tokens":50,"model":"a"}"#),
        (Messages, MaxTokens, r#"{"model":"a","max_tokens":51}"#, r#"{"model":"a","max_tokens":50}"#),
        (Messages, MaxTokens, r#"{"model":"a","max_tokens":50}"#, r#"{"model":"a","max_tokens":50}"#),
        (Messages, MaxTokens, r#"{"model":"a","max_tokens":0}"#, r#"{"model":"a","max_tokens":0}"#),
        (Chat, MaxTokens, r#"{"max_tokens" : null,"model":"a"}"#, r#"{"max_tokens" : 50,"model":"a"}"#),
        (
            Chat,
            MaxTokens,
            r#"{"max_completion_tokens":null,"model":"a"}"#,
            r#"{"max_tokens":50,"max_completion_tokens":null,"model":"a"}"#,
        ),
        (
            Chat,
            MaxTokens,
            r#"{"max_completion_tokens":20,"model":"a"}"#,
            r#"{"max_completion_tokens":20,"model":"a"}"#,
        ),
        (
            Chat,
            MaxTokens,
            r#"{"max_tokens":900,"max_completion_tokens":20,"n_predict":99999,"model":"a"}"#,
            r#"{"max_tokens":50,"max_completion_tokens":20,"n_predict":50,"model":"a"}"#,
        ),
        (
            Responses,
            MaxOutputTokens,
            r#"{"max_tokens":99,"model":"a"}"#,
            r#"{"max_output_tokens":50,"max_tokens":99,"model":"a"}"#,
        ),
    ] {
        assert_eq!(of(dialect, body).rewritten(&bound(50, key)), expected);
    }
}

#[test]
fn an_upstream_that_knows_one_key_only_gets_that_one() {
    let beside = OutputBound { at_most: 50, key: MaximumKey::MaxTokens, beside_others: true };
    let rewrite = Rewrite { max_output: Some(beside), ..Rewrite::default() };
    for (body, expected) in [
        (
            r#"{"max_completion_tokens":20,"model":"a"}"#,
            r#"{"max_tokens":20,"max_completion_tokens":20,"model":"a"}"#,
        ),
        (
            r#"{"max_completion_tokens":90,"model":"a"}"#,
            r#"{"max_tokens":50,"max_completion_tokens":50,"model":"a"}"#,
        ),
        (r#"{"max_tokens":20,"model":"a"}"#, r#"{"max_tokens":20,"model":"a"}"#),
        (
            r#"{"max_tokens":null,"max_completion_tokens":20,"model":"a"}"#,
            r#"{"max_tokens":20,"max_completion_tokens":20,"model":"a"}"#,
        ),
    ] {
        assert_eq!(of(Dialect::Chat, body).rewritten(&rewrite), expected);
    }
}

#[test]
fn usage_is_asked_for_in_chat_streams_alone() {
    let rewrite = Rewrite { include_usage: true, ..Rewrite::default() };
    for (body, expected) in [
        (
            r#"{"model":"a","stream":true}"#,
            r#"{"stream_options":{"include_usage":true},"model":"a","stream":true}"#,
        ),
        (
            r#"{"model":"a","stream":true,"stream_options":null}"#,
            r#"{"model":"a","stream":true,"stream_options":{"include_usage":true}}"#,
        ),
        (
            r#"{"model":"a","stream":true,"stream_options":{ }}"#,
            r#"{"model":"a","stream":true,"stream_options":{"include_usage":true }}"#,
        ),
        (
            r#"{"stream_options":{"x":1},"model":"a","stream":true}"#,
            r#"{"stream_options":{"include_usage":true,"x":1},"model":"a","stream":true}"#,
        ),
        (
            r#"{"model":"a","stream":true,"stream_options":{"include_usage": false}}"#,
            r#"{"model":"a","stream":true,"stream_options":{"include_usage": true}}"#,
        ),
        (
            r#"{"model":"a","stream":true,"stream_options":{"include_usage":null}}"#,
            r#"{"model":"a","stream":true,"stream_options":{"include_usage":true}}"#,
        ),
    ] {
        assert_eq!(of(Dialect::Chat, body).rewritten(&rewrite), expected);
    }
    for body in [
        r#"{"model":"a"}"#,
        r#"{"model":"a","stream":false}"#,
        r#"{"model":"a","stream":true,"stream_options":{"include_usage":true}}"#,
    ] {
        assert_eq!(of(Dialect::Chat, body).rewritten(&rewrite), body);
    }
    for dialect in [Dialect::Responses, Dialect::Messages] {
        assert_eq!(
            of(dialect, r#"{"model":"a","stream":true}"#).rewritten(&rewrite),
            r#"{"model":"a","stream":true}"#
        );
    }
}

#[test]
fn responses_are_not_stored_unless_requested() {
    let rewrite = Rewrite { not_stored: true, ..Rewrite::default() };
    for (body, expected) in [
        (r#"{"model":"a"}"#, r#"{"store":false,"model":"a"}"#),
        (r#"{"model":"a","store":null}"#, r#"{"model":"a","store":false}"#),
        (r#"{"model":"a","store":true}"#, r#"{"model":"a","store":true}"#),
        (r#"{"model":"a","store":false}"#, r#"{"model":"a","store":false}"#),
    ] {
        assert_eq!(of(Dialect::Responses, body).rewritten(&rewrite), expected);
    }
}

/// A chat body with its keys in any order.
fn any_body() -> impl Strategy<Value = Map<String, Value>> {
    let maybe = |values: Vec<Value>| proptest::option::of(proptest::sample::select(values));
    (
        "[a-zü\"\\\\/.-]{1,12}",
        maybe(vec![json!(true), json!(false), Value::Null]),
        maybe(vec![
            json!({}),
            Value::Null,
            json!({"include_usage": false}),
            json!({"other": [1], "include_usage": true}),
        ]),
        maybe(vec![json!(1), json!(4096), json!(100_000), Value::Null]),
        maybe(vec![json!(7), json!(99_999), Value::Null]),
        proptest::collection::btree_map(
            "x_[a-z]{1,3}",
            "[a-z\"\\\\\n{}\\[\\]:,ü]{0,12}".prop_map(Value::from),
            0..4,
        ),
    )
        .prop_map(|(model, stream, options, max_tokens, max_completion, others)| {
            let known = [
                ("model", Some(model.into())),
                ("stream", stream),
                ("stream_options", options),
                ("max_tokens", max_tokens),
                ("max_completion_tokens", max_completion),
                ("messages", Some(json!([{"role": "user", "content": "\"model\":\"x\""}]))),
            ];
            let known = known.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
            known.chain(others).collect()
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_rewritten_body_differs_in_what_was_named_only(
        body in any_body(), spaced in any::<bool>(), model in "[a-z\"\\\\ü]{1,8}", at_most in 1_u64..200_000,
    ) {
        let value = Value::Object(body);
        let text = if spaced { serde_json::to_string_pretty(&value).unwrap() } else { value.to_string() };
        let outline = of(Dialect::Chat, &text);
        let key = MaximumKey::MaxCompletionTokens;
        let max_output = Some(OutputBound { at_most, key, beside_others: false });
        let rewrite = Rewrite { model: Some(&model), max_output, include_usage: true, not_stored: false };
        let rewritten = outline.rewritten(&rewrite);
        let mut after: Value = serde_json::from_str(&rewritten).unwrap();

        prop_assert_eq!(&after["model"], &model);
        let again = of(Dialect::Chat, &rewritten);
        prop_assert!(again.splices(&rewrite).is_empty(), "a second time changes nothing: {}", rewritten);
        prop_assert!(again.max_output.is_some_and(|maximum| maximum <= at_most));
        prop_assert_eq!(again.max_output, Some(outline.max_output.unwrap_or(at_most).min(at_most)));
        if outline.stream {
            prop_assert_eq!(again.include_usage, Some(true));
        }

        let mut before = value;
        for key in ["model", "max_tokens", "max_completion_tokens"] {
            before.as_object_mut().unwrap().remove(key);
            after.as_object_mut().unwrap().remove(key);
        }
        if outline.stream {
            for value in [&mut before, &mut after] {
                let options = value.as_object_mut().unwrap().remove("stream_options");
                let mut options = options.unwrap_or_default();
                options.as_object_mut().map(|options| options.remove("include_usage"));
                value["options"] = options.get("other").cloned().unwrap_or_default();
            }
        }
        prop_assert_eq!(before, after);

        // Outside of the splices every byte is where it was.
        let (mut old, mut new) = (0, 0);
        for splice in outline.splices(&rewrite) {
            let kept = &text[old..splice.at.start];
            prop_assert_eq!(kept, &rewritten[new..new + kept.len()]);
            new += kept.len() + splice.with.len();
            old = splice.at.end;
        }
        prop_assert_eq!(&text[old..], &rewritten[new..]);
    }
}
