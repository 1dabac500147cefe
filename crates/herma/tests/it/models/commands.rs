//! `herma models` and `herma usage`.

use serde_json::json;

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
        .map(|report| json!({ "key": report.run_id, "usage": serde_json::to_value(report.usage).unwrap() }))
        .collect();
    assert_eq!(runs["rows"], json!(expected), "what the store says is what the reports say");
    for (what, key) in [
        ("engine", "fake".to_owned()),
        ("model", "rehearsal/m".to_owned()),
        ("day", { reports[0].run_started_at.strftime("%Y-%m-%d").to_string() }),
    ] {
        let value = by(what);
        assert_eq!((&value["schema"], &value["by"]), (&json!("herma.usage/v1"), &json!(what)));
        assert_eq!(value["rows"][0]["key"], key, "{value:#}");
        assert_eq!(value["total"]["requests"], requests, "{value:#}");
    }
    let shown = herma.run(&["usage", "--by", "model"]).stdout;
    assert!(
        shown.starts_with("rehearsal/m ") && shown.lines().last().unwrap().starts_with("total "),
        "{shown}"
    );
}
