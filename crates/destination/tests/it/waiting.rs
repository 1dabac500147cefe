//! A job whose sandbox is set up in advance.

use std::fs;
use std::io::Read as _;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::Duration;

use herma_core::RunId;
use herma_destination::{Destination as _, Prepared, leftovers};

use crate::support::{JobDirs, helper, run_id, sandbox, until};

#[test]
fn a_prepared_job_has_not_started_and_sees_files_written_meanwhile() {
    let (ground, sandbox) = (JobDirs::new(), sandbox());
    let waiting = Prepared::begin(&sandbox, ground.shell("echo begun > begun; cat late")).unwrap();
    fs::write(ground.workspace().join("late"), "put there later").unwrap();
    thread::sleep(Duration::from_millis(100));
    assert!(!ground.workspace().join("begun").exists());

    let mut process = waiting.start().unwrap();
    let mut said = String::new();
    process.take_stdout().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(said, "put there later");
    assert!(ground.workspace().join("begun").exists());
}

#[test]
fn a_dropped_preparation_never_starts_and_leaves_no_process() {
    let (ground, sandbox) = (JobDirs::new(), sandbox());
    let job = ground.shell("echo begun > begun");
    assert!(sandbox.prepare(&job).unwrap().is_some());
    drop(Prepared::begin(&sandbox, job.clone()).unwrap());
    assert_eq!(leftovers::count(job.run_id).unwrap(), 0);
    assert!(!ground.workspace().join("begun").exists());
}

#[test]
fn a_prepared_job_never_starts_when_herma_is_killed() {
    // At any moment of the setup: bubblewrap itself continues when its start pipes are closed.
    let runs: Vec<RunId> = std::iter::repeat_with(run_id).take(40).collect();
    for (half_milliseconds, &run) in (0..).zip(&runs) {
        let ground = JobDirs::new();
        let mut herma = Command::new(helper())
            .args(["waiting", &run.to_string()])
            .arg(ground.workspace())
            .args(["sh", "-c", "echo begun > begun; sleep 60"])
            .spawn()
            .unwrap();
        until("bubblewrap is started", || leftovers::count(run).unwrap() > 0);
        thread::sleep(Duration::from_micros(500 * half_milliseconds));
        herma.kill().unwrap();
        herma.wait().unwrap();
        // A bubblewrap that is killed before its child has set PR_SET_PDEATHSIG leaves that child waiting; the next
        // herma ends it. Nothing else may remain.
        let mut asked = 0;
        until("nothing is left but bubblewrap", || {
            asked += 1;
            leftovers::count(run).unwrap() == 0
                || asked > 200 && commands_of(run).iter().all(|name| name == "bwrap")
        });
        assert!(
            !ground.workspace().join("begun").exists(),
            "killed after {half_milliseconds} half milliseconds"
        );
    }
    for run in runs {
        leftovers::kill(run).unwrap();
    }
}

/// The names of the programs that carry the run's id.
fn commands_of(run: RunId) -> Vec<String> {
    let mark = format!("HERMA_RUN={run}");
    let name = |dir: PathBuf| {
        let environment = fs::read(dir.join("environ")).ok()?;
        let is_of_run = environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes());
        let name = fs::read_to_string(dir.join("comm")).ok()?;
        is_of_run.then(|| name.trim_end().to_owned())
    };
    fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| name(entry.path())).collect()
}
