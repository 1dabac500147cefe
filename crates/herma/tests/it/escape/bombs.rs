//! Bombs: each is a run of its own that ends with the right verdict, leaves a bundle that verifies and nothing else, and
//! herma goes on.

use herma_core::Blocker;
use herma_destination::{Confinement, HeldBy};
use herma_evidence::layout;
use serde_json::json;

use super::attempts::{Bomb, Record, table};
use super::{FIXED, assert_nothing_is_left};
use crate::full_disk::SmallDisk;
use crate::kit::{Finished, Herma};

/// Goes off in this destination.
pub(super) fn go_off(herma: &Herma, bomb: &Bomb, place: &str) {
    let script = json!({ "steps": [
        { "write": { "path": "slugify.sh", "text": FIXED } },
        { "shell": { "command": bomb.shell, "must": true } },
    ] });
    let terms = bomb.limits.as_ref().map(|limits| ("limits", limits.as_str()));
    let terms: Vec<_> = terms.into_iter().chain([("destination", place)]).collect();
    let run = herma.play(&script.to_string(), &terms);
    if bomb.ends == "pass" {
        run.assert_pass();
    } else {
        let ends = Blocker::ALL.iter().find(|blocker| blocker.as_str() == bomb.ends);
        run.assert_only(*ends.unwrap());
        let detail = &run.report.blockers[0].detail;
        let met = bomb.met.as_ref().filter(|limit| is_seen(limit, &run));
        let named = met.is_none_or(|limit| detail.ends_with(&format!("it met the limit `{limit}`")));
        assert!(named, "{}: {detail}", bomb.name);
    }
    assert!(is_recorded(&bomb.record, &run), "{}: {}", bomb.name, bomb.record);
    assert_nothing_is_left(run.report.run_id);
}

fn confinement(run: &Finished) -> Confinement {
    serde_json::from_slice(&run.bundle.read(layout::CONFINEMENT)).unwrap()
}

/// Whether this machine lets herma see that the limit was met: an rlimit is met in silence.
fn is_seen(limit: &str, run: &Finished) -> bool {
    let limits = confinement(run).limits;
    let held = limits.iter().find(|held| held.name.as_str() == limit).unwrap();
    held.by != HeldBy::Rlimit
}

fn is_recorded(record: &Record, run: &Finished) -> bool {
    match record {
        Record::Limit(name) => confinement(run).limits.iter().any(|held| held.name.as_str() == name),
        Record::Log => {
            let kept = run.bundle.dir.join(layout::ENGINE_STDOUT).metadata().unwrap().len();
            (60 << 20..69 << 20).contains(&kept)
        }
        _ => false,
    }
}

#[test]
fn every_bomb_ends_in_the_sandbox_and_herma_continues() {
    let herma = Herma::new();
    for bomb in table().bombs.iter().filter(|bomb| bomb.is_for("sandbox")) {
        go_off(&herma, bomb, "sandbox");
    }
    herma.demo(&["--destination", "sandbox"]).assert_pass();
}

#[test]
fn an_agent_that_fills_the_disk_gets_a_report_and_leaves_room_again() {
    let mut herma = Herma::new();
    let disk = SmallDisk::mount(herma.at("disk"), 64);
    herma.set_home(&disk.at.join("home"));
    let fill = json!({ "steps": [
        { "write": { "path": "slugify.sh", "text": FIXED } },
        { "shell": "cat /dev/zero > filler; cat /dev/zero > tests/filler" },
    ] });
    // `play` sees that the bundle is whole and verifies, and that nothing else is left.
    let run = herma.play(&fill.to_string(), &[]);
    let found: Vec<Blocker> = run.report.blockers.iter().map(|record| record.blocker).collect();
    assert!(!found.is_empty() && run.ended.code != Some(0), "{:#?}", run.report);
    let expected = [Blocker::ArtifactWriteFailure, Blocker::DisallowedFile];
    assert!(found.iter().any(|blocker| expected.contains(blocker)), "{found:?}");
    assert_nothing_is_left(run.report.run_id);
    herma.demo(&["--destination", "sandbox"]).assert_pass();
}
