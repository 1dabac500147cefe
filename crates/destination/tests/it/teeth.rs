//! The probes detect missing isolation: with any layer disabled, its probe fails.

use herma_destination::{IsolationLayer, Sandbox};

use crate::probes::try_probed;
use crate::support::{JobDirs, sandbox};

/// bubblewrap always sets it, so it cannot be disabled; without it, as on the host, its probe fails.
const ALWAYS_THERE: IsolationLayer = IsolationLayer::NoNewPrivileges;

fn without(layer: IsolationLayer) -> Sandbox {
    sandbox().without(layer)
}

#[test]
fn with_any_layer_disabled_its_probe_fails() {
    let mut toothless = Vec::new();
    for layer in IsolationLayer::ALL.into_iter().filter(|layer| *layer != ALWAYS_THERE) {
        let ground = JobDirs::new();
        match try_probed(&without(layer), &ground, &ground.job(&["x"])) {
            Ok(found) => {
                let broken = found.broken();
                if !broken.iter().any(|probe| probe.wall == layer) {
                    toothless.push(format!("{layer}: {broken:?}"));
                }
            }
            // bubblewrap itself checks this layer, and starts nothing without it.
            Err(error) => assert_eq!(layer, IsolationLayer::UserNamespace, "{error}"),
        }
    }
    assert_eq!(toothless, Vec::<String>::new());
}

#[test]
fn every_isolation_layer_has_a_probe() {
    for layer in IsolationLayer::ALL {
        assert!(herma_destination::probe::rows().any(|row| row.layer == layer), "{layer}");
    }
}
