//! The description of a job's container, as Docker takes it.

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

use super::diagnosis::Facts;
use super::keeper;
use super::owner::User;
use crate::job::{Job, Mount};
use crate::limits::{Held, LimitName};
use crate::sandbox::layout;

/// The label that names the run.
pub(super) const RUN_LABEL: &str = "herma.run";
/// The label with the digest of the whole description: no two that differ have the same.
const SPEC_LABEL: &str = "herma.spec";

/// What a container is made of, besides the job.
pub(super) struct Parts<'a> {
    pub(super) facts: &'a Facts,
    pub(super) user: User,
    pub(super) herma: &'a Path,
    pub(super) runtime: Option<&'a str>,
    /// What Docker holds of the limits.
    pub(super) held: &'a [Held],
    /// Small files that every container sees.
    pub(super) files: Vec<Mount>,
    /// Whether there is Landlock, and with it the directory that only Landlock keeps from being written.
    pub(super) second_wall: bool,
    /// The digest of what the keeper is ordered to start.
    pub(super) order: Digest,
}

pub(super) fn describe(job: &Job, parts: &Parts<'_>) -> io::Result<ContainerCreateBody> {
    let User { uid, gid } = parts.user;
    let words = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
    let mut body = ContainerCreateBody {
        image: Some(parts.facts.image.clone()),
        user: Some(format!("{uid}:{gid}")),
        hostname: Some("herma".to_owned()),
        entrypoint: words(&[layout::HERMA, keeper::SUBCOMMAND]),
        // Its run can be seen in the list of processes, and which container it is.
        cmd: words(&[&job.run_id.to_string()]),
        working_dir: Some(layout::WORKSPACE.to_owned()),
        // What the image wants to have run now and then would run outside of the keeper's hands.
        healthcheck: Some(HealthConfig { test: words(&["NONE"]), ..HealthConfig::default() }),
        network_disabled: Some(true),
        // Open once: when herma lets go of it, it ends.
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

fn host_config(job: &Job, parts: &Parts<'_>) -> io::Result<HostConfig> {
    let holds = |name: LimitName| {
        let held = parts.held.iter().find(|held| held.name == name)?;
        i64::try_from(held.value).ok()
    };
    let memory = holds(LimitName::Memory);
    let User { uid, gid } = parts.user;
    // Its owner as well: where the image has the place already, older runtimes give it the mode that it has there.
    let sized = |Bytes(size): Bytes, mode: &str| {
        format!("rw,exec,nosuid,nodev,size={size},mode={mode},uid={uid},gid={gid}")
    };
    // A file system of the container's own: a file of the host would keep attributes, times and locks for the next run.
    let second_wall = || {
        let Bytes(size) = layout::NOTHING;
        (layout::SECOND_WALL, format!("rw,noexec,nosuid,nodev,size={size},mode=0777"))
    };
    let tmpfs =
        [(layout::TMP, sized(job.limits.tmp, "1777")), (layout::HOME, sized(job.limits.home, "0700"))];
    let tmpfs = tmpfs.into_iter().chain(parts.second_wall.then(second_wall));
    Ok(HostConfig {
        auto_remove: Some(true),
        // The keeper is the first process itself; another one in front of it would outlive it.
        init: Some(false),
        runtime: parts.runtime.map(str::to_owned),
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
        // What the command says goes to herma alone, and not to the daemon's disk.
        log_config: Some(HostConfigLogConfig { typ: Some("none".to_owned()), config: None }),
        memory,
        // Memory and swap together: without this line swap is one more way to memory.
        memory_swap: memory.filter(|_| parts.facts.swap),
        pids_limit: holds(LimitName::Processes),
        nano_cpus: holds(LimitName::Cpu).map(|hundredths| hundredths.saturating_mul(10_000_000)),
        shm_size: i64::try_from(job.limits.shared_memory.0).ok(),
        tmpfs: Some(tmpfs.map(|(place, words)| (place.to_owned(), words)).collect()),
        mounts: Some(mounts(job, parts)?),
        ..HostConfig::default()
    })
}

fn mounts(job: &Job, parts: &Parts<'_>) -> io::Result<Vec<DockerMount>> {
    let read_only =
        job.mounts.iter().chain(&parts.files).map(|mount| (mount.host.as_path(), mount.inside.as_path()));
    let paths = &job.paths;
    // A socket can be called through a mount that cannot be written.
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
            // What is mounted below it on the host would come along, and older daemons leave that writable.
            bind_options: Some(MountBindOptions { non_recursive: Some(true), ..MountBindOptions::default() }),
            ..DockerMount::default()
        });
    }
    all.extend(job.hidden.iter().map(|name| hiding(name)));
    Ok(all)
}

/// What lies over a directory of the workspace that is not to be seen: nothing, which nobody can write.
fn hiding(name: &str) -> DockerMount {
    DockerMount {
        typ: Some(MountType::TMPFS),
        target: Some(layout::inside_workspace(name)),
        read_only: Some(true),
        tmpfs_options: Some(MountTmpfsOptions {
            size_bytes: i64::try_from(layout::NOTHING.0).ok(),
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

/// The same for the same description only.
fn digest(body: &ContainerCreateBody, order: Digest) -> io::Result<Digest> {
    #[derive(Serialize)]
    struct Whole<'a> {
        body: &'a ContainerCreateBody,
        order: Digest,
    }
    let bytes = serde_json_canonicalizer::to_vec(&Whole { body, order })?;
    Ok(Digest::of(&bytes))
}

/// The labels by which the containers of a run, or of all runs, are found.
pub(super) fn filter(run: Option<herma_core::RunId>) -> HashMap<String, Vec<String>> {
    let label = run.map_or_else(|| RUN_LABEL.to_owned(), |run| format!("{RUN_LABEL}={run}"));
    HashMap::from([("label".to_owned(), vec![label])])
}
