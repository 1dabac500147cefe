//! The proof has teeth in a container too: with any piece of its walls left out, a probe fails or nothing starts.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Mutex;
use std::thread;

use herma_destination::probe;
use herma_destination::{Mount, Noticed, PIECES, PieceRow, Wall};

use super::daemon::Daemon;
use crate::probes::try_probed;
use crate::support::{Ground, helper};

/// How many are tried at once: a container waits for its daemon most of the time.
const AT_ONCE: usize = 3;

/// Every container's runtime makes a session, so that there is none without one.
const ALWAYS_THERE: Wall = Wall::Session;

#[test]
fn with_any_piece_left_out_a_probe_fails_or_nothing_starts() {
    let daemon = Daemon::start(helper());
    let (left, missed) = (Mutex::new(PIECES.iter()), Mutex::new(Vec::new()));
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

/// What happened instead of what must.
fn unnoticed(daemon: &Daemon, row: &PieceRow) -> Option<String> {
    let ground = Ground::new();
    // Only the walls may keep what is planted from the user inside, and not a directory above it.
    fs::set_permissions(ground.dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let mut job = ground.job(&["x"]);
    job.mounts = vec![Mount { host: ground.workspace(), inside: "/opt/tool".into() }];
    let found = try_probed(&daemon.destination().without(row.piece), &ground, &job);
    assert_eq!(daemon.containers(job.run_id), Vec::<String>::new(), "{}", row.name);
    match (found, row.noticed) {
        (Ok(found), Noticed::ByProbe(name)) if found.broken().iter().any(|broken| broken.name == name) => {
            None
        }
        (Ok(found), _) => Some(format!("{}: {:?}", row.name, found.broken())),
        (Err(error), Noticed::Inside(words) | Noticed::Outside(words))
            if error.to_string().contains(words) =>
        {
            None
        }
        (Err(error), _) => Some(format!("{}: {error}", row.name)),
    }
}

#[test]
fn every_wall_has_a_piece_and_every_piece_leans_on_a_probe_of_its_wall() {
    for wall in Wall::ALL.into_iter().filter(|wall| *wall != ALWAYS_THERE) {
        assert!(PIECES.iter().any(|row| row.wall == wall), "{wall}");
    }
    for row in PIECES {
        if let Noticed::ByProbe(name) = row.noticed {
            let probe = probe::rows().find(|probe| probe.name == name).unwrap();
            assert_eq!(probe.wall, row.wall, "{}", row.name);
        }
    }
}
