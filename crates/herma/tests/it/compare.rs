//! `herma compare`: lanes that run, lanes that cannot, and what is kept of it.

use std::path::PathBuf;
use std::sync::Arc;

use herma_core::comparison::{Comparison, Measured, Share};
use herma_core::proof::{Criterion, Standing};
use herma_core::{Digest, Status};
use herma_harness::{Installation, Settings, SystemClock};
use herma_home::HomePlace;
use herma_ladder::{ComparisonError, Comparisons};

use crate::cli::assert_matches;
use crate::kit::{Ended, HERMA, Herma, environment, names};

const SLUGIFY: &str = "fixture:string-slugify";

fn compare(herma: &Herma, engines: &str, runs: &str) -> (Ended, Comparison) {
    let ended =
        herma.run(&["compare", "--json", "--contract", SLUGIFY, "--engines", engines, "--runs", runs]);
    let comparison = serde_json::from_value(ended.json()).unwrap_or_else(|e| panic!("{e}: {ended:#?}"));
    (ended, comparison)
}

fn installation(herma: &Herma) -> Installation {
    let settings = Settings {
        home: Some(HomePlace::named(herma.home().to_owned())),
        herma: HERMA.into(),
        user_home: herma.at("user"),
        search_path: environment("PATH"),
        secrets: herma_harness::SecretSource::default(),
        docker_host: None,
        client_variables: std::collections::BTreeMap::new(),
        store: herma_harness::StoreVariables::default(),
    };
    Installation::open(settings, Arc::new(SystemClock)).unwrap()
}

/// The comparison without what differs by its nature: names and times.
fn measured(mut comparison: Comparison) -> impl PartialEq + std::fmt::Debug {
    let mut runs = Vec::new();
    for lane in &mut comparison.lanes {
        lane.measures.retain(|measure| measure.criterion != Criterion::Time);
        let ends =
            lane.runs.drain(..).map(|run| (run.contract_id, run.status, run.blockers, run.result_tree));
        runs.extend(ends);
    }
    (comparison.contracts, comparison.repetitions, comparison.lanes, comparison.table, runs)
}

#[test]
fn a_lane_that_cannot_run_is_tried_once_and_listed_with_its_reason() {
    let herma = Herma::new();
    let (ended, comparison) = compare(&herma, "fake,no-such-engine", "2");
    assert_eq!(ended.code, Some(1), "{ended:#?}");
    assert_matches(&ended.json(), &herma.json(&["schema", "comparison"]), &["compare"]);
    let [fake, unknown] = &comparison.lanes[..] else { panic!("{comparison:#?}") };

    assert_eq!((fake.blocked.as_deref(), fake.runs.len()), (None, 2));
    assert!(fake.runs.iter().all(|run| run.status == Status::Pass), "{fake:#?}");
    assert_eq!(fake.measures.iter().map(|m| m.criterion).collect::<Vec<_>>(), Criterion::ALL);
    for criterion in Criterion::DECIDING.into_iter().chain([Criterion::Verification]) {
        let value = fake.measures.iter().find(|m| m.criterion == criterion).unwrap().value;
        assert_eq!(value, Some(Measured::Share(Share { held: 2, of: 2 })), "{criterion:?}");
    }

    let why = unknown.blocked.as_deref().unwrap();
    assert!(why.contains("engine_registered") && why.contains("no-such-engine"), "{why}");
    assert_eq!((unknown.runs.len(), unknown.measures.len()), (1, 0));
    assert_eq!(unknown.runs[0].status, Status::Blocked);
    let report = herma.bundle(unknown.runs[0].run_id).report();
    assert!(!report.engine_started);

    assert_eq!(comparison.table.len(), 2 * Criterion::ALL.len());
    assert!(comparison.table.iter().all(|row| row.standing == Standing::Blocked), "{comparison:#?}");
    assert_eq!(herma.runs().len(), 3);
    for run in comparison.lanes.iter().flat_map(|lane| &lane.runs) {
        herma.assert_verifies(&herma.bundle(run.run_id));
    }
}

#[test]
fn two_comparisons_of_the_same_lane_differ_in_names_and_times_only() {
    let herma = Herma::new();
    let (first, second) = (compare(&herma, "fake", "3"), compare(&herma, "fake", "3"));
    assert_eq!((first.0.code, second.0.code), (Some(0), Some(0)));
    assert_ne!(first.1.id, second.1.id);
    assert_eq!(measured(first.1), measured(second.1));
}

#[test]
fn where_no_lane_can_run_the_comparison_is_kept_and_the_exit_code_says_it() {
    let herma = Herma::new();
    let (ended, comparison) = compare(&herma, "no-such-engine,neither-this", "3");
    assert_eq!(ended.code, Some(3), "{ended:#?}");
    assert_eq!(comparison.lanes.iter().filter(|lane| lane.blocked.is_some()).count(), 2);
    assert_eq!(herma.runs().len(), 2);
    assert!(Comparisons::of(&installation(&herma)).read(comparison.id).is_ok());
}

#[test]
fn a_lane_that_fails_every_run_in_the_same_way_still_ran() {
    let herma = Herma::new();
    let contract = herma.contract(&[("verify", "[\"false\"]")]);
    let args = ["--json", "--engines", "fake", "--runs", "2", "--contract"];
    let args: Vec<_> =
        ["compare"].into_iter().chain(args).map(Into::into).chain([contract.into_os_string()]).collect();
    let ended = herma.run(&args);
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    let comparison: Comparison = serde_json::from_value(ended.json()).unwrap();
    let lane = &comparison.lanes[0];
    assert!(lane.runs.iter().all(|run| run.status == Status::Fail && !run.blockers.is_empty()), "{lane:#?}");
    let share = |criterion| lane.measures.iter().find(|m| m.criterion == criterion).unwrap().value;
    assert_eq!(share(Criterion::Verification), Some(Measured::Share(Share { held: 0, of: 2 })));
    assert_eq!(share(Criterion::FailureClosure), Some(Measured::Share(Share { held: 2, of: 2 })));
    assert_eq!(share(Criterion::Repeatability), Some(Measured::Share(Share { held: 1, of: 1 })));
}

