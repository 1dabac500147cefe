//! The confinement probes, in a real sandbox and without isolation.

use std::fs;

use herma_core::CancellationToken;
use herma_destination::probe::{self, ProbeError, ProbeSite};
use herma_destination::{Confinement, Destination, Host, Job, Mount};

use crate::support::{JobDirs, host, sandbox};

fn probed(destination: &dyn Destination, ground: &JobDirs, job: &Job) -> Confinement {
    try_probed(destination, ground, job).unwrap()
}

pub(crate) fn try_probed(
    destination: &dyn Destination,
    ground: &JobDirs,
    job: &Job,
) -> Result<Confinement, ProbeError> {
    let homes = ["herma", "home", "scratch"].map(|name| ground.dir.path().join(name));
    for home in &homes {
        fs::create_dir_all(home).unwrap();
    }
    let [herma_home, user_home, scratch] = &homes;
    let readiness = destination.readiness().unwrap();
    let cancellation = &CancellationToken::default();
    let site = ProbeSite { scratch, herma_home, user_home, cancellation };
    let found = probe::probe(destination, &readiness, job, site);
    // The caller removes the scratch directory, and can do so at once.
    fs::remove_dir_all(scratch).unwrap();
    for home in [herma_home, user_home] {
        assert_eq!(fs::read_dir(home).unwrap().count(), 0, "nothing is left in {}", home.display());
    }
    found
}

fn broken(confinement: &Confinement) -> Vec<&str> {
    confinement.broken().iter().map(|probe| probe.name.as_str()).collect()
}

#[test]
fn everything_is_denied_in_the_sandbox() {
    let ground = JobDirs::new();
    let mut job = ground.job(&["x"]);
    job.mounts = vec![Mount { host: ground.workspace(), inside: "/opt/tool".into() }];
    let found = probed(&sandbox(), &ground, &job);
    assert_eq!(found.broken(), Vec::<&probe::ProbeResult>::new());
    assert_eq!(found.probes.len(), probe::rows().count());
    assert!(!found.walls.is_empty());
    let text = serde_json::to_string(&found).unwrap();
    assert!(text.contains("\"schema\":\"herma.confinement/v2\""), "{text}");
    assert_eq!(serde_json::from_str::<Confinement>(&text).unwrap(), found);
    assert_eq!(found.limits, sandbox().limits(&job.limits));
    assert!(text.contains("\"wall\":\"seccomp\"") && text.contains("\"by\":\"rlimit\""), "{text}");
    assert!(!text.contains(ground.dir.path().to_str().unwrap()), "no path of the host is shown: {text}");
}

#[test]
fn a_mount_that_shows_hermas_home_is_found() {
    let ground = JobDirs::new();
    let mut job = ground.job(&["x"]);
    let home = ground.dir.path().join("herma");
    fs::create_dir_all(&home).unwrap();
    job.mounts = vec![Mount { host: home.clone(), inside: home }];
    assert_eq!(
        broken(&probed(&sandbox(), &ground, &job)),
        ["read_herma_home", "list_other_run", "git_push", "reach_admin_socket"]
    );
}

#[test]
fn a_mount_that_shows_the_users_home_is_found() {
    let ground = JobDirs::new();
    let mut job = ground.job(&["x"]);
    let home = ground.dir.path().join("home");
    fs::create_dir_all(&home).unwrap();
    job.mounts = vec![Mount { host: home.clone(), inside: home }];
    assert_eq!(broken(&probed(&sandbox(), &ground, &job)), ["read_user_home"]);
}

#[test]
fn on_the_host_the_probes_detect_that_there_is_no_isolation() {
    let ground = JobDirs::new();
    let found = probed(&host(), &ground, &ground.job(&["x"]));
    let names = broken(&found);
    for name in [
        "read_only_system",
        "read_herma_home",
        "read_user_home",
        "list_other_run",
        "git_push",
        "reach_admin_socket",
        "reach_host_socket",
        "reach_abstract_socket",
        "connect_host_loopback",
        "send_datagram",
        "see_host_process",
        "signal_host_process",
        "trace_host_process",
        "share_user_namespace",
        "share_ipc_namespace",
        "share_uts_namespace",
        "share_cgroup_namespace",
        "new_privileges",
        "filter",
        "trace_sibling",
        "io_uring",
        "file_lease",
        "aio_context",
        "socket_filter",
        "keyring",
        "kernel_messages",
        "limits",
        "exceed_memory",
        "exceed_processes",
    ] {
        assert!(names.contains(&name), "{name} is not among {names:?}");
    }
    assert!(found.walls.is_empty());
}

#[test]
fn probes_that_cannot_be_run_are_an_error() {
    let ground = JobDirs::new();
    let dir = ground.dir.path();
    let missing = dir.join("missing");
    let readiness = sandbox().readiness().unwrap();
    for (scratch, herma_home, user_home) in
        [(missing.as_path(), dir, dir), (dir, missing.as_path(), dir), (dir, dir, missing.as_path())]
    {
        let cancellation = &CancellationToken::default();
        let site = ProbeSite { scratch, herma_home, user_home, cancellation };
        assert!(probe::probe(&sandbox(), &readiness, &ground.job(&["x"]), site).is_err());
    }
}

/// The error for a fake probe program that reports these rows as denied and attempts nothing.
fn why_no_answer(says: impl Iterator<Item = probe::ProbeRow>, then: &str) -> String {
    let ground = JobDirs::new();
    let dir = ground.dir.path();
    let result = |row: probe::ProbeRow| probe::ProbeResult {
        name: row.name.to_owned(),
        what: row.what.to_owned(),
        wall: row.layer,
        denied: true,
        observed: "trust me".to_owned(),
    };
    let results: Vec<_> = says.map(|row| serde_json::to_string(&result(row)).unwrap()).collect();
    let liar = dir.join("liar");
    fs::write(&liar, format!("#!/bin/sh\ncat <<'END'\n{}\nEND\n{then}\n", results.join("\n"))).unwrap();
    fs::set_permissions(&liar, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let host = Host::new(liar);
    let cancellation = &CancellationToken::default();
    let site = ProbeSite { scratch: dir, herma_home: dir, user_home: dir, cancellation };
    let error = probe::probe(&host, &host.readiness().unwrap(), &ground.job(&["x"]), site).unwrap_err();
    error.to_string()
}

#[test]
fn results_without_the_marker_in_the_workspace_are_rejected() {
    let why = why_no_answer(probe::rows(), "");
    assert!(why.contains("marker"), "{why}");
}

#[test]
fn a_killed_probe_counts_as_denied_only_if_the_kernel_counted_an_oom_kill() {
    let why = why_no_answer(probe::rows().filter(|row| row.name == "exceed_processes"), "kill -9 $$");
    assert!(why.contains("ended by signal 9"), "{why}");
}
