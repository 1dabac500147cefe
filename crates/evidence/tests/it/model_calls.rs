//! The model calls in a bundle: one chain of this run, that adds up to what the report says.

use herma_core::model_call::{Attempt, Chain, Charge, Ended, Endpoint, Sums, TokensUsed, Unchained};
use herma_core::report::{ModelToolCalls, PermissionProtocol, ToolUse, Usage};
use herma_core::{Blocker, Digest, Report, Status};
use herma_evidence::layout;
use herma_evidence::verify::{CheckName as C, CheckOutcome};

use crate::sample::{CONTRACT, Sample, pass_on, run_id};

fn contract() -> String {
    CONTRACT.replace("stage: 2", "stage: 2\nmodel: { provider: up, model: m }")
}

fn call(tokens: u64, reason: Option<&str>) -> Unchained {
    let charged = if reason.is_some() {
        Charge::default()
    } else {
        Charge { micro_usd: 3 * tokens, requests: 1, tokens }
    };
    let attempt = Attempt {
        charged,
        model: "m".to_owned(),
        outcome: "answered".to_owned(),
        status: Some(200),
        upstream: "up".to_owned(),
    };
    Unchained {
        answered: Some("m-2026".to_owned()),
        asked: "m".to_owned(),
        attempts: if reason.is_some() { Vec::new() } else { vec![attempt] },
        charged,
        endpoint: Endpoint::Chat,
        ended: if reason.is_some() { Ended::Refused } else { Ended::Answered },
        first_byte_us: Some(10),
        latency_us: 20,
        reason: reason.map(str::to_owned),
        request: Digest::of(b"request"),
        response: Some(Digest::of(b"response")),
        rewrites: Vec::new(),
        settled: true,
        status: 200,
        stop: None,
        stream: false,
        time: "2023-11-14T22:13:20Z".parse().unwrap(),
        tool_calls: if reason.is_some() { 0 } else { 2 },
        used: reason.is_none().then(|| TokensUsed { input: tokens - 1, output: 1, ..TokensUsed::default() }),
    }
}

/// Chained lines of these calls, and what they add up to.
fn chained(run: &str, calls: Vec<Unchained>) -> (Vec<Vec<u8>>, Usage) {
    let (mut chain, mut sums, mut lines) = (Chain::new(run), Sums::default(), Vec::new());
    for (number, call) in (0..).zip(calls) {
        let mut line = Vec::new();
        let placed = chain.place(Some(number), call, &mut line).unwrap();
        chain.go_on(&placed, &line);
        sums.add(&placed);
        line.push(b'\n');
        lines.push(line);
    }
    (lines, Usage::from(&sums))
}

fn three() -> (Vec<Vec<u8>>, Usage) {
    chained(&run_id().to_string(), vec![call(5, None), call(7, None), call(11, None)])
}

fn bundle(lines: &[Vec<u8>], usage: Usage, change: impl FnOnce(&mut Report)) -> Sample {
    pass_on(&contract(), Some(&lines.concat()), |report| {
        report.usage = usage;
        change(report);
    })
}

/// The result of the agreement check for a signed bundle with these calls.
fn said(lines: &[Vec<u8>], usage: Usage, change: impl FnOnce(&mut Report)) -> Result<(), String> {
    let list = bundle(lines, usage, change).verify();
    let failed: Vec<C> = list.failed().map(|check| check.name).collect();
    assert!(failed.iter().all(|name| *name == C::Agreement), "{list:#?}");
    let agreement = list.checks.into_iter().find(|check| check.name == C::Agreement).unwrap();
    if agreement.outcome == CheckOutcome::Failed { Err(agreement.detail) } else { Ok(()) }
}

#[test]
fn calls_that_add_up_are_fine() {
    let (lines, usage) = three();
    assert_eq!((usage.requests, usage.input_tokens, usage.output_tokens), (3, 20, 3));
    assert_eq!(said(&lines, usage, |_| {}), Ok(()));
}

