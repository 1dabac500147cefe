//! No record, approval, proof or setting ever leads to a run of an engine that was not named.
//!
//! The compiler checks that no type allows another one: the default is a constant, an `Order` always has its
//! engine, and `runtime_default_activation` has a type with one value.

mod world;

use std::fs;

use herma_core::approval::Answer;
use herma_core::comparison::{Comparison, ComparisonId};
use herma_core::decision::Decision;
use herma_core::engine::{DestinationKind, EngineName};
use herma_core::proof::Proof;
use herma_core::report::NeverActivated;
use herma_core::{Report, Stage, Status};
use herma_harness::Finished;
use herma_trust::verify_bundle;
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use world::{Engine, Event, Forgery, World, a_comparison, a_proof, event, now, open};

/// The default, known when this is compiled.
const _: () = assert!(matches!(EngineName::DEFAULT.as_bytes(), b"fake"));

/// The run is one of the engine that was named, in every file that names it, or of the default where none was named.
fn assert_named(world: &World, expected: &EngineName, finished: &Finished) {
    let report = &finished.report;
    assert_eq!(report.engine, *expected);
    let read = |name: &str| fs::read_to_string(finished.bundle.join(name)).unwrap();
    let written: Value = serde_json::from_str(&read("report.json")).unwrap();
    assert_eq!(written["engine"], expected.as_str());
    assert_eq!(written["runtime_default_activation"], false);
    let decision: Decision = serde_json::from_str(&read("decision.json")).unwrap();
    assert!(decision.selected_engine.is_none_or(|engine| engine == *expected));
    assert!(decision.denied_engines.keys().all(|engine| engine == expected.as_str()));
    let events = read("events.jsonl");
    let started: Value = serde_json::from_str(events.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&started["type"], &started["data"]["engine"]),
        (&"run.started".into(), &expected.as_str().into())
    );
    let installation = open(&world.temp).unwrap();
    let run = report.run_id.to_string();
    let rows = installation.store.call(|store| store.find_runs(&run)).unwrap();
    assert!(rows.len() == 1 && rows[0].engine == *expected, "{rows:#?}");
    let checks = verify_bundle(&finished.bundle, &installation.trust(), None, None);
    assert!(checks.ok(), "{checks:#?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_history_leads_to_an_engine_that_was_not_named(events in prop::collection::vec(event(), 1..20)) {
        let mut world = World::new();
        for event in &events {
            if let Some((expected, finished)) = world.meet(event) {
                assert_named(&world, &expected, &finished);
            }
        }
        // After any history: an order without an engine gets the default, and it may start.
        let settings = world.home().join("settings.yaml");
        if open(&world.temp).is_none() {
            fs::remove_file(settings).unwrap();
        }
        let last = Event::Run { named: None, stage: Stage::Gated, destination: DestinationKind::Host };
        let (expected, finished) = world.meet(&last).unwrap();
        prop_assert_eq!(expected.as_str(), EngineName::DEFAULT);
        assert_named(&world, &expected, &finished);
        prop_assert_eq!(finished.report.status, Status::Pass, "{:#?}", finished.report);
        let first = open(&world.temp).unwrap().engines().names().remove(0);
        prop_assert_eq!(first.as_str(), EngineName::DEFAULT);
    }
}

/// The history that speaks most for `stub`: let in, switched on, proven up to the candidate, and granted.
#[test]
fn an_engine_for_which_everything_speaks_is_still_run_only_where_it_is_named() {
    let mut world = World::new();
    let mut events = vec![Event::Admit { sign: true, license: true }, Event::Enable];
    let proof = |stage| Event::Proof { engine: Engine::Stub, stage, forgery: Forgery::Genuine };
    events.extend(Stage::ALL.map(proof));
    events.push(Event::Comparison(Forgery::Genuine));
    events.push(Event::Ask { named: Some(Engine::Stub), stage: Stage::DisposableRepo });
    events.push(Event::Rule(Answer::Granted));
    for event in &events {
        assert!(world.meet(event).is_none());
    }
    assert!(world.asked.is_some(), "the approval could not even be asked for");
    let run = |named| Event::Run { named, stage: Stage::Gated, destination: DestinationKind::Host };
    let (expected, unnamed) = world.meet(&run(None)).unwrap();
    assert_named(&world, &expected, &unnamed);
    assert_eq!((unnamed.report.engine.as_str(), unnamed.report.status), ("fake", Status::Pass));
    let (expected, named) = world.meet(&run(Some(Engine::Stub))).unwrap();
    assert_named(&world, &expected, &named);
    // Only the missing isolation keeps it from starting; every other gate passes.
    let missing: Vec<&str> = named.report.blockers.iter().map(|b| b.blocker.as_str()).collect();
    assert_eq!((named.report.engine.as_str(), &missing[..]), ("stub", &["destination_unready"][..]));
}

/// The value `true` cannot even be read.
#[test]
fn no_record_can_say_that_a_default_was_switched() {
    fn refuses<T: DeserializeOwned>(sound: &Value) {
        let kind = std::any::type_name::<T>();
        let read = |value: Value| serde_json::from_value::<T>(value).map(|_| ()).map_err(|e| e.to_string());
        read(sound.clone()).unwrap_or_else(|error| panic!("{kind}: {error}"));
        let with = |key: &str, value: Value| {
            let mut changed = sound.clone();
            changed[key] = value;
            read(changed).expect_err(kind)
        };
        let key = "runtime_default_activation";
        assert_eq!(with(key, true.into()), "runtime_default_activation is always false", "{kind}");
        for value in [json!(null), json!("false"), json!(0), json!({}), json!([false])] {
            with(key, value);
        }
        for key in ["default_engine", "activate", "runtime_default"] {
            assert!(with(key, "stub".into()).contains("unknown field"), "{kind}");
        }
        let mut without = sound.clone();
        without.as_object_mut().unwrap().remove(key);
        assert!(read(without).unwrap_err().contains("missing field"), "{kind}");
    }
    let mut world = World::new();
    let run = Event::Run { named: None, stage: Stage::Gated, destination: DestinationKind::Host };
    let (_, finished) = world.meet(&run).unwrap();
    refuses::<Report>(&serde_json::to_value(&finished.report).unwrap());
    refuses::<Proof>(&serde_json::to_value(a_proof(&EngineName::fake(), Stage::CandidateDefault)).unwrap());
    let comparison = a_comparison(ComparisonId::new(now(), [0; 10]));
    refuses::<Comparison>(&serde_json::to_value(comparison).unwrap());
    assert!(!bool::from(NeverActivated));
    assert!(NeverActivated::try_from(true).is_err());
}
