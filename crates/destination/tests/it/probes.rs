//! The confinement probes, in a real sandbox and where there are no walls.

use std::fs;
use std::time::Instant;

use herma_destination::probe::{self, Grounds};
use herma_destination::{Confinement, Destination, Host, Job, Mount};

use crate::support::{Ground, host, sandbox};

fn probed(destination: &dyn Destination, ground: &Ground, job: &Job) -> Confinement {
    let homes = ["herma", "home", "scratch"].map(|name| ground.dir.path().join(name));
    for home in &homes {
        fs::create_dir_all(home).unwrap();
    }
    let [herma_home, user_home, scratch] = &homes;
    let readiness = destination.readiness().unwrap();
    let begun = Instant::now();
    let found =
        probe::probe(destination, &readiness, job, Grounds { scratch, herma_home, user_home }).unwrap();
    assert!(begun.elapsed().as_secs() < 5, "took {:?}", begun.elapsed());
    for home in &homes {
        assert_eq!(fs::read_dir(home).unwrap().count(), 0, "nothing is left in {}", home.display());
    }
    found
}

fn broken(confinement: &Confinement) -> Vec<&str> {
    confinement.broken().iter().map(|probe| probe.name.as_str()).collect()
}

#[test]
fn everything_is_denied_in_the_sandbox() {
    let ground = Ground::new();
    let mut job = ground.job(&["x"]);
    job.mounts = vec![Mount { host: ground.workspace(), inside: "/opt/tool".into() }];
    let found = probed(&sandbox(), &ground, &job);
    assert_eq!(found.broken(), Vec::<&probe::ProbeResult>::new());
    assert_eq!(found.probes.len(), probe::names().count());
    assert!(!found.walls.is_empty());
    let text = serde_json::to_string(&found).unwrap();
    assert!(text.contains("\"schema\":\"herma.confinement/v1\""), "{text}");
    assert_eq!(serde_json::from_str::<Confinement>(&text).unwrap(), found);
}

#[test]
fn a_mount_that_shows_hermas_home_is_found() {
    let ground = Ground::new();
    let mut job = ground.job(&["x"]);
    let home = ground.dir.path().join("herma");
    fs::create_dir_all(&home).unwrap();
    job.mounts = vec![Mount { host: home.clone(), inside: home }];
    assert_eq!(broken(&probed(&sandbox(), &ground, &job)), ["read_herma_home", "list_other_run"]);
}

#[test]
fn a_mount_that_shows_the_users_home_is_found() {
    let ground = Ground::new();
    let mut job = ground.job(&["x"]);
    let home = ground.dir.path().join("home");
    fs::create_dir_all(&home).unwrap();
    job.mounts = vec![Mount { host: home.clone(), inside: home }];
    assert_eq!(broken(&probed(&sandbox(), &ground, &job)), ["read_user_home"]);
}

#[test]
fn on_the_host_the_probes_see_that_there_are_no_walls() {
    let ground = Ground::new();
    let found = probed(&host(), &ground, &ground.job(&["x"]));
    let names = broken(&found);
    for name in
        ["read_herma_home", "read_user_home", "list_other_run", "connect_host_loopback", "see_host_process"]
    {
        assert!(names.contains(&name), "{name} is not among {names:?}");
    }
    assert!(found.walls.is_empty());
}

#[test]
fn probes_that_cannot_be_run_are_an_error() {
    let ground = Ground::new();
    let dir = ground.dir.path();
    let missing = dir.join("missing");
    let readiness = sandbox().readiness().unwrap();
    for (scratch, herma_home, user_home) in
        [(missing.as_path(), dir, dir), (dir, missing.as_path(), dir), (dir, dir, missing.as_path())]
    {
        let grounds = Grounds { scratch, herma_home, user_home };
        assert!(probe::probe(&sandbox(), &readiness, &ground.job(&["x"]), grounds).is_err());
    }
}

#[test]
fn an_answer_without_the_sign_in_the_workspace_is_none() {
    let ground = Ground::new();
    let dir = ground.dir.path();
    // Says that everything is denied, and tries nothing.
    let result = |(name, what): (&str, &str)| probe::ProbeResult {
        name: name.to_owned(),
        what: what.to_owned(),
        denied: true,
        observed: "trust me".to_owned(),
    };
    let results: Vec<_> = probe::names().map(result).collect();
    let liar = dir.join("liar");
    fs::write(&liar, format!("#!/bin/sh\ncat <<'END'\n{}\nEND\n", serde_json::to_string(&results).unwrap()))
        .unwrap();
    fs::set_permissions(&liar, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let host = Host::new(liar);
    let grounds = Grounds { scratch: dir, herma_home: dir, user_home: dir };
    let error = probe::probe(&host, &host.readiness().unwrap(), &ground.job(&["x"]), grounds).unwrap_err();
    assert!(error.to_string().contains("sign"), "{error}");
}
