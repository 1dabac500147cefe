//! How containers end, and that nothing of them is left, whichever process is killed.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use herma_core::RunId;
use herma_destination::{Destination as _, Exit, StartError};
use rustix::process::{Pid, Signal, kill_process};

use super::daemon::Daemon;
use crate::support::{JobDirs, LONG, helper, processes_with, run_id, tell, until};

/// Starts a daemon without parent and environment, and stays.
fn lingering(mark: &str) -> String {
    format!("setsid sh -c 'touch ready; sleep 600; : {mark}' & sleep 600; : {mark}")
}

#[test]
fn no_container_stays_whichever_process_is_killed() {
    let mut daemon = Daemon::start(helper());
    the_end_of_the_command_is_the_end_of_all(&daemon);
    term_reaches_everything_inside(&daemon);
    a_kill_from_outside_ends_the_wait_with_a_reason(&daemon);
    a_kill_before_the_command_starts_is_the_containers_failure(&daemon);
    a_herma_that_is_killed_leaves_nothing(&daemon);
    a_container_that_never_started_is_reaped(&daemon);
    // Last, because it kills the daemon.
    a_daemon_that_goes_ends_the_wait_and_the_container(&mut daemon);
}

fn the_end_of_the_command_is_the_end_of_all(daemon: &Daemon) {
    let ground = JobDirs::new();
    let mark = format!("mark-{}", run_id());
    let script = format!(
        "setsid sh -c 'touch ready; sleep 600; : {mark}' & while [ ! -e ready ]; do sleep 0.01; done; exit 7"
    );
    let told = tell(&daemon.destination(), &ground.shell(&script));
    assert_eq!((told.exit.code, processes_with(&mark)), (Some(7), 0));

    fs::remove_file(ground.workspace().join("ready")).unwrap();
    let job = ground.shell(&lingering(&mark));
    let mut process = daemon.destination().start(&job).unwrap();
    until("the daemon is there", || ground.workspace().join("ready").exists());
    assert!(processes_with(&mark) >= 2);
    assert_eq!(process.kill_all().unwrap(), Exit { code: None, signal: Some(9) });
    assert_eq!((processes_with(&mark), daemon.containers(job.run_id).len()), (0, 0));
    assert_eq!(process.kill_all().unwrap().signal, Some(9), "a second time changes nothing");

    let mut process = daemon.destination().start(&ground.shell("exit 3")).unwrap();
    assert_eq!(process.wait(LONG).unwrap().unwrap().code, Some(3));
    assert_eq!(process.kill_all().unwrap().code, Some(3), "what ended by itself was not killed");
}

fn term_reaches_everything_inside(daemon: &Daemon) {
    let ground = JobDirs::new();
    let script = "trap 'wait; touch parent; exit 9' TERM
(trap 'touch child; exit 0' TERM; touch ready; while :; do sleep 0.01; done) &
while :; do sleep 0.01; done";
    let mut process = daemon.destination().start(&ground.shell(script)).unwrap();
    until("both are there", || ground.workspace().join("ready").exists());
    process.terminate();
    assert_eq!(process.wait(LONG).unwrap().unwrap().code, Some(9));
    assert!(ground.workspace().join("child").exists() && ground.workspace().join("parent").exists());
}

fn a_kill_from_outside_ends_the_wait_with_a_reason(daemon: &Daemon) {
    let ground = JobDirs::new();
    let job = ground.shell("sleep 600");
    let mut process = daemon.destination().start(&job).unwrap();
    let id = daemon.containers(job.run_id).remove(0);
    assert_eq!(process.wait(Duration::ZERO).unwrap(), None);
    // An error and no timeout: the kill ends the wait.
    let waiting = thread::spawn(move || process.wait(LONG).unwrap_err().to_string());
    daemon.say(&["kill", &id]);
    let error = waiting.join().unwrap();
    assert!(error.contains("killed from outside"), "{error}");
}

fn a_kill_before_the_command_starts_is_the_containers_failure(daemon: &Daemon) {
    let ground = JobDirs::new();
    let job = ground.shell("exit 0");
    let run = job.run_id.to_string();
    for delay in (0..3000).step_by(300).map(Duration::from_micros) {
        let killing = thread::spawn({
            let run = run.clone();
            move || {
                // The moment is over before a sleeping poller wakes up.
                let give_up = Instant::now() + LONG;
                while keeper(&run).is_none() && Instant::now() < give_up {
                    thread::yield_now();
                }
                thread::sleep(delay);
                keeper(&run).map(|keeper| kill_process(keeper, Signal::KILL))
            }
        });
        let started = daemon.destination().start(&job);
        let _ = killing.join().unwrap();
        match started {
            // It was too late.
            Ok(mut process) => drop(process.kill_all().unwrap()),
            Err(StartError::Isolation { .. }) => {}
            Err(other) => panic!("after {delay:?}: {other}"),
        }
    }
}