#[test]
fn no_pass_is_beyond_the_limits_of_its_contract() {
    let (lines, usage) = three();
    for (limits, beyond) in
        [("tokens: 23", false), ("tokens: 22", true), ("usd: 0.000069", false), ("usd: 0.000068", true)]
    {
        let contract = contract().replace("stage: 2", &format!("stage: 2\nlimits: {{ {limits} }}"));
        let sample = pass_on(&contract, Some(&lines.concat()), |report| report.usage = usage);
        let failed: Vec<_> =
            sample.verify().failed().map(|check| (check.name, check.detail.clone())).collect();
        let why = "the report is a pass, and more was charged than the contract's limits".to_owned();
        let expected = if beyond { vec![(C::Agreement, why)] } else { Vec::new() };
        assert_eq!(failed, expected, "{limits}");
    }
}

#[test]
fn every_sum_that_is_not_the_reports_is_named() {
    type Lie = fn(&mut Usage);
    let (calls, usage) = three();
    let lies: [(&str, Lie); 6] = [
        ("requests", |u| u.requests += 1),
        ("input tokens", |u| u.input_tokens -= 1),
        ("output tokens", |u| u.output_tokens += 1),
        ("charged tokens", |u| u.charged_tokens -= 1),
        ("millionths of a dollar", |u| u.usd.0 -= 1),
        ("unsettled calls", |u| u.unsettled += 1),
    ];
    for (what, lie) in lies {
        let mut usage = usage;
        lie(&mut usage);
        let error = said(&calls, usage, |_| {}).unwrap_err();
        assert!(error.contains("model-calls.jsonl adds up to") && error.contains(what), "{what}: {error}");
    }
}

/// The tool use of an engine and its model: everything that the responses of three calls ask for, except one at the
/// gates.
fn used() -> ToolUse {
    let model_calls = Some(ModelToolCalls { asked_for: 5, at_gates: 1, unreconciled: 2 });
    let (asking, policy) = (PermissionProtocol::Courtesy, Digest::of(b"policy"));
    ToolUse { asking, policy, asked: 2, denied: 1, unasked: 1, model_calls }
}

#[test]
fn a_lie_about_the_tool_calls_that_the_model_asked_for_is_named() {
    type Lie = fn(&mut ModelToolCalls);
    let (calls, usage) = three();
    assert_eq!(said(&calls, usage, |report| report.tools = Some(used())), Ok(()));
    let lies: [(&str, Lie); 5] = [
        ("adds up to 6 tool calls, the report says 7", |said| said.asked_for += 1),
        ("adds up to 6 tool calls, the report says 5", |said| said.at_gates -= 1),
        ("adds up to 6 tool calls, the report says", |said| said.asked_for = u64::MAX),
        ("differ by 2, the report says 0", |said| said.unreconciled = 0),
        ("differ by 3, the report says 2", |said| (said.asked_for, said.at_gates) = (6, 0)),
    ];
    for (named, lie) in lies {
        let mut tools = used();
        lie(tools.model_calls.as_mut().unwrap());
        let error = said(&calls, usage, |report| report.tools = Some(tools)).unwrap_err();
        assert!(error.contains(named), "{named}: {error}");
    }
    let silent = ToolUse { model_calls: None, ..used() };
    let error = said(&calls, usage, |report| report.tools = Some(silent)).unwrap_err();
    assert!(error.contains("does not say what tool calls"), "{error}");
    let unmodelled = pass_on(CONTRACT, None, |report| report.tools = Some(used())).verify();
    assert_eq!(unmodelled.failed().map(|check| check.name).collect::<Vec<_>>(), [C::Agreement]);
}

#[test]
fn the_page_says_whether_the_tool_calls_reconcile() {
    let shown = |unreconciled| {
        let calls = ModelToolCalls { asked_for: 5, at_gates: 1, unreconciled };
        let sample = pass_on(CONTRACT, None, |_| {});
        let tools = Some(ToolUse { model_calls: Some(calls), ..used() });
        let page = herma_evidence::render_markdown(&Report { tools, ..sample.report });
        page.lines().find(|line| line.starts_with("| tool calls")).unwrap().to_owned()
    };
    let start = "| tool calls | 3 made, 2 checked by hook (advisory), 1 denied; the model requested 5";
    assert_eq!(shown(0), format!("{start} |"));
    assert_eq!(shown(2), format!("{start}, 2 more than were made |"));
    assert_eq!(shown(-1), format!("{start}, 1 fewer than were made |"));
}

