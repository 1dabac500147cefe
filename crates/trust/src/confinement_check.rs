//! Reads `confinement.json` for the verification of a bundle.

use std::collections::BTreeSet;

use herma_core::{Blocker, Report};
use herma_destination::Confinement;
use herma_evidence::verify::Probed;

/// The probes that every record of this form has. Later versions of herma add to them and take none away.
const ALWAYS: &[&str] = &[
    "write_root",
    "write_usr",
    "write_etc",
    "write_mounts",
    "write_kernel_settings",
    "read_only_system",
    "read_kernel_lists",
    "second_wall",
    "read_herma_home",
    "read_user_home",
    "list_other_run",
    "git_push",
    "reach_admin_socket",
    "reach_host_socket",
    "reach_container_socket",
    "reach_abstract_socket",
    "connect_host_loopback",
    "send_datagram",
    "connect_outward",
    "connect_ipv6",
    "connect_metadata",
    "resolve_names",
    "see_host_process",
    "signal_host_process",
    "trace_host_process",
    "share_user_namespace",
    "share_ipc_namespace",
    "share_uts_namespace",
    "share_cgroup_namespace",
    "become_root",
    "capabilities",
    "new_privileges",
    "filter",
    "mount",
    "trace_sibling",
    "io_uring",
    "keyring",
    "raw_packets",
    "packets",
    "kernel_messages",
    "hypervisor",
    "inherited_files",
    "inherited_variables",
    "share_session",
    "outlive_herma",
    "limits",
    "make_user_namespace",
    "exceed_processes",
    "exceed_memory",
];

/// The probes in a run's record, or why the record is not that of the report's run.
pub(crate) fn judge(record: &[u8], report: &Report) -> Result<Probed, String> {
    let confinement: Confinement =
        serde_json::from_slice(record).map_err(|e| format!("it cannot be read: {e}"))?;
    let spelled = serde_json::to_vec_pretty(&confinement).map(|mut bytes| {
        bytes.push(b'\n');
        bytes
    });
    if !spelled.is_ok_and(|spelled| spelled == record) {
        return Err("it is not spelled as herma spells it".to_owned());
    }
    if confinement.run_id != report.run_id {
        return Err(format!("it is of another run, {}", confinement.run_id));
    }
    if confinement.destination != report.destination {
        return Err("it is of another destination than the report's".to_owned());
    }
    // An interrupted run's report lacks the facts that were not saved.
    let lost = report.walls.is_empty() && report.blockers.iter().any(|b| b.blocker == Blocker::Interrupted);
    if confinement.walls != report.walls && !lost {
        return Err("its isolation measures are not those of the report".to_owned());
    }
    let names: BTreeSet<&str> = confinement.probes.iter().map(|probe| probe.name.as_str()).collect();
    if names.len() != confinement.probes.len() {
        return Err("a probe is there twice".to_owned());
    }
    if let Some(missing) = ALWAYS.iter().find(|name| !names.contains(**name)) {
        return Err(format!("the probe `{missing}` is not there"));
    }
    let limits: BTreeSet<String> = confinement.limits.iter().map(|held| format!("{:?}", held.name)).collect();
    if limits.is_empty() || limits.len() != confinement.limits.len() {
        return Err("it has no limits, or one of them twice".to_owned());
    }
    let broken = confinement.broken().iter().map(|p| format!("{}: {}", p.name, p.observed)).collect();
    Ok(Probed { probes: confinement.probes.len(), broken })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_probe_that_is_expected_is_made() {
        let made: BTreeSet<&str> = herma_destination::probe::rows().map(|row| row.name).collect();
        let gone: Vec<_> = ALWAYS.iter().filter(|name| !made.contains(**name)).collect();
        assert!(gone.is_empty(), "{gone:?} would be missed in every new bundle");
    }
}