#[test]
fn an_incomparable_selection_is_refused_before_anything_runs() {
    let herma = Herma::new();
    let on_host = herma.contract(&[("destination", "host")]);
    let on_host = on_host.to_str().unwrap();
    let cases: [(&[&str], &str); 6] = [
        (&["--contract", SLUGIFY, "--engines", "fake,fake"], "`fake` is named twice"),
        (&["--contract", SLUGIFY, "--contract", SLUGIFY, "--engines", "fake"], "named twice"),
        (&["--contract", on_host, "--engines", "fake"], "in `sandbox` only"),
        (&["--contract", SLUGIFY, "--engines", "fake", "--runs", "0"], "0"),
        (&["--contract", SLUGIFY, "--engines", ""], "engine"),
        (&["--contract", SLUGIFY, "--engines", "fake", "--output", "missing/out"], "missing does not exist"),
    ];
    for (args, message) in cases {
        let ended = herma.run(&[&["compare"], args].concat());
        assert_eq!(ended.code, Some(2), "{args:?}: {ended:#?}");
        assert!(ended.stderr.contains(message), "{args:?}: {ended:#?}");
    }
    herma.assert_no_run();
}

#[test]
fn a_person_sees_the_same_text_on_the_terminal_and_in_both_files() {
    let herma = Herma::new();
    let args = [
        "compare",
        "--contract",
        SLUGIFY,
        "--engines",
        "fake,no-such-engine",
        "--runs",
        "1",
        "--output",
        "out",
    ];
    let ended = herma.run(&args);
    assert_eq!(ended.code, Some(1), "{ended:#?}");
    let kept = herma.home().join("comparisons");
    let files = names(&kept);
    assert_eq!(names(&herma.at("out")), files);
    let [json, md] = &files[..] else { panic!("{files:?}") };
    for (name, text) in [(json, None), (md, Some(&ended.stdout))] {
        let there = std::fs::read_to_string(kept.join(name)).unwrap();
        assert_eq!(there, std::fs::read_to_string(herma.at("out").join(name)).unwrap());
        assert!(text.is_none_or(|text| *text == there), "{ended:#?}");
    }
    let text = &ended.stdout;
    for criterion in Criterion::ALL {
        let row = text.lines().find(|line| line.starts_with(&format!("| {} ", criterion.as_str()))).unwrap();
        assert_eq!(row.matches('|').count(), 4, "{row}");
        assert!(row.trim_end_matches([' ', '|']).ends_with('–'), "{row}");
    }
    assert!(text.contains("- `no-such-engine`: "), "{text}");
    assert!(text.ends_with("Nothing was switched: the default engine is and stays `fake`.\n"), "{text}");
}

#[test]
fn a_comparison_is_valid_only_with_all_of_its_evidence() {
    let herma = Herma::new();
    let (_, comparison) = compare(&herma, "fake,no-such-engine", "1");
    let opened = installation(&herma);
    let comparisons = Comparisons::of(&opened);
    let latest = || comparisons.latest_for(&"fake".parse().unwrap());
    let broken = |why: &str| match latest() {
        Err(ComparisonError::Broken(_, said)) => assert!(said.contains(why), "{said}"),
        other => panic!("{why}: {other:?}"),
    };
    assert_eq!(latest().unwrap().unwrap().record, comparison);
    assert_eq!(comparisons.read(comparison.id).unwrap().record, comparison);
    assert!(comparisons.latest_for(&"stub".parse().unwrap()).unwrap().is_none());

    // The record itself.
    let [file, _] = comparisons.files(comparison.id);
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(
        &file,
        text.replace("\"matches\"", "\"beats\"").replace("\"repetitions\": 1", "\"repetitions\": 9"),
    )
    .unwrap();
    broken("not signed here");
    std::fs::write(&file, &text).unwrap();
    assert!(latest().is_ok());

    // The bundle of a lane that ran, and the bundle that shows that the other could not.
    for lane in &comparison.lanes {
        let bundle = herma.bundle(lane.runs[0].run_id).dir;
        let events: PathBuf = bundle.join("events.jsonl");
        let there = std::fs::read(&events).unwrap();
        std::fs::write(&events, [&there[..], b" "].concat()).unwrap();
        broken(&lane.runs[0].run_id.to_string());
        std::fs::write(&events, there).unwrap();
        let away = bundle.with_extension("away");
        std::fs::rename(&bundle, &away).unwrap();
        broken(&lane.runs[0].run_id.to_string());
        std::fs::rename(&away, &bundle).unwrap();
        assert!(latest().is_ok());
    }

    // Another herma, another engine, another bundle: signed here, and stale all the same.
    comparisons.keep(Comparison { herma_version: "0.0.0".to_owned(), ..comparison.clone() }).unwrap();
    broken("0.0.0");
    let mut other = comparison.clone();
    other.lanes[0].engine_digest = Some(Digest::of(b"another engine"));
    comparisons.keep(other).unwrap();
    broken("`fake` was");
    let mut other = comparison.clone();
    other.lanes[0].runs[0].attestation = Digest::of(b"another bundle");
    comparisons.keep(other).unwrap();
    broken("not the one that was compared");
    comparisons.keep(comparison).unwrap();
    assert!(latest().is_ok());
}
