//! `herma bench router` and `herma bench sandbox`: that everything is measured, and that nothing of it is left. Not what the figures are.

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
    let entries = std::fs::read_dir(herma.home()).unwrap().flatten().map(|entry| entry.file_name());
    let left: Vec<_> = entries.filter(|name| name != "herma-home").collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Which figures a row has.
fn kinds(rows: &Value, name: &str) -> Vec<String> {
    let row = rows.as_array().unwrap().iter().find(|row| row["name"] == name);
    let row = row.unwrap_or_else(|| panic!("there is no row of {name}: {rows:#}"));
    let keys = row.as_object().unwrap().iter().filter(|(_, value)| value.is_number());
    let mut keys: Vec<String> = keys.map(|(key, _)| key.clone()).collect();
    keys.sort();
    keys
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

#[test]
fn a_quick_look_measures_the_sandbox_and_the_egress_proxy() {
    let herma = Herma::new();
    let ended = herma.run(&["bench", "sandbox", "--quick", "--json"]);
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:#?}");
    let output = ended.json();
    let schema = herma.json(&["schema", "bench-sandbox"]);
    assert_eq!(output["schema"], "herma.bench-sandbox/v1");
    assert_matches(&output, &schema, &["bench", "sandbox"]);
    assert_eq!(output["rounds"], 3);
    let rows = &output["rows"];
    let starts =
        ["bare bwrap", "herma sandbox", "herma sandbox, with its way out", "herma sandbox, all probes"];
    for name in starts {
        assert_eq!(kinds(rows, name), ["p50_ms", "p95_ms"]);
    }
    assert_eq!(kinds(rows, "herma egress"), ["cpu_ms_per_gib", "mib_per_s", "p50_ms", "p95_ms"]);
    for row in rows.as_array().unwrap() {
        assert!(row["p50_ms"].as_f64().unwrap() > 0.0, "{row:#}");
        assert!(row["p95_ms"].as_f64() >= row["p50_ms"].as_f64(), "{row:#}");
    }
    // Who is not there is said to be so, and nobody is both.
    let names = |list: &str| -> Vec<String> {
        let list = output[list].as_array().unwrap();
        list.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    for peer in ["sandbox-runtime", "docker run", "socat"] {
        let said = [names("rows"), names("left_out")].concat();
        assert_eq!(said.iter().filter(|name| *name == peer).count(), 1, "{peer}: {said:?}");
    }
    let targets: Vec<Value> = output["targets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|target| json!([target["name"], target["at_most"]]))
        .collect();
    assert_eq!(
        Value::from(targets),
        json!([
            ["start, to bare bwrap", 2.5],
            ["start with all probes, to sandbox-runtime", 0.25],
            ["start with all probes, to docker run", 0.25],
            ["egress time per byte, to socat", 1.25],
            ["egress CPU per byte, to socat", 1.3],
        ])
    );
    for target in output["targets"].as_array().unwrap() {
        assert_eq!(target["value"].is_null(), target["holds"].is_null(), "{target:#}");
    }
    assert_nothing_is_left(&herma);
}
