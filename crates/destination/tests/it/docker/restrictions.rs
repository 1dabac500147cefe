//! The probes detect missing isolation in a container too: with any restriction left out, a probe fails or nothing
//! starts.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Mutex;
use std::thread;

use herma_destination::probe;
use herma_destination::{DetectedBy, IsolationLayer, Mount, RESTRICTIONS, RestrictionRow};

use super::daemon::Daemon;
use crate::probes::try_probed;
use crate::support::{JobDirs, helper};

/// The number of parallel containers: each waits for the daemon most of the time.
const AT_ONCE: usize = 3;

/// Every runtime creates a session, so that it cannot be left out.
const ALWAYS_THERE: IsolationLayer = IsolationLayer::Session;

#[test]
fn with_any_restriction_left_out_a_probe_fails_or_nothing_starts() {
    let daemon = Daemon::start(helper());
    let (left, missed) = (Mutex::new(RESTRICTIONS.iter()), Mutex::new(Vec::new()));
    let next = || left.lock().unwrap().next();
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(row) = next() {
                    missed.lock().unwrap().extend(unnoticed(&daemon, row));
                }
            });
        }
    });
    assert_eq!(missed.into_inner().unwrap(), Vec::<String>::new());
}

/// The unexpected outcome, if any.
fn unnoticed(daemon: &Daemon, row: &RestrictionRow) -> Option<String> {
    let ground = JobDirs::new();
    // Isolation alone, and not a parent directory's mode, must protect the canaries.
    fs::set_permissions(ground.dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let mut job = ground.job(&["x"]);
    job.mounts = vec![Mount { host: ground.workspace(), inside: "/opt/tool".into() }];
    let found = try_probed(&daemon.destination().without(row.restriction), &ground, &job);
    assert_eq!(daemon.containers(job.run_id), Vec::<String>::new(), "{}", row.name);
    match (found, row.detected_by) {
        (Ok(found), DetectedBy::ByProbe(name)) if found.broken().iter().any(|broken| broken.name == name) => {
            None
        }
        (Ok(found), _) => Some(format!("{}: {:?}", row.name, found.broken())),
        (Err(error), DetectedBy::Inside(words) | DetectedBy::Outside(words))
            if error.to_string().contains(words) =>
        {
            None
        }
        (Err(error), _) => Some(format!("{}: {error}", row.name)),
    }
}

#[test]
fn every_layer_has_a_restriction_and_each_is_detected_by_a_probe_of_its_layer() {
    for layer in IsolationLayer::ALL.into_iter().filter(|layer| *layer != ALWAYS_THERE) {
        assert!(RESTRICTIONS.iter().any(|row| row.layer == layer), "{layer}");
    }
    for row in RESTRICTIONS {
        if let DetectedBy::ByProbe(name) = row.detected_by {
            let probe = probe::rows().find(|probe| probe.name == name).unwrap();
            assert_eq!(probe.layer, row.layer, "{}", row.name);
        }
    }
}
