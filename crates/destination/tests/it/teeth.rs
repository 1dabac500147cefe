//! The proof has teeth: with any wall left out, a probe that leans on it fails.

use herma_destination::{Sandbox, Wall};

use crate::probes::try_probed;
use crate::support::{Ground, sandbox};

/// bubblewrap always sets it, so it cannot be left out; where it is not set, as on the host, its probe fails.
const ALWAYS_THERE: Wall = Wall::NoNewPrivileges;

fn without(wall: Wall) -> Sandbox {
    sandbox().without(wall)
}

#[test]
fn with_any_wall_left_out_a_probe_that_leans_on_it_fails() {
    let mut toothless = Vec::new();
    for wall in Wall::ALL.into_iter().filter(|wall| *wall != ALWAYS_THERE) {
        let ground = Ground::new();
        match try_probed(&without(wall), &ground, &ground.job(&["x"])) {
            Ok(found) => {
                let broken = found.broken();
                if !broken.iter().any(|probe| probe.wall == wall) {
                    toothless.push(format!("{wall}: {broken:?}"));
                }
            }
            // bubblewrap itself tries this one, and makes no walls at all where it is missing.
            Err(error) => assert_eq!(wall, Wall::UserNamespace, "{error}"),
        }
    }
    assert_eq!(toothless, Vec::<String>::new());
}

#[test]
fn every_wall_has_a_probe() {
    for wall in Wall::ALL {
        assert!(herma_destination::probe::rows().any(|row| row.wall == wall), "{wall}");
    }
}
