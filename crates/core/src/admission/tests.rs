//! Which admission files are valid, and which are not.

use proptest::prelude::*;

use super::*;
use crate::contract::{Action, Pattern};

/// A whole file of each kind, key by key.
fn whole(kind: AdmissionKind) -> Vec<(&'static str, String)> {
    let fields: &[(&str, &str)] = match kind {
        AdmissionKind::Engine => &[
            ("kind", "engine"),
            ("engine", "stub"),
            ("program", "/opt/stub/bin/herma-stub"),
            ("source", "https://example.org/owner/stub"),
            ("pin", "0.1.0"),
            ("retrieval", "git clone https://example.org/owner/stub && cargo build --release"),
            ("license", "Apache-2.0"),
            ("license_resolved", "true"),
            ("digest", "sha256:0000000000000000000000000000000000000000000000000000000000000000"),
            ("identity", "stub 0.1.0"),
            ("review_trigger", "{ digest_change: true }"),
            ("expires_at", "2027-01-31T00:00:00Z"),
        ],
        AdmissionKind::Model => &[
            ("kind", "model"),
            ("provider", "openai"),
            ("model", "gpt-5"),
            ("runtime_provider", "bridge"),
            ("credential_source", "environment"),
            ("network", "public"),
            ("review_trigger", "{ date: 2027-01-31 }"),
            ("expires_at", "2027-01-31T00:00:00Z"),
        ],
        AdmissionKind::Target => &[
            ("kind", "target"),
            ("name", "my-tool"),
            ("path", "/srv/my-tool"),
            ("owner", "Ada Lovelace <ada@example.org>"),
            ("ownership_evidence", "she made the first commit"),
            ("risk_class", "low_risk_noncritical"),
            ("rationale", "nobody depends on it"),
            ("allowed_paths", "[\"src/**\"]"),
            ("forbidden_paths", "[\"src/keys/**\"]"),
            ("forbidden_actions", "[tag]"),
            ("review_trigger", "{ runs: 50 }"),
            ("expires_at", "2027-01-31T00:00:00Z"),
            ("operator_outcome_required", "true"),
        ],
    };
    fields.iter().map(|(key, value)| (*key, (*value).to_owned())).collect()
}

fn yaml(fields: &[(&str, String)]) -> String {
    fields.iter().flat_map(|(key, value)| [key, ": ", value, "\n"]).collect()
}

/// The whole file with one value in place of another.
fn with(kind: AdmissionKind, key: &str, value: &str) -> String {
    let mut fields = whole(kind);
    fields.iter_mut().find(|field| field.0 == key).unwrap().1 = value.to_owned();
    yaml(&fields)
}

fn parse(text: &str) -> Result<AdmissionDraft, String> {
    AdmissionDraft::parse(text.as_bytes()).map_err(|bad| bad.to_string())
}

#[test]
fn a_whole_file_is_complete_and_reads_as_it_is_written() {
    for kind in AdmissionKind::ALL {
        let draft = parse(&yaml(&whole(kind))).unwrap();
        assert_eq!(draft.lacks(), None);
        assert_eq!(draft.id().kind(), kind);
        assert_eq!(parse(&draft.to_yaml()).unwrap(), draft, "{}", draft.to_yaml());
        let keys: Vec<_> = draft.fields().iter().map(|field| field.key).collect();
        assert_eq!(keys, whole(kind).iter().map(|field| field.0).collect::<Vec<_>>());
    }
}

