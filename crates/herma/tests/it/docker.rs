//! Runs in containers: with a Docker daemon of the test's own, and without one.

#[path = "../../../destination/tests/it/docker/daemon.rs"]
pub(crate) mod daemon;

use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, Instant};

use herma_core::Blocker;
use herma_core::engine::DestinationKind;
use herma_core::environment::EnvironmentRecord;
use herma_destination::Confinement;
use herma_evidence::layout;

use self::daemon::Daemon;
use crate::fresh_checkout::LEAVES_A_DAEMON;
use crate::kit::{Finished, HERMA, Herma, ON_REPOSITORY, Repository, fix_and, run_tool, until};

const NOWHERE: &str = "team/agent@sha256:0000000000000000000000000000000000000000000000000000000000000000";
const RUN: [&str; 5] = ["run", "fixture:string-slugify", "--json", "--destination", "docker"];
const NOBODY: u32 = 65534;

/// herma that takes this image at this socket.
pub(crate) fn herma(image: &str, socket: &Path) -> Herma {
    let mut herma = Herma::new();
    herma.set("DOCKER_HOST", format!("unix://{}", socket.display()));
    herma.file("home/settings.yaml", format!("docker_image: {image}\n"));
    herma
}

fn confinement(run: &Finished) -> Confinement {
    serde_json::from_slice(&run.bundle.read(layout::CONFINEMENT)).unwrap()
}

#[test]
fn runs_take_place_in_containers_and_nothing_of_them_stays() {
    let daemon = Daemon::start(HERMA.into());
    let herma = herma(daemon.image(), &daemon.socket());
    a_run_passes_and_says_where_it_took_place(&daemon, &herma);
    a_process_left_by_one_command_does_not_affect_the_next(&herma);
    a_repositorys_choice_holds_in_its_worktrees(&daemon);
    every_probe_is_denied(&herma);
    a_container_that_somebody_kills_is_a_failure_with_a_reason(&daemon, &herma);
    a_herma_that_is_killed_leaves_a_report_and_no_container(&daemon, &herma);
    a_missing_image_is_said(&daemon);
    an_environment_is_built_and_used_in_containers(&herma);
    let left = daemon.say(&["ps", "--all", "--quiet", "--filter", "label=herma.run"]);
    assert_eq!(left, "", "no container is left");
}

fn a_run_passes_and_says_where_it_took_place(daemon: &Daemon, herma: &Herma) {
    let run = herma.finished(&[&RUN[..], &["--script", "fix"]].concat());
    run.assert_pass();
    assert_eq!(run.report.destination, DestinationKind::Docker);
    let confinement = confinement(&run);
    assert_eq!(confinement.destination, DestinationKind::Docker);
    assert!(confinement.broken().is_empty() && confinement.probes.len() > 40, "{confinement:#?}");
    let image = |wall: &String| wall.contains(daemon.image());
    assert!(run.report.walls.iter().any(image), "the report names the image: {:#?}", run.report.walls);
    assert_eq!(run.report.walls, confinement.walls);
    // herma as root lends its files to another user inside; all of them are its own again.
    let failed = herma.finished(&[&RUN[..], &["--script", "breaks-test"]].concat());
    failed.assert_only(Blocker::VerificationFailed);
}

/// The image brings the tools; layers, copies, preflight and shell are as in the sandbox.
fn an_environment_is_built_and_used_in_containers(herma: &Herma) {
    let environment = r#"{ setup: ["echo made > dep && echo made > $HOME/dep"], cache: [dep] }"#;
    // The image has little but a shell.
    let look = "read a < dep; read b < $HOME/dep; echo $a $b";
    let verify =
        format!("[{:?}, \"sh tests/slugify_test.sh\"]", format!("{look}; [ \"$a $b\" = 'made made' ]"));
    let terms = [("environment", environment), ("verify", &*verify), ("destination", "docker")];
    let poison = format!("- shell: {:?}", format!("{look}; echo poisoned > dep; echo poisoned > $HOME/dep"));
    for reused in [false, true] {
        let run = herma.play(&fix_and(&[&poison]), &terms);
        run.assert_pass();
        assert!(run.engine_said().contains("made made\n"), "{}", run.engine_said());
        assert_eq!(run.changed(), ["slugify.sh"]);
        let record: EnvironmentRecord = serde_json::from_str(&run.bundle.text("environment.json")).unwrap();
        assert!(record.layers.iter().all(|layer| layer.reused == reused), "{record:#?}");
        assert!(record.layers.iter().all(|layer| layer.destination.starts_with("docker ")), "{record:#?}");
    }
    let contract = herma.contract(&terms);
    let typed = format!("{look}\nwhile read line; do echo ${{line%%:*}}; done < /proc/net/dev; exit\n");
    let ended = herma.run_typing(&typed, &["env", "shell", contract.to_str().unwrap()]);
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    assert!(ended.stdout.starts_with("made made\n") && ended.stdout.ends_with("\nlo\n"), "{ended:#?}");
}

