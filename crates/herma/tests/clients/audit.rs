//! Compares the router's record with the observations of the client libraries.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use herma_core::model_call::{Chain, Ended, ModelCall, TokensUsed};

use crate::cases::{CASES, calls};
use crate::router::CLIENTS;
use crate::suite::Report;

/// Every call of every client, in the order in which they came in.
pub(crate) struct Audit(Vec<ModelCall>);

impl Audit {
    /// Reads the records of all clients; each chain must be whole.
    pub(crate) fn read(dir: &Path) -> Self {
        let mut all = Vec::new();
        for (client, ..) in CLIENTS {
            let text = fs::read_to_string(dir.join(client).join("model-calls.jsonl")).unwrap();
            let mut chain = Chain::new(client);
            all.extend(text.lines().map(|line| chain.follow(line.as_bytes()).unwrap()));
        }
        all.sort_by_key(|call| (call.time, call.seq));
        Self(all)
    }
}

/// Each call is recorded exactly once, as the case says, with the tokens that its library received.
pub(crate) fn check(reports: &[Report], audit: &Audit) {
    let mut left = &audit.0[..];
    for (case, wanted) in CASES {
        let wanted: Vec<&str> = calls(wanted).collect();
        let (these, rest) = left.split_at(wanted.len().min(left.len()));
        let recorded: Vec<String> = these.iter().map(line).collect();
        let next: Vec<String> = rest.iter().take(3).map(line).collect();
        assert_eq!(
            recorded, wanted,
            "the calls of `{case}`, recorded and wanted; the next ones are {next:#?}"
        );
        left = rest;
    }
    assert!(left.is_empty(), "nobody made these calls: {:#?}", left.iter().map(line).collect::<Vec<_>>());

    audit.0.iter().for_each(check_charge);
    let told: Vec<_> = reports.iter().flat_map(|report| &report.used).collect();
    let used: Vec<_> = audit.0.iter().filter_map(|call| call.used).collect();
    assert_eq!(told.len(), used.len(), "as many answers with usage as the libraries saw");
    for (told, used) in told.into_iter().zip(&used) {
        // A stream whose client did not ask for the usage is counted all the same.
        assert!(used.input > 0);
        if let Some(told) = told {
            check_usage(told, used);
        }
    }
}

/// A call in the words of the table.
fn line(call: &ModelCall) -> String {
    let word = |value: serde_json::Value| value.as_str().unwrap().to_owned();
    let mut line = String::new();
    if call.run != "main" {
        write!(line, "{}: ", call.run).unwrap();
    }
    line += &word(serde_json::to_value(call.endpoint).unwrap());
    line += if call.stream { " stream" } else { "" };
    write!(line, " {} {}", call.status, word(serde_json::to_value(call.ended).unwrap())).unwrap();
    if let Some(reason) = &call.reason {
        write!(line, " ({reason})").unwrap();
    }
    if let Some((_, earlier)) = call.attempts.split_last() {
        for attempt in earlier {
            write!(line, " after {}", attempt.outcome).unwrap();
        }
    }
    line
}

/// Known usage is charged; unknown usage is charged at its maximum; a refused call is free.
fn check_charge(call: &ModelCall) {
    let shown = serde_json::to_string(call).unwrap();
    let attempted: u64 = call.attempts.iter().map(|attempt| attempt.charged.tokens).sum();
    assert_eq!(attempted, call.charged.tokens, "{shown}");
    match (call.ended, call.used) {
        (Ended::Refused, _) => {
            assert!(call.attempts.is_empty() && call.settled && call.charged.requests == 0, "{shown}");
        }
        (_, Some(used)) => {
            assert!(call.settled && call.charged.tokens == used.input + used.output, "{shown}");
        }
        (_, None) if call.settled => assert_eq!(call.charged.tokens, 0, "{shown}"),
        (_, None) => assert!(call.charged.tokens > 500 && call.charged.requests == 1, "{shown}"),
    }
}

fn check_usage(told: &BTreeMap<String, u64>, used: &TokensUsed) {
    let recorded = serde_json::to_value(used).unwrap();
    for (what, tokens) in told {
        assert_eq!(recorded[what], *tokens, "{what}: the library received {told:?}, recorded is {recorded}");
    }
}
