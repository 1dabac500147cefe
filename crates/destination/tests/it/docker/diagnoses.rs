//! Each reason why Docker cannot be used has its own message and next step.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::thread;

use herma_destination::{Destination as _, Docker, DockerOptions};

use super::daemon::Daemon;
use crate::support::{JobDirs, helper, run_id};

const NOWHERE: &str = "team/agent@sha256:0000000000000000000000000000000000000000000000000000000000000000";

fn options(ground: &JobDirs, socket: &str) -> DockerOptions {
    DockerOptions {
        image: Some(NOWHERE.parse().unwrap()),
        socket: Some(socket.to_owned()),
        runtime: None,
        files: ground.dir.path().join("files"),
    }
}

/// The message, with the test's directory replaced.
fn said(ground: &JobDirs, options: DockerOptions) -> String {
    let docker = Docker::new(helper(), options);
    let unready = docker.readiness().unwrap_err();
    let refused = docker.start(&ground.shell("true")).err().unwrap();
    assert_eq!(refused.to_string(), unready.to_string(), "a start is refused for the same reason");
    assert_eq!(docker.rehearse().unwrap_err(), unready);
    unready.to_string().replace(ground.dir.path().to_str().unwrap(), "HERE")
}

fn at(ground: &JobDirs, name: &str) -> String {
    said(ground, options(ground, &format!("unix://{}", ground.dir.path().join(name).display())))
}

#[test]
fn no_socket_a_dead_daemon_and_a_wrong_socket_are_told_apart() {
    let ground = JobDirs::new();
    assert_eq!(
        at(&ground, "docker.sock"),
        "there is no Docker socket at HERE/docker.sock: if Docker is not installed: `apt install docker.io` (or dnf, \
         pacman, zypper); if it is, name the socket that it listens on: DOCKER_HOST=unix:///path/to/docker.sock"
    );
    drop(UnixListener::bind(ground.dir.path().join("dead.sock")).unwrap());
    assert_eq!(
        at(&ground, "dead.sock"),
        "the Docker daemon does not answer at HERE/dead.sock: the socket exists, but nothing listens on it: start it: \
         `systemctl start docker`; if it does not stay up, `journalctl -u docker` says why"
    );
    let wrong = "name Docker's own socket: DOCKER_HOST=unix:///var/run/docker.sock (`docker context ls` lists what is \
                 known)";
    fs::write(ground.dir.path().join("file"), "").unwrap();
    assert_eq!(
        at(&ground, "file"),
        format!("what is at HERE/file is not Docker: it is not a socket: {wrong}")
    );
    for (name, answer) in [
        ("rude.sock", ""),
        ("web.sock", "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"),
        ("json.sock", "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"),
        ("none.sock", "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"),
    ] {
        answering(&ground.dir.path().join(name), answer);
        let said = at(&ground, name);
        assert!(said.starts_with(&format!("what is at HERE/{name} is not Docker: ")), "{said}");
        assert!(said.ends_with(wrong), "{said}");
    }
    assert_eq!(
        said(&ground, options(&ground, "tcp://192.0.2.1:2375")),
        "`tcp://192.0.2.1:2375` is not a Unix socket: name one, as in DOCKER_HOST=unix:///var/run/docker.sock: herma \
         mounts directories and sockets of this machine, so that the daemon must run on it"
    );
}

/// Another server, which gives every request the same response.
fn answering(socket: &Path, answer: &'static str) {
    let listener = UnixListener::bind(socket).unwrap();
    thread::spawn(move || {
        for caller in listener.incoming().flatten() {
            let mut caller = caller;
            let _ = caller.read(&mut [0; 4096]);
            let _ = caller.write_all(answer.as_bytes());
        }
    });
}

