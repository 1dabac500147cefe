//! A run that goes on with the session of an earlier one.

use std::fs;

use herma_core::Blocker;

use super::rows::HALVES;
use crate::kit::{Herma, Repository};

pub(super) fn it_goes_on_where_it_stopped(herma: &Herma, engine: &str) {
    let first = super::play(herma, engine, &HALVES);
    // But for what the agent looked for outside by itself: Hermes does.
    let blockers = first.report.blockers.iter().map(|record| record.blocker);
    let blockers: Vec<Blocker> = blockers.filter(|blocker| *blocker != Blocker::EgressDenied).collect();
    assert_eq!(blockers, HALVES.blockers);
    let parent = first.report.run_id.to_string();
    // The model is the same, and knows by its conversation that the second half is next.
    let resume = ["resume", &parent, "--message", "the words of a person", "--json"];
    let second = herma.finished_by(|| herma.run_patiently(&resume));
    second.assert_pass();
    assert_eq!(second.report.parent_run, Some(first.report.run_id));
    assert_eq!(second.changed(), ["slugify.sh"]);
    assert_eq!(second.report.contract_digest, first.report.contract_digest);
    let events = fs::read_to_string(second.bundle.dir.join("events.jsonl")).unwrap();
    for said in
        ["the words of a person", "`verification_failed`", first.report.result_tree.as_deref().unwrap()]
    {
        assert!(events.contains(said), "{said}: {events}");
    }
    // Of both something is kept to go on with, and nothing of it is in the evidence.
    for run in [&parent, &second.report.run_id.to_string()] {
        assert!(herma.home().join("runs").join(run).join("session/session.json").is_file(), "{run}");
    }
}

/// The last run worked on a base that its target no longer has.
pub(super) fn it_does_not_go_on_from_another_base(herma: &Herma, target: &Repository) {
    fs::write(target.dir.join("slugify.sh"), "slugify() { echo another; }\n").unwrap();
    target.commit("somebody else was faster");
    let blocked = herma.finished_by(|| herma.run_patiently(&["resume", "last", "--json"]));
    let blockers: Vec<Blocker> = blocked.report.blockers.iter().map(|record| record.blocker).collect();
    assert_eq!((blockers, blocked.report.engine_started), (vec![Blocker::DirtyStartingTree], false));
}
