//! A container with one piece of its walls left out. Only a build for tests has this file.

use bollard::models::{ContainerCreateBody, HostConfigCgroupnsModeEnum, Mount, MountType};

use super::piece::{PIECES, Piece};
use crate::launcher::Launch;
use crate::standing::Standing;

/// Where herma's first process finds the name of the piece among its own words: after the run.
const WORD: usize = 3;

/// Takes the piece out of the container's description. Who is inside is told what else to leave out.
pub(super) fn container(mut body: ContainerCreateBody, standing: Standing<Piece>) -> ContainerCreateBody {
    let Some(piece) = standing.left_out() else { return body };
    let name = PIECES.iter().find(|row| row.piece == piece).map(|row| row.name.to_owned());
    body.cmd.get_or_insert_default().extend(name);
    let mut host = body.host_config.take().unwrap_or_default();
    let of_host = || Some("host".to_owned());
    match piece {
        Piece::ReadOnlyImage => host.readonly_rootfs = Some(false),
        Piece::ReadOnlyMounts => {
            host.mounts.iter_mut().flatten().for_each(|mount| mount.read_only = Some(false));
        }
        Piece::KernelSettings => host.readonly_paths = Some(Vec::new()),
        Piece::KernelLists => host.masked_paths = Some(Vec::new()),
        Piece::HostFiles => {
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
        Piece::NameServers => {
            let kept = |mount: &Mount| mount.target.as_deref() != Some("/etc/resolv.conf");
            host.mounts.iter_mut().for_each(|all| all.retain(kept));
        }
        Piece::User => body.user = Some("0:0".to_owned()),
        Piece::NoOtherGroup => host.group_add = Some(vec!["4".to_owned()]),
        Piece::PidNamespace => host.pid_mode = of_host(),
        Piece::NetworkNamespace => (host.network_mode, body.network_disabled) = (of_host(), Some(false)),
        Piece::IpcNamespace => host.ipc_mode = of_host(),
        Piece::UtsNamespace => (host.uts_mode, body.hostname) = (of_host(), None),
        Piece::CgroupNamespace => host.cgroupns_mode = Some(HostConfigCgroupnsModeEnum::HOST),
        Piece::Capabilities => host.cap_drop = None,
        Piece::Unprivileged => host.privileged = Some(true),
        Piece::NoNewPrivilegesOption | Piece::NoNewPrivileges => host.security_opt = None,
        Piece::DockersFilter => {
            host.security_opt.get_or_insert_default().push("seccomp=unconfined".to_owned());
        }
        Piece::Memory => (host.memory, host.memory_swap) = (None, None),
        Piece::Processes => host.pids_limit = None,
        Piece::Cpu => host.nano_cpus = None,
        Piece::Groups => {
            (host.memory, host.memory_swap, host.pids_limit, host.nano_cpus) = (None, None, None, None);
        }
        Piece::Sizes => {
            for words in host.tmpfs.iter_mut().flat_map(|all| all.values_mut()) {
                let kept: Vec<&str> = words.split(',').filter(|word| !word.starts_with("size=")).collect();
                *words = kept.join(",");
            }
        }
        // These are not Docker's.
        Piece::Filter
        | Piece::Landlock
        | Piece::Rlimits
        | Piece::Files
        | Piece::Environment
        | Piece::Parent => {}
    }
    body.host_config = Some(host);
    body
}

/// Takes the piece out of what the launcher does.
pub(super) fn launch(mut launch: Launch, standing: Standing<Piece>) -> Launch {
    match standing.left_out() {
        Some(Piece::Landlock | Piece::NoNewPrivileges) => launch.landlock = None,
        Some(Piece::Rlimits) => launch.rlimits.clear(),
        Some(Piece::Parent) => launch.parent = None,
        _ => {}
    }
    launch
}

/// What herma's first process was told to leave out.
pub(super) fn told() -> Standing<Piece> {
    let word = std::env::args().nth(WORD).unwrap_or_default();
    let row = PIECES.iter().find(|row| row.name == word);
    row.map_or_else(Standing::default, |row| Standing::without(row.piece))
}