/// The init process of the run's container.
fn keeper(run: &str) -> Option<Pid> {
    let is = |pid: &i32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        words.get(1) == Some(&b"__keep".as_slice()) && words.contains(&run.as_bytes())
    };
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let mut numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.find(is).and_then(Pid::from_raw)
}

fn started_elsewhere(daemon: &Daemon, ground: &JobDirs, run: RunId, script: &str) -> Child {
    let kind = format!(
        "docker={},unix://{},{}",
        daemon.image(),
        daemon.socket().display(),
        daemon.path("files").display()
    );
    Command::new(helper())
        .args([&kind, &run.to_string()])
        .arg(ground.workspace())
        .args(["sh", "-c", script])
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn a_herma_that_is_killed_leaves_nothing(daemon: &Daemon) {
    let (ground, run, mark) = (JobDirs::new(), run_id(), format!("mark-{}", run_id()));
    let begun = Instant::now();
    // It writes more than any pipe buffer holds, and there is no reader: the keeper must not block on its last
    // message.
    let script = format!("(while :; do echo {mark}; done) & {}", lingering(&mark));
    let mut herma = started_elsewhere(daemon, &ground, run, &script);
    until("the daemon is there", || ground.workspace().join("ready").exists());
    let start = begun.elapsed();
    assert_eq!(daemon.containers(run).len(), 1);
    herma.kill().unwrap();
    herma.wait().unwrap();
    until("everything is dead", || processes_with(&mark) == 0);
    until("the container is removed", || daemon.containers(run).is_empty());

    // At any moment of a start: a container that is created and not started is left for the reaper, never a running
    // one.
    for tenth in 1..=10 {
        let (ground, run) = (JobDirs::new(), run_id());
        let mut herma = started_elsewhere(daemon, &ground, run, &lingering(&mark));
        thread::sleep(start * tenth / 10);
        herma.kill().unwrap();
        herma.wait().unwrap();
        until("nothing runs", || {
            let label = format!("label=herma.run={run}");
            daemon.say(&["ps", "--quiet", "--filter", &label]).is_empty()
        });
        // A request in flight when herma died may still create one.
        daemon.reap(run).unwrap();
        assert_eq!(daemon.containers(run), [""; 0]);
        until("no process is left", || processes_with(&mark) == 0);
    }
}

fn a_container_that_never_started_is_reaped(daemon: &Daemon) {
    let (run, other) = (run_id(), run_id());
    for run in [run, other] {
        let label = format!("herma.run={run}");
        daemon.say(&[
            "create",
            "--label",
            &label,
            "--network",
            "none",
            "--entrypoint",
            "/bin/sh",
            daemon.image(),
        ]);
    }
    let docker = daemon.destination();
    let mut expected = vec![run, other];
    expected.sort_unstable();
    assert_eq!(docker.runs().unwrap(), expected);
    assert_eq!(daemon.reap(run).unwrap(), 1);
    assert_eq!(docker.runs().unwrap(), [other], "another run's containers are left alone");
    assert_eq!((daemon.reap(run).unwrap(), daemon.reap(other).unwrap()), (0, 1));
    assert_eq!(docker.runs().unwrap(), []);
}

fn a_daemon_that_goes_ends_the_wait_and_the_container(daemon: &mut Daemon) {
    let mark = format!("mark-{}", run_id());
    // Killed, it cannot end its containers: then herma does.
    for end in [Daemon::kill, Daemon::stop] {
        let ground = JobDirs::new();
        let docker = daemon.destination();
        let job = ground.shell(&lingering(&mark));
        let mut process = docker.start(&job).unwrap();
        until("the daemon is there", || ground.workspace().join("ready").exists());
        end(daemon);
        let error = process.wait(LONG).unwrap_err().to_string();
        assert!(error.contains("killed from outside") || error.contains("is unknown"), "{error}");
        process.kill_all().unwrap();
        assert_eq!(processes_with(&mark), 0);
        let refused = docker.start(&ground.shell("true")).err().unwrap().to_string();
        assert!(
            refused.contains("there is no Docker socket") || refused.contains("nothing listens"),
            "{refused}"
        );
        daemon.restart();
        until("the container is removed", || daemon.containers(job.run_id).is_empty());
    }
}