#[test]
fn an_empty_draft_shows_every_key() {
    let draft = AdmissionDraft::new(AdmissionId::parse(AdmissionKind::Target, "my-tool").unwrap());
    insta::assert_snapshot!(draft.to_yaml(), @r#"
    kind: target
    name: "my-tool"
    path:
    owner:
    ownership_evidence:
    risk_class:
    rationale:
    allowed_paths:
    forbidden_paths:
    forbidden_actions:
    review_trigger:
    expires_at:
    operator_outcome_required:
    "#);
    assert_eq!(parse(&draft.to_yaml()).unwrap(), draft);
}

#[test]
fn a_missing_or_empty_field_is_named() {
    /// Keys that may be missing.
    const OPTIONAL: [&str; 2] = ["runtime_provider", "expires_at"];
    for kind in AdmissionKind::ALL {
        let names: &[&str] = match kind {
            AdmissionKind::Engine => &["kind", "engine"],
            AdmissionKind::Model => &["kind", "provider", "model"],
            AdmissionKind::Target => &["kind", "name"],
        };
        for (key, _) in whole(kind) {
            let mut fields = whole(kind);
            fields.retain(|field| field.0 != key);
            let (left_out, emptied) = (parse(&yaml(&fields)), parse(&with(kind, key, "")));
            if names.contains(&key) {
                assert!(left_out.is_err() && emptied.is_err(), "{kind} {key}");
                continue;
            }
            let (left_out, emptied) = (left_out.unwrap(), emptied.unwrap());
            assert_eq!(left_out, emptied, "{kind} {key}");
            let missing = left_out.lacks().map(|lacks| lacks.missing).unwrap_or_default();
            // A target needs its trigger; the others need one of the two.
            let needed =
                !OPTIONAL.contains(&key) && (key != "review_trigger" || kind == AdmissionKind::Target);
            assert_eq!(missing, if needed { vec![key] } else { vec![] }, "{kind} {key}");
        }
        let mut fields = whole(kind);
        fields.retain(|field| !matches!(field.0, "review_trigger" | "expires_at"));
        let lacks = parse(&yaml(&fields)).unwrap().lacks().unwrap();
        assert!(lacks.to_string().contains("review_trigger"), "nothing is admitted for ever: {lacks}");
    }
}

#[test]
fn a_target_that_is_not_low_risk_or_needs_no_outcome_is_never_complete() {
    for (key, value, why) in [
        ("risk_class", "moderate", "`risk_class`: only `low_risk_noncritical` is let in, not `moderate`"),
        ("risk_class", "critical", "`risk_class`: only `low_risk_noncritical` is let in, not `critical`"),
        (
            "operator_outcome_required",
            "false",
            "`operator_outcome_required`: only `true` is let in: a pass is not an acceptance",
        ),
        (
            "review_trigger",
            "{ digest_change: true }",
            "`review_trigger`: `digest_change` is for engines: nothing else has a program",
        ),
    ] {
        let lacks = parse(&with(AdmissionKind::Target, key, value)).unwrap().lacks().unwrap();
        assert_eq!(lacks.to_string(), why);
    }
    for (key, value) in [
        ("risk_class", "low"),
        ("path", "srv/my-tool"),
        ("path", "../my-tool"),
        ("allowed_paths", "[]"),
        ("forbidden_paths", "[\"../x\"]"),
        ("forbidden_actions", "[dance]"),
        ("operator_outcome_required", "yes"),
        ("name", "../my-tool"),
        ("name", "My Tool"),
    ] {
        assert!(parse(&with(AdmissionKind::Target, key, value)).is_err(), "{key}: {value}");
    }
}

#[test]
fn an_unknown_key_is_pointed_at_with_the_nearest_known_one() {
    let text = yaml(&whole(AdmissionKind::Target)).replace("owner:", "ownr:");
    insta::assert_snapshot!(parse(&text).unwrap_err(), @"line 4, column 1: unknown key `ownr`; did you mean `owner`?");
    let text = with(AdmissionKind::Model, "review_trigger", "{ dat: 2027-01-31 }");
    insta::assert_snapshot!(parse(&text).unwrap_err(), @"line 7, column 19: unknown key `dat`; did you mean `date`?");
    insta::assert_snapshot!(parse("engine: stub\nkind: engine\n").unwrap_err(), @"line 1, column 1: the first key is not `kind`; expected `kind: engine`, `kind: model` or `kind: target`; `herma admit` writes a draft to start from");
    insta::assert_snapshot!(parse("kind: motor\n").unwrap_err(), @"line 1, column 7: `motor` is not a kind of admission: expected engine, model or target");
    for text in
        ["", "\n", "kind:", "kind: engine\nkind: engine\nengine: stub\n", "kind: engine\n---\nkind: model\n"]
    {
        assert!(parse(text).is_err(), "{text:?}");
    }
}

/// Every field that holds text, by kind.
fn texts(kind: AdmissionKind) -> Vec<&'static str> {
    let draft = parse(&yaml(&whole(kind))).unwrap();
    draft.fields().iter().filter(|field| field.texts().next().is_some()).map(|field| field.key).collect()
}