fn a_process_left_by_one_command_does_not_affect_the_next(herma: &Herma) {
    let verify = format!("[{LEAVES_A_DAEMON:?}, \"sleep 1; sh tests/slugify_test.sh\"]");
    herma.play("fix", &[("verify", &verify), ("destination", "docker")]).assert_pass();
    let quick = LEAVES_A_DAEMON.replace("sleep 0.5; ", "") + "; sleep 0.5";
    let verify = format!("[{quick:?}, \"sh tests/slugify_test.sh\"]");
    let run = herma.play("fix", &[("verify", &verify), ("destination", "docker")]);
    run.assert_only(Blocker::VerificationChangedFiles);
}

/// Chosen in the repository, it holds for a run on it that says nothing, also in a worktree; whoever says more wins.
fn a_repositorys_choice_holds_in_its_worktrees(daemon: &Daemon) {
    let mut herma = Herma::new();
    herma.set("DOCKER_HOST", format!("unix://{}", daemon.socket().display()));
    let repository = Repository::of_fixture(&herma, "string-slugify");
    repository.git(&["worktree", "add", "-q", "-b", "other", herma.at("tree").to_str().unwrap()]);
    let tree = herma.at("tree");
    let set = ["destination", "set", "docker", "--image", daemon.image(), "--json", "--repo", "repo"];
    assert_eq!(herma.json(&set)["image"], daemon.image());
    let before = repository.picture();
    let shown = herma.json(&[
        "destination".as_ref(),
        "show".as_ref(),
        "--json".as_ref(),
        "--repo".as_ref(),
        tree.as_os_str(),
    ]);
    assert_eq!((&shown["destination"], &shown["chosen"]), (&"docker".into(), &true.into()), "{shown}");

    let on_tree = [("target", "{ repo: ../tree }"), ON_REPOSITORY[1]];
    let run = herma.play("fix", &on_tree);
    run.assert_pass();
    assert_eq!(run.report.destination, DestinationKind::Docker);
    let run = herma.play("fix", &[&ON_REPOSITORY[..], &[("destination", "sandbox")]].concat());
    run.assert_pass();
    assert_eq!(run.report.destination, DestinationKind::Sandbox, "the contract wins");
    let contract = herma.contract(&ON_REPOSITORY);
    let script = herma.script("fix");
    let words = ["run", contract.to_str().unwrap(), "--json", "--script", script.to_str().unwrap()];
    let run = herma.finished(&[&words[..], &["--destination", "host"]].concat());
    assert_eq!(run.report.destination, DestinationKind::Host, "the flag wins");
    assert_eq!(repository.picture(), before, "none of it is in the repository");
}

fn every_probe_is_denied(herma: &Herma) {
    let found = herma.json(&["probe", "--destination", "docker", "--json"]);
    assert_eq!((&found["ok"], &found["destination"]), (&true.into(), &"docker".into()), "{found:#}");
    let destinations = herma.json(&["destinations", "--json"]);
    let docker = &destinations["destinations"][2];
    assert_eq!((&docker["name"], &docker["ready"]), (&"docker".into(), &true.into()), "{destinations:#}");
}

fn a_container_that_somebody_kills_is_a_failure_with_a_reason(daemon: &Daemon, herma: &Herma) {
    let script = herma.script("steps: [{ say: at work }, { sleep: 600s }]");
    let before = herma.runs();
    let started = herma.start(&[&RUN[..], &["--script", script.to_str().unwrap()]].concat());
    let mut run = None;
    until("the engine says something", || {
        run = herma.runs().into_iter().find(|run| !before.contains(run));
        let said = run.map(|run| herma.bundle(run).dir.join(layout::ENGINE_STDOUT));
        said.and_then(|said| std::fs::read_to_string(said).ok()).is_some_and(|said| said.contains("at work"))
    });
    let run = run.unwrap();
    let found = daemon.containers(run);
    let [container] = &found[..] else { panic!("{found:?}") };
    daemon.say(&["kill", container]);
    let killed = Instant::now();
    let ended = started.end();
    let took = killed.elapsed();
    let bundle = herma.bundle(run);
    herma.assert_verifies(&bundle);
    let finished = Finished { report: bundle.report(), ended, bundle };
    let blockers = &finished.report.blockers;
    let [failed, no_diff] = &blockers[..] else { panic!("{blockers:#?}") };
    assert_eq!((failed.blocker, no_diff.blocker), (Blocker::EngineFailed, Blocker::NoDiff), "{blockers:#?}");
    assert!(failed.detail.contains("killed from outside"), "{blockers:#?}");
    assert_eq!(finished.ended.code, Some(1), "{:#?}", finished.ended);
    assert!(took < Duration::from_secs(2), "{took:?}");
}

