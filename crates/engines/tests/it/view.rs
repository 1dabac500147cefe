//! An engine's view of its destination, as in a sandbox.

use herma_destination::View;

pub(crate) fn view() -> View {
    View {
        workspace: "/workspace".into(),
        engine_dir: Some("/engine".into()),
        router: Some("/herma/router.sock".into()),
        router_port: Some(61801),
        egress_port: Some(61802),
        certificates: None,
        governance: Some("/herma/governance.sock".into()),
        herma: "/herma/herma".into(),
    }
}
