//! `herma models` and `herma usage`.

use serde_json::{Value, json};

use crate::kit::{ANSWERS, Herma, MODEL, ROUTER, fix_and};

#[test]
fn models_shows_what_is_configured_and_admitted_and_no_endpoint() {
    let herma = Herma::with_model(ANSWERS);
    let more = "\n[upstreams.local]\nprovider = \"compatible\"\nurl = \"http://127.0.0.1:7654/secret-endpoint\"\n\n\
                [models.big]\nchain = [\"local/big\"]\n";
    herma.configure(&ROUTER.replace("[prices]", &format!("{more}\n[prices]")), ANSWERS);
    herma.admit_model("nowhere/gone", &[]);
    let shown = herma.run(&["models"]);
    insta::assert_snapshot!(shown.stdout);
    let value = herma.json(&["models", "--json"]);
    assert_eq!((&value["schema"], &value["configured"]), (&json!("herma.models/v1"), &json!(true)));
    let names: Vec<&str> =
        value["models"].as_array().unwrap().iter().map(|row| row["model"].as_str().unwrap()).collect();
    assert_eq!(names, ["local/big", "nowhere/gone", "rehearsal/m"]);
    let m = &value["models"][2];
    assert_eq!(m["admission"], "admitted");
    assert_eq!(m["aliases"], json!(["coder"]));
    assert_eq!(m["price"], json!({ "input": "1.00", "output": "2.00", "cached_input": "0.10" }));
    for text in [shown.stdout, value.to_string()] {
        assert!(!text.contains("7654") && !text.contains("secret-endpoint"), "{text}");
    }
}

#[test]
fn models_reports_problems_of_the_configuration() {
    let herma = Herma::new();
    let none = herma.run(&["models"]);
    assert_eq!(none.stdout, "there is no router.toml in herma's home: no model can be asked\n");
    herma.configure("upstreems = 1\n", ANSWERS);
    let bad = herma.run(&["models"]);
    assert_eq!(bad.code, Some(2), "{bad:#?}");
    assert!(bad.stderr.contains("upstreems"), "{bad:#?}");
}

#[test]
fn usage_adds_up_by_run_engine_model_and_day() {
    let herma = Herma::with_model(ANSWERS);
    assert_eq!(herma.run(&["usage"]).stdout, "no run has asked a model yet\n");
    let mut reports = Vec::new();
    for asks in 1..=2 {
        let steps = vec!["- ask: { prompt: hi, must: true }"; asks];
        let finished = herma.play(&fix_and(&steps), &[MODEL]);
        finished.assert_pass();
        reports.push(finished.report);
    }
    let requests: u64 = reports.iter().map(|report| report.usage.requests).sum();
    let by = |by: &str| herma.json(&["usage", "--by", by, "--json"]);
    let runs = by("run");
    let expected: Vec<_> = reports
        .iter()
        .rev()
        .map(|report| (report.run_id.to_string(), report.usage.requests, report.usage.charged_tokens))
        .collect();
    let sum = |row: &Value, what: &str| {
        row["usage"][what].as_u64().unwrap() + row["probes"][what].as_u64().unwrap()
    };
    let rows = runs["rows"].as_array().unwrap().iter();
    let found: Vec<_> = rows
        .clone()
        .map(|row| {
            (row["key"].as_str().unwrap().to_owned(), sum(row, "requests"), sum(row, "charged_tokens"))
        })
        .collect();
    assert_eq!(found, expected, "what the store says is what the reports say");
    // The engine asked once and twice; everything else was herma itself.
    assert_eq!(rows.map(|row| row["usage"]["requests"].as_u64().unwrap()).collect::<Vec<_>>(), [2, 1]);
    for (what, key) in [
        ("engine", "fake".to_owned()),
        ("model", "rehearsal/m".to_owned()),
        ("day", { reports[0].run_started_at.strftime("%Y-%m-%d").to_string() }),
    ] {
        let value = by(what);
        assert_eq!((&value["schema"], &value["by"]), (&json!("herma.usage/v1"), &json!(what)));
        assert_eq!(value["rows"][0]["key"], key, "{value:#}");
        assert_eq!(sum(&value["total"], "requests"), requests, "{value:#}");
    }
    let shown = herma.run(&["usage", "--by", "model"]).stdout;
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[0].ends_with("calls      in     out      cost"), "{shown}");
    for (line, start) in lines[1..].iter().zip(["rehearsal/m ", "  herma's own ", "total ", "  herma's own "])
    {
        assert!(line.starts_with(start), "{shown}");
    }
}

#[test]
fn an_unknown_cost_is_never_zero() {
    let herma = Herma::with_model(ANSWERS);
    herma.configure(ROUTER.split("[prices]").next().unwrap(), ANSWERS);
    herma.play(&fix_and(&["- ask: { prompt: hi, must: true }"]), &[MODEL]).assert_pass();
    let usage = herma.json(&["usage", "--json"]);
    for part in ["usage", "probes"] {
        assert!(
            usage["rows"][0][part]["usd"].is_null() && usage["total"][part]["usd"].is_null(),
            "{usage:#}"
        );
    }
    for args in [&["usage"][..], &["show"], &["show", "--full"]] {
        let shown = herma.run(args).stdout;
        assert!(shown.contains("unknown") && !shown.contains("$0.00"), "{shown}");
    }
    // A price makes the next one known, and the sum is at least that.
    herma.configure(ROUTER, ANSWERS);
    herma.play(&fix_and(&["- ask: { prompt: hi, must: true }"]), &[MODEL]).assert_pass();
    let shown = herma.run(&["usage", "--by", "engine"]).stdout;
    assert!(shown.contains(">=$0.0"), "{shown}");
}