fn a_herma_that_is_killed_leaves_a_report_and_no_container(daemon: &Daemon, herma: &Herma) {
    let before = herma.runs();
    let ended = herma.run_with_fault("kill:collect", &[&RUN[..], &["--script", "fix"]].concat());
    assert!(ended.was_killed(), "{ended:#?}");
    let script = herma.script("steps: [{ say: at work }, { sleep: 600s }]");
    let started = herma.start(&[&RUN[..], &["--script", script.to_str().unwrap()]].concat());
    until("there is a container", || {
        herma.runs().into_iter().any(|run| !before.contains(&run) && !daemon.containers(run).is_empty())
    });
    started.kill();
    assert_eq!(herma.run(&["runs"]).code, Some(0));
    for run in herma.runs().into_iter().filter(|run| !before.contains(run)) {
        let bundle = herma.bundle(run);
        assert_eq!(bundle.report().blockers[0].blocker, Blocker::Interrupted);
        herma.assert_verifies(&bundle);
        herma.assert_only_the_bundle_is_left(run);
        assert_eq!(daemon.containers(run), Vec::<String>::new());
    }
}

fn a_missing_image_is_said(daemon: &Daemon) {
    let said = blocked(&herma(NOWHERE, &daemon.socket()));
    assert!(said.starts_with(&format!("Docker does not have the image {NOWHERE}")), "{said}");
    assert!(said.ends_with(&format!("`docker pull {NOWHERE}`")), "{said}");
}

/// The blocker of a run: the problem and the next step.
fn blocked(herma: &Herma) -> String {
    let run = herma.finished(&[&RUN[..], &["--script", "fix"]].concat());
    run.assert_only(Blocker::DestinationUnready);
    let record = &run.report.blockers[0];
    let what = record.detail.strip_prefix("gate destination_ready: ").unwrap();
    format!("{what} / {}", record.next_step)
}

#[test]
fn without_docker_a_run_is_blocked_with_a_message_for_each_reason() {
    let none = Herma::new();
    let said = blocked(&none);
    assert!(said.starts_with("no image is named") && said.contains("herma destination set docker"), "{said}");

    let place = none.at("sockets");
    std::fs::create_dir(&place).unwrap();
    let said = blocked(&herma(NOWHERE, &place.join("docker.sock")));
    assert!(
        said.starts_with("there is no Docker socket") && said.contains("apt install docker.io"),
        "{said}"
    );

    drop(UnixListener::bind(place.join("dead.sock")).unwrap());
    let said = blocked(&herma(NOWHERE, &place.join("dead.sock")));
    assert!(
        said.starts_with("the Docker daemon does not answer") && said.contains("systemctl start"),
        "{said}"
    );

    let wrong = none.file("sockets/wrong", "");
    let said = blocked(&herma(NOWHERE, &wrong));
    assert!(said.starts_with("what is at") && said.contains("is not Docker"), "{said}");
}

#[test]
fn a_user_without_access_to_docker_gets_a_message() {
    let mut herma = herma(NOWHERE, Path::new("/"));
    run_tool("chmod", &["755".as_ref(), herma.at("").as_os_str()], &[]);
    let own = herma.at("own");
    let _settings = herma.file("own/home/settings.yaml", format!("docker_image: {NOWHERE}\n"));
    herma.file("own/home/herma-home", "herma-home 1\n");
    std::fs::set_permissions(own.join("home"), std::fs::Permissions::from_mode(0o700)).unwrap();
    let binary = herma.program("own/herma", Path::new(HERMA));
    let socket = herma.at("docker.sock");
    let _listener = UnixListener::bind(&socket).unwrap();
    std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o660)).unwrap();
    for path in [own.clone(), own.join("home")] {
        chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    herma.set("DOCKER_HOST", format!("unix://{}", socket.display()));
    herma.set("HOME", &own);
    herma.set_home(&own.join("home"));
    herma.wrap(&["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]);
    herma.set_binary(&binary);
    let said = blocked(&herma);
    assert!(said.starts_with("user 65534 may not use the Docker socket"), "{said}");
    assert!(said.contains("usermod -aG docker"), "{said}");
}
