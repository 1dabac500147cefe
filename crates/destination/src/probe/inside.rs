//! The table of probes, and the body of the hidden `herma __probe`.

use std::fs;

use super::attempts::{self, Attempt};
use super::{ProbePlan, ProbeResult};

/// One probe.
struct Probe {
    name: &'static str,
    what: &'static str,
    attempt: fn(&ProbePlan) -> Attempt,
}

/// Every probe. All of them must answer, and each answer must be a refusal.
const PROBES: &[Probe] = &[
    Probe { name: "write_root", what: "write in /", attempt: |plan| attempts::write_in(&plan.run_id, "/") },
    Probe {
        name: "write_usr",
        what: "write in /usr",
        attempt: |plan| attempts::write_in(&plan.run_id, "/usr"),
    },
    Probe {
        name: "write_etc",
        what: "write in /etc",
        attempt: |plan| attempts::write_in(&plan.run_id, "/etc"),
    },
    Probe { name: "write_mounts", what: "write in a read-only mount", attempt: attempts::write_mounts },
    Probe {
        name: "write_kernel_settings",
        what: "open a setting of the kernel for writing",
        attempt: |_| attempts::kernel_settings(),
    },
    Probe {
        name: "read_herma_home",
        what: "read a secret in herma's home",
        attempt: |plan| attempts::read_canary(&plan.herma_canary),
    },
    Probe {
        name: "read_user_home",
        what: "read a secret in the user's home",
        attempt: |plan| attempts::read_canary(&plan.home_canary),
    },
    Probe {
        name: "list_other_run",
        what: "list another run's directory",
        attempt: |plan| attempts::list(&plan.other_run),
    },
    Probe {
        name: "connect_host_loopback",
        what: "connect to a port of the host's loopback",
        attempt: |plan| attempts::connect_loopback(plan.port),
    },
    Probe {
        name: "connect_outward",
        what: "connect to 192.0.2.1:80",
        attempt: |_| attempts::connect_out([192, 0, 2, 1], 80),
    },
    Probe {
        name: "connect_metadata",
        what: "connect to the metadata address 169.254.169.254:80",
        attempt: |_| attempts::connect_out([169, 254, 169, 254], 80),
    },
    Probe {
        name: "resolve_names",
        what: "find a name server and send to one",
        attempt: |_| attempts::resolve(),
    },
    Probe {
        name: "see_host_process",
        what: "see herma's own process",
        attempt: |plan| attempts::see(&plan.herma),
    },
    Probe {
        name: "reach_container_socket",
        what: "connect to a container engine's socket",
        attempt: |_| attempts::container_sockets(),
    },
    Probe {
        name: "inherited_files",
        what: "find an open file of the caller",
        attempt: |_| attempts::open_files(),
    },
    Probe { name: "mount", what: "open a file system for mounting", attempt: |_| attempts::mount() },
    Probe { name: "capabilities", what: "hold a capability", attempt: |_| attempts::capabilities() },
    Probe {
        name: "new_privileges",
        what: "gain privileges by starting a program",
        attempt: |_| attempts::new_privileges(),
    },
];

/// The names and descriptions of all probes, in their fixed order.
pub fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    PROBES.iter().map(|probe| (probe.name, probe.what))
}

/// Tries everything in the plan from where this process is, and leaves the sign in the workspace.
#[must_use]
pub fn run_inside(plan: &ProbePlan) -> Vec<ProbeResult> {
    // The outside looks for it; whether this fails is for the outside to see.
    let _ = fs::write(plan.workspace.join(super::outside::SIGN), &plan.sign);
    let run = |probe: &Probe| {
        let (denied, observed) = match (probe.attempt)(plan) {
            Attempt::Denied(observed) => (true, observed),
            Attempt::NotDenied(observed) => (false, observed),
        };
        ProbeResult { name: probe.name.to_owned(), what: probe.what.to_owned(), denied, observed }
    };
    PROBES.iter().map(run).collect()
}
