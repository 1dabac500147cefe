//! `herma bench router`: that everything is measured, and that nothing of it is left. Not what the figures are.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::cli::assert_matches;
use crate::kit::{Herma, until};

/// The processes of the machine that work below this directory.
fn working_below(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| entry.path().join("cwd").read_link().ok())
        .filter(|at| at.starts_with(dir))
        .collect()
}

fn assert_nothing_is_left(herma: &Herma) {
    until("every process has ended", || working_below(herma.home()).is_empty());
    let left: Vec<_> =
        std::fs::read_dir(herma.home()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Which figures a row has.
fn kinds(rows: &Value, name: &str) -> Vec<String> {
    let row = rows.as_array().unwrap().iter().find(|row| row["name"] == name);
    let row = row.unwrap_or_else(|| panic!("there is no row of {name}: {rows:#}"));
    let keys = row.as_object().unwrap().iter().filter(|(_, value)| value.is_number());
    keys.map(|(key, _)| key.clone()).collect()
}

#[test]
fn a_quick_look_measures_the_router_beside_the_bare_proxy() {
    let herma = Herma::new();
    let ended = herma.run(&["bench", "router", "--quick", "--json"]);
    // In a debug build on a busy machine a target may be missed: that is 1, and every other failure is not.
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:#?}");
    let output = ended.json();
    let schema = herma.json(&["schema", "bench-router"]);
    assert_eq!(output["schema"], "herma.bench-router/v1");
    assert_matches(&output, &schema, &["bench", "router"]);
    let all = [
        "added_first_byte_us",
        "added_p50_us",
        "added_p99_us",
        "cpu_ms_per_1k_chunks",
        "cpu_us_per_request",
        "open_streams",
        "rps",
        "rss_mib",
    ];
    assert_eq!(kinds(&output["rows"], "direct"), ["rps"]);
    assert_eq!(kinds(&output["rows"], "bare hyper proxy"), all);
    assert_eq!(kinds(&output["rows"], "herma router"), all);
    for row in output["rows"].as_array().unwrap().iter().skip(1) {
        assert_eq!(row["open_streams"], 20, "{row:#}");
        assert!(row["rss_mib"].as_f64().unwrap() > 1.0, "{row:#}");
    }
    let targets: Vec<Value> = output["targets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|target| json!([target["name"], target["at_most"]]))
        .collect();
    insta::assert_snapshot!(serde_json::to_string_pretty(&targets).unwrap());
    // It is never said of a target that was not measured that it holds.
    for target in output["targets"].as_array().unwrap() {
        assert_eq!(target["value"].is_null(), target["holds"].is_null(), "{target:#}");
    }
    let left_out = output["left_out"].as_array().unwrap();
    assert!(
        left_out.iter().any(|left| left["name"] == "LiteLLM" && left["why"].is_string()),
        "{left_out:#?}"
    );
    assert_nothing_is_left(&herma);
}

#[test]
fn an_interrupted_measurement_ends_everything_that_it_started() {
    let mut herma = Herma::new();
    herma.wrap(&["timeout", "--signal=INT", "4"]);
    let ended = herma.run(&["bench", "router", "--repeat", "3"]);
    // What `timeout` says of a command that it had to stop.
    assert_eq!(ended.code, Some(124), "{ended:#?}");
    assert!(ended.stderr.contains("was interrupted"), "{ended:#?}");
    assert_nothing_is_left(&herma);
}