#[test]
fn a_removed_a_reordered_a_doubled_and_a_changed_line_are_named() {
    let (lines, usage) = three();
    let cases = [
        ("line 2: ", vec![&lines[0], &lines[2]]),
        ("line 1: ", vec![&lines[1], &lines[0], &lines[2]]),
        ("line 2: ", vec![&lines[0], &lines[0], &lines[1]]),
        // The last one is missed by the sums.
        ("adds up to 2 requests", vec![&lines[0], &lines[1]]),
        ("adds up to 0 requests", vec![]),
    ];
    for (named, lines) in cases {
        let lines: Vec<Vec<u8>> = lines.into_iter().cloned().collect();
        let error = said(&lines, usage, |_| {}).unwrap_err();
        assert!(error.starts_with("model-calls.jsonl") && error.contains(named), "{named}: {error}");
    }
    let mut torn = lines.clone();
    torn[2].pop();
    assert!(said(&torn, usage, |_| {}).unwrap_err().contains("line 3: it is torn"));
    let mut spaced = lines;
    spaced[1].insert(1, b' ');
    assert!(said(&spaced, usage, |_| {}).unwrap_err().contains("line 2: it is not the canonical form"));
}

#[test]
fn a_flipped_bit_of_a_signed_line_is_found() {
    let (lines, usage) = three();
    let all = lines.concat();
    // The chain covers all but the last line, which the sums hold together with the seal. A bundle is made and verified
    // each time: some thirty places in all kinds of values are enough.
    for at in (0..lines[0].len() + lines[1].len()).step_by(43) {
        let mut bytes = all.clone();
        bytes[at] ^= 1;
        assert!(said(&[bytes], usage, |_| {}).is_err(), "byte {at}");
    }
}

#[test]
fn calls_of_another_run_are_found() {
    let (lines, usage) = chained("01890a5d-ac96-774b-bcce-b302099a8057", vec![call(5, None)]);
    assert!(said(&lines, usage, |_| {}).unwrap_err().contains("line 1: it belongs to another run"));
}

#[test]
fn refusals_must_be_among_the_blockers() {
    for (reason, blocker) in
        [("model_mismatch", Blocker::ModelMismatch), ("budget_exhausted", Blocker::BudgetExhausted)]
    {
        let (lines, usage) = chained(&run_id().to_string(), vec![call(5, None), call(1, Some(reason))]);
        assert!(said(&lines, usage, |_| {}).unwrap_err().contains(reason));
        let told = |report: &mut Report| {
            report.blockers.push(blocker.because("it was refused"));
            report.status = Status::Blocked;
        };
        assert_eq!(said(&lines, usage, told), Ok(()));
    }
    let (lines, usage) = chained(&run_id().to_string(), vec![call(1, Some("too_large"))]);
    assert_eq!(said(&lines, usage, |_| {}), Ok(()), "other refusals are the client's own affair");
}

#[test]
fn an_engine_that_may_ask_a_model_leaves_its_calls() {
    let without = |contract: &str, change: fn(&mut Report)| {
        let list = pass_on(contract, None, change).verify();
        list.failed().map(|check| check.name).collect::<Vec<_>>()
    };
    assert_eq!(without(&contract(), |_| {}), [C::Agreement]);
    let (lines, usage) = three();
    let unnamed = pass_on(CONTRACT, Some(&lines.concat()), |report| report.usage = usage);
    assert_eq!(unnamed.verify().failed().map(|check| check.name).collect::<Vec<_>>(), [C::Agreement]);
    let lost = |report: &mut Report| {
        report.usage = Usage { requests: 1, ..Usage::NONE };
        report.blockers.push(Blocker::ArtifactWriteFailure.because("model-calls.jsonl could not be written"));
        report.status = Status::Fail;
        report.not_applicable.insert(layout::MODEL_CALLS.to_owned(), "it could not be written".to_owned());
    };
    assert_eq!(without(&contract(), lost), []);
}
