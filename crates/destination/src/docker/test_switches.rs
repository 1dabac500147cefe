//! A container with one restriction left out. Compiled only in test builds.

use bollard::models::{ContainerCreateBody, HostConfigCgroupnsModeEnum, Mount, MountType};

use super::restriction::{RESTRICTIONS, Restriction};
use crate::enabled_layers::EnabledLayers;
use crate::launcher::LaunchPlan;

/// The index of the restriction's name in the keeper's argv: after the run.
const WORD: usize = 3;

/// Removes the restriction from the specification, and tells the keeper which one is left out.
pub(super) fn container(
    mut body: ContainerCreateBody,
    enabled: EnabledLayers<Restriction>,
) -> ContainerCreateBody {
    let Some(restriction) = enabled.left_out() else { return body };
    let name = RESTRICTIONS.iter().find(|row| row.restriction == restriction).map(|row| row.name.to_owned());
    body.cmd.get_or_insert_default().extend(name);
    let mut host = body.host_config.take().unwrap_or_default();
    let of_host = || Some("host".to_owned());
    match restriction {
        Restriction::ReadOnlyImage => host.readonly_rootfs = Some(false),
        Restriction::ReadOnlyMounts => {
            host.mounts.iter_mut().flatten().for_each(|mount| mount.read_only = Some(false));
        }
        Restriction::KernelSettings => host.readonly_paths = Some(Vec::new()),
        Restriction::KernelLists => host.masked_paths = Some(Vec::new()),
        Restriction::HostFiles => {
            host.tmpfs.iter_mut().for_each(|all| drop(all.remove("/tmp")));
            let [source, target] = [Some("/tmp".to_owned()), Some("/tmp".to_owned())];
            let (typ, read_only) = (Some(MountType::BIND), Some(true));
            host.mounts.get_or_insert_default().push(Mount {
                source,
                target,
                typ,
                read_only,
                ..Mount::default()
            });
        }
        Restriction::NameServers => {
            let kept = |mount: &Mount| mount.target.as_deref() != Some("/etc/resolv.conf");
            host.mounts.iter_mut().for_each(|all| all.retain(kept));
        }
        Restriction::User => body.user = Some("0:0".to_owned()),
        Restriction::NoOtherGroup => host.group_add = Some(vec!["4".to_owned()]),
        Restriction::PidNamespace => host.pid_mode = of_host(),
        Restriction::NetworkNamespace => {
            (host.network_mode, body.network_disabled) = (of_host(), Some(false));
        }
        Restriction::IpcNamespace => host.ipc_mode = of_host(),
        Restriction::UtsNamespace => (host.uts_mode, body.hostname) = (of_host(), None),
        Restriction::CgroupNamespace => host.cgroupns_mode = Some(HostConfigCgroupnsModeEnum::HOST),
        Restriction::Capabilities => host.cap_drop = None,
        Restriction::Unprivileged => host.privileged = Some(true),
        Restriction::NoNewPrivilegesOption | Restriction::NoNewPrivileges => host.security_opt = None,
        Restriction::DockersFilter => {
            host.security_opt.get_or_insert_default().push("seccomp=unconfined".to_owned());
        }
        Restriction::Memory => (host.memory, host.memory_swap) = (None, None),
        Restriction::Processes => host.pids_limit = None,
        Restriction::Cpu => host.nano_cpus = None,
        Restriction::Groups => {
            (host.memory, host.memory_swap, host.pids_limit, host.nano_cpus) = (None, None, None, None);
        }
        Restriction::Sizes => {
            for words in host.tmpfs.iter_mut().flat_map(|all| all.values_mut()) {
                let kept: Vec<&str> = words.split(',').filter(|word| !word.starts_with("size=")).collect();
                *words = kept.join(",");
            }
        }
        // These are not Docker's.
        Restriction::Filter
        | Restriction::Landlock
        | Restriction::Rlimits
        | Restriction::Files
        | Restriction::Environment
        | Restriction::Parent => {}
    }
    body.host_config = Some(host);
    body
}

/// Removes the restriction from the launch plan.
pub(super) fn launch(mut launch: LaunchPlan, enabled: EnabledLayers<Restriction>) -> LaunchPlan {
    match enabled.left_out() {
        Some(Restriction::Landlock | Restriction::NoNewPrivileges) => launch.landlock = None,
        Some(Restriction::Rlimits) => launch.rlimits.clear(),
        Some(Restriction::Parent) => launch.parent = None,
        _ => {}
    }
    launch
}

/// The restriction that the keeper leaves out.
pub(super) fn told() -> EnabledLayers<Restriction> {
    let word = std::env::args().nth(WORD).unwrap_or_default();
    let row = RESTRICTIONS.iter().find(|row| row.name == word);
    row.map_or_else(EnabledLayers::default, |row| EnabledLayers::without(row.restriction))
}
