use proptest::prelude::*;

use super::*;
use crate::budget::LARGEST;

fn refused() -> Unchained {
    Unchained {
        answered: None,
        asked: "gpt-5".to_owned(),
        attempts: Vec::new(),
        charged: Charge::default(),
        endpoint: Endpoint::Chat,
        ended: Ended::Refused,
        first_byte_us: None,
        latency_us: 90,
        reason: Some("model_mismatch".to_owned()),
        request: Digest::of(b"{}"),
        response: None,
        rewrites: Vec::new(),
        settled: true,
        status: 403,
        stop: None,
        stream: false,
        time: "2026-01-01T12:00:00Z".parse().unwrap(),
        tool_calls: 0,
        used: None,
    }
}

fn answered(tokens: u64) -> Unchained {
    let charged = Charge { micro_usd: tokens.saturating_mul(2), requests: 1, tokens };
    let used = TokensUsed { input: tokens, ..TokensUsed::default() };
    let attempt = |upstream: &str, outcome: &str, charged| Attempt {
        charged,
        model: "m".to_owned(),
        outcome: outcome.to_owned(),
        status: None,
        upstream: upstream.to_owned(),
    };
    let attempts = vec![attempt("one", "overloaded", Charge::default()), attempt("two", "answered", charged)];
    Unchained {
        attempts,
        charged,
        ended: Ended::Answered,
        reason: None,
        status: 200,
        tool_calls: 2,
        used: Some(used),
        ..refused()
    }
}

/// A file with these calls.
fn file(calls: &[(Option<u64>, Unchained)]) -> Vec<u8> {
    let (mut chain, mut file) = (Chain::new("a"), Vec::new());
    for (number, call) in calls {
        let mut line = Vec::new();
        let call = chain.place(*number, call.clone(), &mut line).unwrap();
        chain.go_on(&call, &line);
        file.extend(line);
        file.push(b'\n');
    }
    file
}

fn sample() -> Vec<u8> {
    let unsettled = Unchained { settled: false, ..answered(5) };
    file(&[(Some(1), answered(10)), (None, refused()), (Some(0), unsettled), (Some(2), answered(1))])
}

#[test]
fn a_chain_is_followed_and_added_up() {
    let mut seen = Vec::new();
    let sums = read(&sample(), "a", |call| seen.push((call.seq, call.call))).unwrap();
    assert_eq!(seen, [(0, Some(1)), (1, None), (2, Some(0)), (3, Some(2))]);
    assert_eq!((sums.records, sums.refused, sums.unsettled), (4, 1, 1));
    assert_eq!(sums.charged, Charge { micro_usd: 32, requests: 3, tokens: 16 });
    assert_eq!(sums.unsettled_charged, Charge { micro_usd: 10, requests: 1, tokens: 5 });
    assert_eq!(sums.used.input, 16);
    assert_eq!(sums.tool_calls, 6);
    assert_eq!(sums.by_model["one"]["m"], ModelSums { attempts: 3, ..ModelSums::default() });
    assert_eq!(sums.by_model["two"]["m"].charged, sums.charged);
    assert_eq!(sums.by_day.values().copied().collect::<Vec<_>>(), [sums.charged]);
}

#[test]
fn every_flipped_bit_but_in_the_last_line_is_found_there_or_later() {
    let whole = file(&[(Some(0), answered(10)), (None, refused()), (None, refused())]);
    let last = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap();
    for at in 0..=last {
        for bit in [0, 1, 5, 7] {
            let mut changed = whole.clone();
            changed[at] ^= 1 << bit;
            assert!(read(&changed, "a", |_| ()).is_err(), "bit {bit} of byte {at}");
        }
    }
}

#[test]
fn lines_cannot_be_taken_out_doubled_swapped_or_given_to_another_run() {
    let whole = sample();
    let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    for (order, problem) in [
        (vec![1, 2, 3], "line 1: seq is 1, expected 0"),
        (vec![0, 2, 3], "line 2: seq is 2, expected 1"),
        (vec![0, 0], "line 2: seq is 0, expected 1"),
        (vec![0, 2, 1], "line 2: seq is 2, expected 1"),
    ] {
        let changed: Vec<u8> = order.into_iter().flat_map(|at| lines[at].to_vec()).collect();
        assert_eq!(read(&changed, "a", |_| ()).unwrap_err().to_string(), problem);
    }
    assert_eq!(read(&whole, "b", |_| ()).unwrap_err().to_string(), "line 1: it belongs to another run");
    let torn = &whole[..whole.len() - 1];
    assert_eq!(read(torn, "a", |_| ()).unwrap_err().to_string(), "line 4: its end is missing");
}

#[test]
fn no_call_has_two_records() {
    let twice = file(&[(Some(1), answered(1)), (Some(0), answered(1)), (Some(1), answered(1))]);
    assert_eq!(read(&twice, "a", |_| ()).unwrap_err().to_string(), "line 3: call 1 has a record already");
}

