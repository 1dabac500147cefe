//! That everything is measured and nothing is left behind. The figures themselves are not judged.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_types,
    reason = "tests start the program and read its output"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use herma_bench::output::{BenchOutput, BenchRouterOutput, BenchSandboxOutput};
use schemars::{Schema, schema_for};
use serde_json::{Value, json};
use tempfile::TempDir;

const BENCH: &str = env!("CARGO_BIN_EXE_herma-bench");

/// A directory to measure in, and the command line in front of the program.
struct Bench {
    scratch: TempDir,
    wrapper: &'static [&'static str],
}

impl Bench {
    fn new() -> Self {
        let herma = Path::new(BENCH).with_file_name("herma");
        assert!(herma.exists(), "build it first: cargo build -p herma");
        Self { scratch: tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap(), wrapper: &[] }
    }

    fn run(&self, args: &[&str]) -> Output {
        let words: Vec<&str> = [self.wrapper, &[BENCH], args].concat();
        Command::new(words[0]).args(&words[1..]).arg("--scratch").arg(self.scratch.path()).output().unwrap()
    }

    /// The JSON of a quick look. A debug build on a busy machine may miss a target: that is 1; other failures are not.
    fn quick(&self, benchmark: &str) -> Value {
        let output = self.run(&[benchmark, "--quick", "--json"]);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{output:#?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn assert_nothing_is_left(&self) {
        let deadline = Instant::now() + Duration::from_mins(1);
        while !working_below(self.scratch.path()).is_empty() {
            assert!(Instant::now() < deadline, "{:?} still run", working_below(self.scratch.path()));
            std::thread::sleep(Duration::from_millis(20));
        }
        let left: Vec<_> = fs::read_dir(self.scratch.path()).unwrap().flatten().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// The processes of the machine that work below this directory.
fn working_below(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| entry.path().join("cwd").read_link().ok())
        .filter(|at| at.starts_with(dir))
        .collect()
}

/// Required keys are present, and no key is unknown to the schema.
fn assert_matches(value: &Value, schema: &Schema) {
    let schema = schema.as_value();
    let keys: Vec<&String> = value.as_object().unwrap().keys().collect();
    for key in schema["required"].as_array().unwrap() {
        assert!(keys.iter().any(|there| key == there.as_str()), "{key} is missing");
    }
    for key in keys {
        assert!(schema["properties"].as_object().unwrap().contains_key(key), "`{key}` is not in the schema");
    }
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
    let bench = Bench::new();
    let output = bench.quick("router");
    assert_eq!(output["schema"], "herma.bench-router/v1");
    assert_matches(&output, &schema_for!(BenchRouterOutput));
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
    // A target that was not measured never holds.
    for target in output["targets"].as_array().unwrap() {
        assert_eq!(target["value"].is_null(), target["holds"].is_null(), "{target:#}");
    }
    let left_out = output["left_out"].as_array().unwrap();
    assert!(
        left_out.iter().any(|left| left["name"] == "LiteLLM" && left["why"].is_string()),
        "{left_out:#?}"
    );
    bench.assert_nothing_is_left();
}

#[test]
fn an_interrupted_measurement_ends_everything_that_it_started() {
    let bench = Bench { wrapper: &["timeout", "--signal=INT", "4"], ..Bench::new() };
    let output = bench.run(&["router", "--repeat", "3"]);
    // The exit code of `timeout` for a command that it stopped.
    assert_eq!(output.status.code(), Some(124), "{output:#?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("was interrupted"), "{output:#?}");
    bench.assert_nothing_is_left();
}

#[test]
fn a_quick_look_measures_the_sandbox_and_the_egress_proxy() {
    let bench = Bench::new();
    let output = bench.quick("sandbox");
    assert_eq!(output["schema"], "herma.bench-sandbox/v1");
    assert_matches(&output, &schema_for!(BenchSandboxOutput));
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
    // Each peer is either measured or listed as left out.
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
    bench.assert_nothing_is_left();
}

#[test]
fn a_quick_look_measures_runs_and_verification() {
    let bench = Bench::new();
    let output = bench.quick("harness");
    assert_eq!(output["schema"], "herma.bench/v1");
    assert_matches(&output, &schema_for!(BenchOutput));
    let rows: Vec<Value> =
        output["rows"].as_array().unwrap().iter().map(|row| json!([row["name"], row["limit"]])).collect();
    let expected = json!([
        ["governed run", 3.0],
        ["governed run", 1.6],
        ["verify, small", null],
        ["verify, 64 MiB", 1.5],
    ]);
    assert_eq!(Value::from(rows), expected);
    bench.assert_nothing_is_left();
}

#[test]
fn a_quick_look_measures_environments() {
    let bench = Bench::new();
    let output = bench.quick("environment");
    assert_matches(&output, &schema_for!(BenchOutput));
    let rows = output["rows"].as_array().unwrap();
    let names: Vec<Value> = rows.iter().map(|row| json!([row["name"], row["files"]])).collect();
    assert_eq!(
        Value::from(names),
        json!([["run, to an empty environment", 2000], ["copy, to `cp -a`", 2000]])
    );
    assert_eq!(rows[1]["limit"], 1.2);
    for row in rows {
        assert!(row["ratio"].as_f64().unwrap() > 0.0, "{row:#}");
    }
    bench.assert_nothing_is_left();
}
