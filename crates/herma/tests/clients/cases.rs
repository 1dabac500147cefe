//! The cases, and what the router records of each.

use std::iter::repeat_n;

use crate::suite::Report;

/// Every case in order, with its calls: the client unless it is `main`, the API, `stream` for a stream, the status that
/// the client got, how it ended, why, and what was tried before. `8 x` means eight of them.
pub(crate) const CASES: &[(&str, &[&str])] = &[
    ("chat plain", &["chat 200 answered"]),
    ("chat by an alias", &["chat 200 answered"]),
    ("chat with an image inside", &["chat 200 answered"]),
    ("chat stream", &["chat stream 200 answered"]),
    ("chat stream with usage", &["chat stream 200 answered"]),
    ("chat stream by the helper", &["chat stream 200 answered"]),
    ("chat tools", &["2 x chat 200 answered"]),
    ("chat tools streamed", &["2 x chat stream 200 answered"]),
    ("chat many at once", &["8 x chat 200 answered"]),
    ("chat streams at once", &["8 x chat stream 200 answered"]),
    ("responses plain", &["responses 200 answered"]),
    ("responses stream", &["responses stream 200 answered"]),
    ("responses stream by the helper", &["responses stream 200 answered"]),
    ("responses tools", &["2 x responses 200 answered"]),
    ("responses tools streamed", &["2 x responses stream 200 answered"]),
    ("responses many at once", &["8 x responses 200 answered"]),
    ("messages plain", &["messages 200 answered"]),
    ("messages by a bearer token", &["messages 200 answered"]),
    ("messages beta", &["messages 200 answered"]),
    ("messages stream", &["messages stream 200 answered"]),
    ("messages stream by the helper", &["messages stream 200 answered"]),
    ("messages tools", &["2 x messages 200 answered"]),
    ("messages tools streamed", &["2 x messages stream 200 answered"]),
    ("messages many at once", &["8 x messages 200 answered"]),
    ("messages streams at once", &["8 x messages stream 200 answered"]),
    ("count tokens", &["2 x count_tokens 200 answered"]),
    ("models", &[]),
    ("embeddings", &["embeddings 200 answered"]),
    ("completions", &["completions 200 answered"]),
    ("wrong token", &[]),
    (
        "model not admitted",
        &[
            "chat 403 refused (model_mismatch)",
            "chat stream 403 refused (model_mismatch)",
            "responses 403 refused (model_mismatch)",
            "embeddings 403 refused (model_mismatch)",
            "messages 403 refused (model_mismatch)",
            "messages stream 403 refused (model_mismatch)",
        ],
    ),
    ("hosted tools", &["responses 403 refused (reaches_out)", "messages 403 refused (reaches_out)"]),
    (
        "remote addresses",
        &[
            "chat 403 refused (reaches_out)",
            "responses 403 refused (reaches_out)",
            "messages 403 refused (reaches_out)",
        ],
    ),
    ("stored and in the background", &["3 x responses 403 refused (reaches_out)"]),
    ("bad request", &["chat 400 refused (bad_request)", "messages 400 refused (bad_request)"]),
    ("nothing there", &[]),
    (
        "budget exhausted",
        &[
            "poor: chat 200 answered",
            "poor: chat 429 refused (budget_exhausted)",
            "poor: responses stream 429 refused (budget_exhausted)",
            "poor: messages 429 refused (budget_exhausted)",
        ],
    ),
    ("output bounded by the budget", &["thrifty: chat 200 answered"]),
    ("busy twice, chat", &["2 x chat 429 failed (upstream_error)", "chat 200 answered"]),
    ("busy twice, responses", &["2 x responses 429 failed (upstream_error)", "responses 200 answered"]),
    ("busy twice, messages", &["2 x messages 429 failed (upstream_error)", "messages 200 answered"]),
    (
        "busy twice, streamed",
        &["2 x messages stream 429 failed (upstream_error)", "messages stream 200 answered"],
    ),
    ("busy, and not tried again", &["2 x chat 429 failed (upstream_error)", "chat 200 answered"]),
    (
        "overloaded once",
        &[
            "chat 503 failed (upstream_error)",
            "chat 200 answered",
            "messages 503 failed (upstream_error)",
            "messages 200 answered",
        ],
    ),
    (
        "broken once",
        &[
            "chat 500 failed (server_error)",
            "chat 200 answered",
            "messages 500 failed (server_error)",
            "messages 200 answered",
            "responses 500 failed (server_error)",
            "responses 200 answered",
        ],
    ),
    ("the next in the chain", &["chat 200 answered after overloaded"]),
    (
        "too slow",
        &[
            "chat 0 client_left (client_left)",
            "responses stream 0 client_left (client_left)",
            "messages 0 client_left (client_left)",
        ],
    ),
    (
        "too slow, tried again",
        &["2 x chat 0 client_left (client_left)", "2 x messages 0 client_left (client_left)"],
    ),
    (
        "left in the middle",
        &[
            "chat stream 200 client_left (client_left)",
            "responses stream 200 client_left (client_left)",
            "messages stream 200 client_left (client_left)",
        ],
    ),
    (
        "cut streams",
        &[
            "chat stream 200 cut (upstream_cut)",
            "responses stream 200 cut (upstream_cut)",
            "messages stream 200 cut (upstream_cut)",
        ],
    ),
    (
        "cut answers",
        &[
            "chat 200 cut (upstream_cut)",
            "responses 200 cut (upstream_cut)",
            "messages 200 cut (upstream_cut)",
        ],
    ),
    (
        "errors in the middle",
        &[
            "chat stream 200 failed (error_event)",
            "responses stream 200 failed (error_event)",
            "messages stream 200 failed (error_event)",
        ],
    ),
];

/// Every case was carried out, in order, and saw what it should.
pub(crate) fn check_reports(reports: &[Report]) {
    let failed: Vec<String> = reports
        .iter()
        .filter_map(|report| Some(format!("{}\n{}", report.case, report.failed.as_ref()?)))
        .collect();
    assert!(failed.is_empty(), "these cases failed:\n\n{}", failed.join("\n"));
    let carried_out: Vec<&str> = reports.iter().map(|report| &*report.case).collect();
    let wanted: Vec<&str> = CASES.iter().map(|(name, _)| *name).collect();
    assert_eq!(carried_out, wanted);
}

/// The calls of a case, one by one.
pub(crate) fn calls(case: &'static [&'static str]) -> impl Iterator<Item = &'static str> {
    case.iter().flat_map(|line| match line.split_once(" x ") {
        Some((count, line)) => repeat_n(line, count.parse().unwrap()),
        None => repeat_n(*line, 1),
    })
}