#[test]
fn only_the_canonical_spelling_is_taken() {
    let line = file(&[(None, refused())]);
    let line = str::from_utf8(&line).unwrap().trim_end();
    assert!(parse_line(line.as_bytes()).is_ok());
    for (from, to) in [
        (r#""latency_us":90"#, r#""latency_us": 90"#),
        (r#""status":403,"stream":false"#, r#""stream":false,"status":403"#),
        ("gpt-5", "gpt\\u002d5"),
        (r#""latency_us":90"#, r#""latency_us":9007199254740993"#),
        (r#""stream":false"#, r#""stop":null,"stream":false"#),
        (r#""stream":false"#, r#""stream":false,"stream":false"#),
        (r#""stream":false"#, r#""stream":false,"tip":1"#),
        (r#"12:00:00Z""#, r#"12:00:00Z","tool_calls":0"#),
    ] {
        let changed = line.replacen(from, to, 1);
        assert_ne!(changed, line);
        assert!(parse_line(changed.as_bytes()).is_err(), "{changed}");
    }
}

#[test]
fn neither_a_client_nor_an_upstream_decides_how_large_a_record_is() {
    let long = "\u{1}é".repeat(100_000);
    let call = Unchained {
        answered: Some(long.clone()),
        asked: long.clone(),
        stop: Some(long.clone()),
        reason: Some(long),
        tool_calls: u64::MAX,
        ..answered(u64::MAX)
    };
    let file = file(&[(Some(0), call)]);
    assert!(file.len() < 16 << 10, "{}", file.len());
    let sums = read(&file, "a", |call| assert!(call.asked.ends_with('…'))).unwrap();
    assert_eq!((sums.charged.tokens, sums.tool_calls), (LARGEST, LARGEST));
}

proptest! {
    #[test]
    fn what_is_written_is_the_canonical_form(
        asked in any::<String>(),
        stop in proptest::option::of(any::<String>()),
        numbers: [u64; 4],
        first_byte_us: Option<u64>,
        stream: bool,
    ) {
        let [tokens, latency_us, number, nanoseconds] = numbers;
        let time = Timestamp::from_nanosecond(i128::from(nanoseconds)).unwrap();
        let call = Unchained { asked, first_byte_us, latency_us, stop, stream, time, ..answered(tokens) };
        let mut line = Vec::new();
        let call = Chain::new("ü").place(Some(number.min(LARGEST)), call, &mut line).unwrap();
        prop_assert_eq!(&line, &serde_json_canonicalizer::to_vec(&call).unwrap());
        prop_assert_eq!(parse_line(&line), Ok(call));
    }
}

/// Texts with everything that JSON escapes, and numbers up to the largest that it says exactly.
fn word() -> impl Strategy<Value = String> {
    "[ -~\\n\\u{1}\\u{7f}\"\\\\äß\\u{2028}😀]{0,12}"
}

fn count() -> impl Strategy<Value = u64> {
    prop_oneof![0..10_u64, 0..=LARGEST, Just(LARGEST)]
}

fn amount() -> impl Strategy<Value = Charge> {
    (count(), count(), count()).prop_map(|(micro_usd, requests, tokens)| Charge {
        micro_usd,
        requests,
        tokens,
    })
}

fn attempt() -> impl Strategy<Value = Attempt> {
    (amount(), word(), word(), proptest::option::of(any::<u16>()), word()).prop_map(
        |(charged, model, outcome, status, upstream)| Attempt { charged, model, outcome, status, upstream },
    )
}

proptest! {
    #[test]
    fn what_serde_writes_is_the_canonical_form(
        texts in (word(), proptest::option::of(word()), proptest::option::of(word())),
        attempts in proptest::collection::vec(attempt(), 0..3),
        numbers in (proptest::option::of(count()), count(), count(), any::<u16>()),
        flags in (any::<bool>(), any::<bool>(), any::<bool>()),
        rewrites in proptest::collection::vec(word(), 0..3),
        kinds in (0..6_usize, 0..7_usize),
        nanosecond in 0..i64::MAX / 4,
    ) {
        let endpoints = [
            Endpoint::Chat, Endpoint::Completions, Endpoint::CountTokens, Endpoint::Embeddings, Endpoint::Messages,
            Endpoint::Responses,
        ];
        let endings = [
            Ended::Answered, Ended::Uncounted, Ended::Refused, Ended::Failed, Ended::Cut, Ended::ClientLeft,
            Ended::Interrupted,
        ];
        let charged = attempts.first().map(|attempt| attempt.charged).unwrap_or_default();
        let call = ModelCall {
            answered: texts.1.clone(),
            asked: texts.0,
            attempts,
            call: numbers.0,
            charged,
            endpoint: endpoints[kinds.0],
            ended: endings[kinds.1],
            first_byte_us: numbers.0,
            latency_us: numbers.1,
            prev: Digest::of(&numbers.1.to_le_bytes()),
            reason: texts.2.clone(),
            request: Digest::of(&numbers.2.to_le_bytes()),
            response: flags.0.then(|| Digest::of(b"")),
            rewrites,
            run: "a run".to_owned(),
            seq: numbers.2,
            settled: flags.1,
            status: numbers.3,
            stop: texts.2,
            stream: flags.2,
            time: Timestamp::from_nanosecond(i128::from(nanosecond)).unwrap(),
            tool_calls: numbers.2,
            used: flags.0.then_some(TokensUsed { input: numbers.1, ..TokensUsed::default() }),
        };
        let written = serde_json::to_vec(&call).unwrap();
        let canonical = serde_json_canonicalizer::to_vec(&call).unwrap();
        prop_assert_eq!(String::from_utf8(written).unwrap(), String::from_utf8(canonical).unwrap());
    }
}
