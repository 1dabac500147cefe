//! A bubblewrap that times out is started again, and starts succeed beside busy loops.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use herma_destination::{Destination as _, Job, Limits, Sandbox, StartError};

use crate::support::{JobDirs, LONG, helper, run_id, sandbox, tell};

/// A sandbox whose bubblewrap hangs in its first starts.
fn hanging(dir: &Path, starts: u32) -> Sandbox {
    let bwrap = dir.join("bwrap");
    let dir_text = dir.display();
    let script = format!(
        "#!/bin/sh\nn=1\nwhile ! mkdir {dir_text}/start-$n 2>/dev/null; do n=$((n+1)); done\n\
         if [ $n -le {starts} ]; then exec /bin/sleep 600; fi\nexec /usr/bin/bwrap \"$@\"\n"
    );
    fs::write(&bwrap, script).unwrap();
    fs::set_permissions(&bwrap, fs::Permissions::from_mode(0o755)).unwrap();
    Sandbox::find(helper(), dir.as_os_str())
}

fn starts(dir: &Path) -> usize {
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().starts_with("start-")).count()
}

#[test]
fn a_bubblewrap_that_hangs_is_ended_and_started_anew() {
    let (ground, dir) = (JobDirs::new(), tempfile::tempdir().unwrap());
    let sandbox = hanging(dir.path(), 1);
    let limits = Limits { start: Duration::from_secs(30), ..Limits::default() };
    let told = tell(&sandbox, &Job { limits, ..ground.shell("echo started") });
    assert_eq!((told.exit.code, told.stdout.as_str()), (Some(0), "started\n"), "{told:?}");
    assert_eq!(starts(dir.path()), 2);
}

#[test]
fn a_bubblewrap_that_never_gets_there_is_reported_with_a_cause_and_nothing_is_left() {
    let (ground, dir) = (JobDirs::new(), tempfile::tempdir().unwrap());
    let sandbox = hanging(dir.path(), u32::MAX);
    let limits = Limits { start: Duration::from_secs(3), ..Limits::default() };
    let job = Job { limits, run_id: run_id(), ..ground.shell("echo started") };
    let Err(error) = sandbox.start(&job) else { panic!("it started") };
    assert!(matches!(error, StartError::Slow { attempts: 3, .. }), "{error}");
    let said = "bubblewrap did not start within 3 s (3 attempts; is the machine under load?)";
    assert_eq!(error.to_string(), said);
    assert_eq!(starts(dir.path()), 3);
    assert_eq!(processes_of(&job.run_id.to_string()), [""; 0]);
}

/// The command lines of the processes that carry a run's id.
fn processes_of(run: &str) -> Vec<String> {
    let all = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    let read = |path: &Path, name: &str| {
        fs::read(path.join(name))
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    };
    all.filter(|path| read(path, "environ").contains(run)).map(|path| read(&path, "cmdline")).collect()
}

/// The number of starts: `scripts/long starts` asks for 2,000.
#[allow(clippy::disallowed_methods, reason = "`scripts/long` asks for more than CI has time for")]
fn how_many() -> u32 {
    std::env::var("SANDBOX_STARTS").map_or(100, |text| text.parse().unwrap())
}

#[test]
fn no_start_fails_beside_four_busy_loops() {
    let ground = JobDirs::new();
    let (sandbox, ended) = (sandbox(), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let mut failed = Vec::new();
        for number in 0..how_many() {
            let job = Job { run_id: run_id(), ..ground.job(&["true"]) };
            let exit = sandbox.start(&job).map(|mut process| {
                let exit = process.wait(LONG);
                process.kill_all().unwrap();
                exit
            });
            if !matches!(&exit, Ok(Ok(Some(exit))) if exit.success()) {
                let said = exit.map_or_else(|error| error.to_string(), |exit| format!("{exit:?}"));
                failed.push(format!("start {number}: {said}"));
            }
        }
        ended.store(true, Ordering::Relaxed);
        assert!(failed.is_empty(), "{}", failed.join("\n"));
    });
}
