//! The specification of a job's container for Docker.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use bollard::models::{
    ContainerCreateBody, HealthConfig, HostConfig, HostConfigCgroupnsModeEnum, HostConfigLogConfig,
    Mount as DockerMount, MountBindOptions, MountTmpfsOptions, MountType, RestartPolicy,
    RestartPolicyNameEnum,
};
use herma_core::Digest;
use herma_core::units::Bytes;
use serde::Serialize;

use super::diagnosis::DaemonFacts;
use super::keeper;
use super::ownership::User;
use crate::job::{Job, Mount};
use crate::limits::{Held, LimitName};
use crate::sandbox::layout;

/// The label that names the run.
pub(super) const RUN_LABEL: &str = "herma.run";
/// The label with the digest of the whole specification.
const SPEC_LABEL: &str = "herma.spec";

/// The inputs of the specification besides the job.
pub(super) struct SpecParts<'a> {
    pub(super) facts: &'a DaemonFacts,
    pub(super) user: User,
    pub(super) herma: &'a Path,
    pub(super) runtime: Option<&'a str>,
    /// The limits that Docker enforces.
    pub(super) held: &'a [Held],
    /// Small files that every container sees.
    pub(super) files: Vec<Mount>,
    /// Whether there is Landlock, and so the directory that only Landlock protects.
    pub(super) second_wall: bool,
    /// The digest of the keeper's order.
    pub(super) order: Digest,
}

pub(super) fn describe(job: &Job, parts: &SpecParts<'_>) -> io::Result<ContainerCreateBody> {
    let User { uid, gid } = parts.user;
    let words = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
    let mut body = ContainerCreateBody {
        image: Some(parts.facts.image.clone()),
        user: Some(format!("{uid}:{gid}")),
        hostname: Some("herma".to_owned()),
        entrypoint: words(&[layout::HERMA, keeper::SUBCOMMAND]),
        // Shows the run and the container in the process list.
        cmd: words(&[&job.run_id.to_string()]),
        working_dir: Some(layout::WORKSPACE.to_owned()),
        // A health check of the image would run outside of the keeper's control.
        healthcheck: Some(HealthConfig { test: words(&["NONE"]), ..HealthConfig::default() }),
        network_disabled: Some(true),
        // Closed for good when herma disconnects.
        open_stdin: Some(true),
        stdin_once: Some(true),
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        tty: Some(false),
        host_config: Some(host_config(job, parts)?),
        ..ContainerCreateBody::default()
    };
    let digest = digest(&body, parts.order)?;
    let labels = [(RUN_LABEL, job.run_id.to_string()), (SPEC_LABEL, digest.to_string())];
    body.labels = Some(labels.map(|(name, value)| (name.to_owned(), value)).into());
    Ok(body)
}

fn host_config(job: &Job, parts: &SpecParts<'_>) -> io::Result<HostConfig> {
    let holds = |name: LimitName| {
        let held = parts.held.iter().find(|held| held.name == name)?;
        i64::try_from(held.value).ok()
    };
    let memory = holds(LimitName::Memory);
    let User { uid, gid } = parts.user;
    // With an owner, because older runtimes keep the mode of a path that exists in the image.
    let sized = |Bytes(size): Bytes, mode: &str| {
        format!("rw,exec,nosuid,nodev,size={size},mode={mode},uid={uid},gid={gid}")
    };
    // A tmpfs, because a file of the host would keep attributes, times and locks for the next run.
    let second_wall = || {
        let Bytes(size) = layout::EMPTY_TMPFS_BYTES;
        (layout::LANDLOCK_CANARY_PATH, format!("rw,noexec,nosuid,nodev,size={size},mode=0777"))
    };
    let home = job.paths.home.is_none().then(|| (layout::HOME, sized(job.limits.home, "0700")));
    let tmpfs = std::iter::once((layout::TMP, sized(job.limits.tmp, "1777"))).chain(home);
    let tmpfs = tmpfs.chain(parts.second_wall.then(second_wall));
    Ok(HostConfig {
        auto_remove: Some(true),
        // The keeper is init; another init in front of it would outlive it.
        init: Some(false),
        runtime: parts.runtime.map(str::to_owned),
        masked_paths: Some(masked_paths()),
        network_mode: Some("none".to_owned()),
        ipc_mode: Some("private".to_owned()),
        cgroupns_mode: Some(HostConfigCgroupnsModeEnum::PRIVATE),
        privileged: Some(false),
        readonly_rootfs: Some(true),
        cap_drop: Some(vec!["ALL".to_owned()]),
        security_opt: Some(vec!["no-new-privileges".to_owned()]),
        restart_policy: Some(RestartPolicy {
            name: Some(RestartPolicyNameEnum::NO),
            ..RestartPolicy::default()
        }),
        // The output goes to herma only, not to the daemon's disk.
        log_config: Some(HostConfigLogConfig { typ: Some("none".to_owned()), config: None }),
        memory,
        // Memory plus swap: without this line a job could use swap beyond its memory limit.
        memory_swap: memory.filter(|_| parts.facts.swap),
        pids_limit: holds(LimitName::Processes),
        nano_cpus: holds(LimitName::Cpu).map(|hundredths| hundredths.saturating_mul(10_000_000)),
        shm_size: i64::try_from(job.limits.shared_memory.0).ok(),
        tmpfs: Some(tmpfs.map(|(place, words)| (place.to_owned(), words)).collect()),
        mounts: Some(mounts(job, parts)?),
        ..HostConfig::default()
    })
}