/// A value for a field, in the field's own form.
fn placed(key: &str, text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    match key {
        "allowed_paths" | "forbidden_paths" => format!("[{quoted}]"),
        // A path has to begin at the root, to be one at all.
        "path" | "program" => format!("\"/srv/{}\"", text.replace("://", ":/").trim_start_matches('/')),
        _ => quoted,
    }
}

#[test]
fn an_endpoint_is_refused_in_every_field() {
    let endpoints =
        ["https://api.example.org/v1", "api.example.org:8443", "10.1.2.3", "10.1.2.3:80", "localhost", "::1"];
    let mut looked_at = 0;
    for kind in AdmissionKind::ALL {
        for key in texts(kind) {
            for endpoint in endpoints {
                let bad = parse(&with(kind, key, &placed(key, endpoint)));
                if matches!(key, "source" | "retrieval") && endpoint.starts_with("https") {
                    assert!(bad.is_ok(), "{key}: {bad:?}");
                    continue;
                }
                let bad = bad.expect_err(&format!("{kind} {key}: {endpoint}"));
                // Some fields take nothing of that form at all, and point at the line.
                let line = whole(kind).iter().position(|field| field.0 == key).unwrap() + 1;
                assert!(bad.starts_with(&format!("line {line}, ")), "{kind} {key}: {bad}");
                if bad.contains("it holds") {
                    assert!(bad.contains(&format!("`{key}`: it holds ")), "{bad}");
                    looked_at += 1;
                }
            }
        }
    }
    assert!(looked_at > 60, "{looked_at}");
    for url in ["https://ada@example.org/x", "https://example.org/x?key=1", "https://10.0.0.1/x"] {
        for key in ["source", "retrieval"] {
            let bad = parse(&with(AdmissionKind::Engine, key, url)).unwrap_err();
            assert!(bad.contains(&format!("`{key}`: it holds a")), "{bad}");
        }
    }
    let commented = format!("{}# reach it at localhost\n", yaml(&whole(AdmissionKind::Model)));
    insta::assert_snapshot!(parse(&commented).unwrap_err(), @"line 9, column 1: a comment holds `localhost`; an admission says what is let in, not where it is reached");
}

#[test]
fn invisible_characters_are_refused_in_every_field() {
    for kind in AdmissionKind::ALL {
        for key in texts(kind) {
            for hidden in ["a\u{202e}b", "a\u{200b}b", "a\u{7}b", "a\nb"] {
                let text =
                    with(kind, key, &placed(key, hidden).replace('\n', "\\n").replace('\u{7}', "\\u0007"));
                assert!(parse(&text).is_err(), "{kind} {key}: {hidden:?}");
            }
        }
    }
    let commented = format!("{}# all is\u{202e} well\n", yaml(&whole(AdmissionKind::Model)));
    assert!(parse(&commented).unwrap_err().contains("a comment"), "{commented}");
    assert!(parse(&with(AdmissionKind::Engine, "license", &"x".repeat(1_001))).is_err());
    let large = format!("{}# {}\n", yaml(&whole(AdmissionKind::Engine)), "x".repeat(64 << 10));
    assert!(parse(&large).unwrap_err().contains("at most 65536 bytes"));
}