#[test]
fn a_server_that_never_answers_is_not_docker() {
    let ground = JobDirs::new();
    let _silent = UnixListener::bind(ground.dir.path().join("silent.sock")).unwrap();
    let unready =
        Docker::new(helper(), options(&ground, ground.dir.path().join("silent.sock").to_str().unwrap()));
    let said = unready.readiness().unwrap_err().to_string();
    assert!(said.contains("is not Docker: no answer within 5 seconds"), "{said}");
}

#[test]
fn a_socket_of_another_user_is_a_permission_problem() {
    let ground = JobDirs::new();
    let place = ground.dir.path();
    fs::set_permissions(place, fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(ground.workspace(), fs::Permissions::from_mode(0o777)).unwrap();
    let _listener = UnixListener::bind(place.join("docker.sock")).unwrap();
    fs::set_permissions(place.join("docker.sock"), fs::Permissions::from_mode(0o660)).unwrap();
    fs::copy(helper(), place.join("helper")).unwrap();
    let kind = format!("docker={NOWHERE},{0}/docker.sock,{0}/files", place.display());
    // A user without access, also where the tests run as root.
    let output = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .arg(place.join("helper"))
        .args([&kind, &run_id().to_string()])
        .arg(ground.workspace())
        .arg("true")
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap().replace(place.to_str().unwrap(), "HERE");
    assert_eq!(
        said,
        "user 65534 may not use the Docker socket at HERE/docker.sock: `sudo usermod -aG docker $USER`, then log in \
         again. Mind that who may use Docker is as good as root on this machine; the destination `sandbox` needs no \
         such right\n"
    );
}

#[test]
fn an_image_or_a_runtime_that_docker_does_not_have_is_named() {
    let daemon = Daemon::start(helper());
    let ground = JobDirs::new();
    let ready = daemon.destination().rehearse().unwrap();
    assert!(ready.detail.starts_with("Docker ") && ready.detail.contains(daemon.image()), "{}", ready.detail);
    assert!(ready.walls.iter().any(|wall| wall.contains("memory by cgroup")), "{:?}", ready.walls);

    let with = |change: &dyn Fn(&mut DockerOptions)| {
        let mut options = daemon.options();
        change(&mut options);
        said(&ground, options)
    };
    assert_eq!(
        with(&|options| options.image = Some(NOWHERE.parse().unwrap())),
        format!("Docker does not have the image {NOWHERE}: `docker pull {NOWHERE}`")
    );
    let id = NOWHERE.split_once('@').unwrap().1;
    assert_eq!(
        with(&|options| options.image = Some(id.parse().unwrap())),
        format!(
            "Docker does not have the image {id}: an image that is named by its id alone cannot be pulled: build it or \
             `docker load` it here"
        )
    );
    let runtime = with(&|options| options.runtime = Some("runsc".to_owned()));
    assert!(runtime.starts_with("Docker has no runtime `runsc`; it has "), "{runtime}");
    assert!(runtime.contains("runc") && runtime.contains("`runsc install`"), "{runtime}");
    let volumes = daemon.import(&["VOLUME /data"]);
    assert_eq!(
        with(&|options| options.image = Some(volumes.parse().unwrap())),
        format!(
            "the image {volumes} makes volumes at /data: build it without VOLUME: they would be places to write in that \
             no limit holds"
        )
    );
    // An image in which herma's own binary cannot run.
    fs::remove_dir_all(daemon.path("tree")).unwrap();
    fs::create_dir(daemon.path("tree")).unwrap();
    let bare = daemon.import(&[]);
    let docker =
        Docker::new(helper(), DockerOptions { image: Some(bare.parse().unwrap()), ..daemon.options() });
    let unready = docker.rehearse().unwrap_err();
    assert!(
        unready.what.starts_with(&format!("no container can be started from the image {bare}")),
        "{unready}"
    );
    assert!(unready.next_step.contains("glibc"), "{unready}");
    assert_eq!(daemon.say(&["ps", "--all", "--quiet"]), "", "and nothing is left of the attempt");
}