/// Setting masked paths replaces Docker's default list, so both are listed.
fn masked_paths() -> Vec<String> {
    const DOCKER_DEFAULTS: [&str; 10] = [
        "/proc/acpi",
        "/proc/asound",
        "/proc/interrupts",
        "/proc/kcore",
        "/proc/latency_stats",
        "/proc/sched_debug",
        "/proc/scsi",
        "/proc/timer_stats",
        "/sys/devices/virtual/powercap",
        "/sys/firmware",
    ];
    DOCKER_DEFAULTS.into_iter().chain(layout::KERNEL_INFO_FILES).map(str::to_owned).collect()
}

fn mounts(job: &Job, parts: &SpecParts<'_>) -> io::Result<Vec<DockerMount>> {
    let read_only =
        job.mounts.iter().chain(&parts.files).map(|mount| (mount.host.as_path(), mount.inside.as_path()));
    let paths = &job.paths;
    // A socket can be connected to through a read-only mount.
    let sockets = [
        (&paths.router, layout::ROUTER),
        (&paths.egress, layout::EGRESS),
        (&paths.governance, layout::GOVERNANCE),
    ];
    let sockets = sockets.iter().filter_map(|(host, inside)| Some((host.as_deref()?, Path::new(*inside))));
    let read_only = read_only.chain([(parts.herma, Path::new(layout::HERMA))]).chain(sockets);
    let writable = [
        Some((paths.workspace.as_path(), layout::WORKSPACE)),
        paths.engine_dir.as_deref().map(|dir| (dir, layout::ENGINE)),
        paths.home.as_deref().map(|dir| (dir, layout::HOME)),
    ];
    let writable = writable.into_iter().flatten().map(|(host, inside)| (host, Path::new(inside)));
    let mut all = Vec::new();
    for (read_only, (host, inside)) in
        read_only.map(|mount| (true, mount)).chain(writable.map(|mount| (false, mount)))
    {
        all.push(DockerMount {
            typ: Some(MountType::BIND),
            source: Some(text(host)?),
            target: Some(text(inside)?),
            read_only: Some(read_only),
            // Mounts below it on the host would come along, and older daemons leave them writable.
            bind_options: Some(MountBindOptions { non_recursive: Some(true), ..MountBindOptions::default() }),
            ..DockerMount::default()
        });
    }
    all.extend(job.hidden.iter().map(|name| hiding(name)));
    Ok(all)
}

/// An empty read-only tmpfs over a hidden directory of the workspace.
fn hiding(name: &str) -> DockerMount {
    DockerMount {
        typ: Some(MountType::TMPFS),
        target: Some(layout::inside_workspace(name)),
        read_only: Some(true),
        tmpfs_options: Some(MountTmpfsOptions {
            size_bytes: i64::try_from(layout::EMPTY_TMPFS_BYTES.0).ok(),
            mode: Some(0o555),
            ..MountTmpfsOptions::default()
        }),
        ..DockerMount::default()
    }
}

fn text(path: &Path) -> io::Result<String> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| {
        io::Error::other(format!("Docker cannot mount `{}`: its name is no text", path.display()))
    })
}

/// Equal only for equal specifications.
fn digest(body: &ContainerCreateBody, order: Digest) -> io::Result<Digest> {
    #[derive(Serialize)]
    struct SpecDigestInput<'a> {
        body: &'a ContainerCreateBody,
        order: Digest,
    }
    let bytes = serde_json_canonicalizer::to_vec(&SpecDigestInput { body, order })?;
    Ok(Digest::of(&bytes))
}

/// The label filter for the containers of one run or of all runs.
pub(super) fn filter(run: Option<herma_core::RunId>) -> HashMap<String, Vec<String>> {
    let label = run.map_or_else(|| RUN_LABEL.to_owned(), |run| format!("{RUN_LABEL}={run}"));
    HashMap::from([("label".to_owned(), vec![label])])
}