fn line() -> impl Strategy<Value = Option<Line>> {
    prop::option::of("[a-zA-Z0-9äß#'\"\\\\{}&*!|>%@`,._-][ a-zA-Z0-9äß#'\"\\\\{}&*!|>%`,._-]{0,30}[a-z]")
        .prop_map(|text| text.and_then(|text| text.parse().ok()))
}

fn trigger() -> impl Strategy<Value = Option<ReviewTrigger>> {
    prop_oneof![
        Just(None),
        (1i16..3000, 1i8..13, 1i8..29)
            .prop_map(|(y, m, d)| Some(ReviewTrigger::Date(jiff::civil::date(y, m, d)))),
        (1u32..).prop_map(|runs| Some(ReviewTrigger::Runs(runs))),
        "[0-9]{1,3}(\\.[0-9]{1,3}){0,2}".prop_map(|version| Some(ReviewTrigger::HermaVersion(version))),
        Just(Some(ReviewTrigger::DigestChange)),
    ]
}

fn any_draft() -> impl Strategy<Value = AdmissionDraft> {
    let digest = prop::option::of(any::<[u8; 32]>()).prop_map(|bytes| bytes.map(Digest::from_bytes));
    let time =
        prop::option::of(0i64..4_000_000_000).prop_map(|s| s.map(|s| Timestamp::from_second(s).unwrap()));
    let patterns = || {
        prop::option::of(prop::collection::vec("[a-z*?/.#!-]{1,8}", 0..4)).prop_map(|list| {
            list.map(|list| list.into_iter().filter_map(|text| text.parse().ok()).collect::<Vec<Pattern>>())
        })
    };
    let engine = (line(), line(), line(), line(), any::<Option<bool>>(), digest, trigger(), time.clone())
        .prop_map(
            |(source, pin, license, identity, license_resolved, digest, review_trigger, expires_at)| {
                AdmissionDraft::Engine(EngineDraft {
                    program: Some("/opt/a b/c".parse().unwrap()),
                    source,
                    pin,
                    license,
                    license_resolved,
                    digest,
                    identity,
                    review_trigger,
                    expires_at,
                    ..EngineDraft::new("stub".parse().unwrap())
                })
            },
        );
    let target = (line(), line(), patterns(), patterns(), any::<Option<bool>>(), trigger(), time).prop_map(
        |(
            owner,
            rationale,
            allowed,
            forbidden_paths,
            operator_outcome_required,
            review_trigger,
            expires_at,
        )| {
            AdmissionDraft::Target(TargetDraft {
                owner,
                rationale,
                allowed_paths: allowed.and_then(|list| list.try_into().ok()),
                forbidden_paths,
                forbidden_actions: Some(vec![Action::Tag, Action::Push]),
                risk_class: Some(RiskClass::Critical),
                operator_outcome_required,
                review_trigger,
                expires_at,
                ..TargetDraft::new("my-tool".parse().unwrap())
            })
        },
    );
    prop_oneof![engine, target]
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(draft in any_draft()) {
        // A draft that holds what it must not hold is refused both ways.
        match (draft.check(), AdmissionDraft::parse(draft.to_yaml().as_bytes())) {
            (Ok(()), Ok(read)) => prop_assert_eq!(read, draft),
            (Err(_), Err(_)) => {}
            (checked, read) => prop_assert!(false, "{checked:?}, {read:?}:\n{}", draft.to_yaml()),
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = AdmissionDraft::parse(&bytes);
    }

    #[test]
    fn no_change_of_a_file_makes_it_panic(
        which in 0..3_usize,
        at in any::<prop::sample::Index>(),
        bytes in prop::collection::vec(any::<u8>(), 0..4),
    ) {
        let mut text = yaml(&whole(AdmissionKind::ALL[which])).into_bytes();
        let at = at.index(text.len());
        text.splice(at..(at + bytes.len()).min(text.len()), bytes);
        let _ = AdmissionDraft::parse(&text).map(|draft| draft.lacks());
    }
}
