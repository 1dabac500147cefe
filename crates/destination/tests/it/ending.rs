//! How processes end, and that none of them survives.

use std::fs;
use std::time::{Duration, Instant};

use herma_destination::{Destination as _, Exit, Mount, StartError, leftovers};

use crate::support::{JobDirs, LONG, both, processes_with, run_id, sandbox, streams, tell, until};

/// Starts a classical daemon (fork, setsid, fork) that clears its environment if `forget`, ignores SIGTERM and
/// reports that it runs.
fn daemon(mark: &str, forget: bool) -> String {
    format!(
        "import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        script = 'import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); open(\"ready\", \"w\").close(); time.sleep(600)'
        args = ['/usr/bin/python3', '-c', script, '{mark}']
        os.execve(args[0], args, {{}} if {forget} else dict(os.environ))
    os._exit(0)
while not os.path.exists('ready'): time.sleep(0.005)
",
        forget = if forget { "True" } else { "False" }
    )
}

#[test]
fn a_daemon_dies_with_kill_all_while_its_starter_lives() {
    for (destination, forget) in both().into_iter().zip([false, true]) {
        let ground = JobDirs::new();
        let mark = format!("mark-{}", run_id());
        let job = ground.python(&format!("{}\ntime.sleep(600)", daemon(&mark, forget)));
        let mut process = destination.start(&job).unwrap();
        until("the daemon is there", || ground.workspace().join("ready").exists());
        assert_eq!(process.wait(Duration::ZERO).unwrap(), None);
        assert!(processes_with(&mark) >= 2);
        assert_eq!(process.kill_all().unwrap(), Exit { code: None, signal: Some(9) });
        assert_eq!(processes_with(&mark), 0, "{:?}", destination.kind());
        assert_eq!(process.kill_all().unwrap().signal, Some(9), "a second time changes nothing");
    }
}

#[test]
fn a_daemon_dies_with_kill_all_after_its_starter_has_exited() {
    for (destination, forget) in both().into_iter().zip([false, true]) {
        let ground = JobDirs::new();
        let mark = format!("mark-{}", run_id());
        let job = ground.python(&format!("{}\nsys.exit(7)", daemon(&mark, forget)));
        let mut process = destination.start(&job).unwrap();
        assert_eq!(process.wait(LONG).unwrap(), Some(Exit { code: Some(7), signal: None }));
        assert_eq!(process.kill_all().unwrap(), Exit { code: Some(7), signal: None });
        assert_eq!(processes_with(&mark), 0, "{:?}", destination.kind());
        assert!(fs::exists(ground.workspace().join("ready")).unwrap());
    }
}

#[test]
fn dropping_a_process_kills_it_and_its_daemon() {
    for destination in both() {
        let ground = JobDirs::new();
        let mark = format!("mark-{}", run_id());
        let job = ground.python(&format!("{}\ntime.sleep(600)", daemon(&mark, false)));
        let process = destination.start(&job).unwrap();
        until("the daemon is there", || ground.workspace().join("ready").exists());
        drop(process);
        assert_eq!(processes_with(&mark), 0, "{:?}", destination.kind());
    }
}

#[test]
fn terminate_lets_a_process_clean_up() {
    for destination in both() {
        let ground = JobDirs::new();
        let job =
            ground.shell("trap 'echo bye > left; exit 3' TERM; touch ready; while :; do sleep 0.05; done");
        let mut process = destination.start(&job).unwrap();
        until("it is there", || ground.workspace().join("ready").exists());
        process.terminate();
        assert_eq!(process.wait(LONG).unwrap().unwrap().code, Some(3), "{:?}", destination.kind());
        assert_eq!(fs::read_to_string(ground.workspace().join("left")).unwrap(), "bye\n");
    }
}

#[test]
fn a_process_that_ignores_term_is_killed_after_the_grace_period() {
    for destination in both() {
        let ground = JobDirs::new();
        let job = ground.shell("trap '' TERM; touch ready; while :; do sleep 0.05; done");
        let mut process = destination.start(&job).unwrap();
        until("it is there", || ground.workspace().join("ready").exists());
        process.terminate();
        assert_eq!(process.wait(Duration::from_millis(200)).unwrap(), None, "{:?}", destination.kind());
        assert_eq!(process.kill_all().unwrap().signal, Some(9));
        assert_eq!(leftovers::count(job.run_id).unwrap(), 0);
    }
}

#[test]
fn wait_returns_when_its_time_is_over() {
    for destination in both() {
        let ground = JobDirs::new();
        let job = ground.shell("sleep 600");
        let mut process = destination.start(&job).unwrap();
        let begun = Instant::now();
        assert_eq!(process.wait(Duration::from_millis(150)).unwrap(), None);
        assert!(begun.elapsed() >= Duration::from_millis(150));
        assert!(leftovers::count(job.run_id).unwrap() > 0, "it returned before the process ended");
    }
}

#[test]
fn much_output_on_both_streams_does_not_block() {
    for destination in both() {
        let ground = JobDirs::new();
        let script = "import sys
for _ in range(4000):
    sys.stdout.write('o' * 1000); sys.stderr.write('e' * 1000)";
        let told = tell(destination.as_ref(), &ground.python(script));
        assert_eq!((told.stdout.len(), told.stderr.len()), (4_000_000, 4_000_000));
        assert!(told.exit.success());
    }
}

#[test]
fn a_command_that_is_not_there_is_no_exit_code_of_the_command() {
    let ground = JobDirs::new();
    let mut process = sandbox().start(&ground.job(&["no-such-program"])).unwrap();
    let mut read = streams(process.as_mut());
    let error = process.wait(LONG).unwrap_err();
    assert!(error.to_string().contains("could not start the command"), "{error}");
    process.kill_all().unwrap();
    assert!(read.remove(1).join().unwrap().contains("no-such-program"));

    let told = tell(&crate::support::host(), &ground.job(&["no-such-program"]));
    assert_eq!(told.exit.code, Some(127), "{told:?}");
}

#[test]
fn isolation_that_cannot_be_set_up_is_an_error_and_leaves_nothing() {
    let ground = JobDirs::new();
    let mut job = ground.shell("true");
    job.mounts = vec![Mount { host: ground.dir.path().join("missing"), inside: "/opt/x".into() }];
    match sandbox().start(&job) {
        Err(StartError::Isolation { said, .. }) => assert!(said.contains("missing"), "{said}"),
        Err(error) => panic!("{error}"),
        // bubblewrap may fail only after the start signal.
        Ok(mut process) => assert!(process.wait(LONG).is_err()),
    }
    assert_eq!(leftovers::count(job.run_id).unwrap(), 0);
}

#[test]
fn an_exit_code_and_a_signal_come_through() {
    let ground = JobDirs::new();
    for destination in both() {
        assert_eq!(tell(destination.as_ref(), &ground.shell("exit 42")).exit.code, Some(42));
    }
    let killed = ground.shell("kill -9 $$");
    assert_eq!(tell(&crate::support::host(), &killed).exit, Exit { code: None, signal: Some(9) });
    assert_eq!(tell(&sandbox(), &killed).exit, Exit { code: Some(137), signal: None });
}

#[test]
fn a_process_outlives_the_thread_that_started_it() {
    for destination in both() {
        let ground = JobDirs::new();
        let job = ground.shell("sleep 0.3; exit 5");
        let mut process = std::thread::spawn(move || destination.start(&job).unwrap()).join().unwrap();
        assert_eq!(process.wait(LONG).unwrap().unwrap().code, Some(5));
    }
}
