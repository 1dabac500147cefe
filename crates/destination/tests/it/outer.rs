//! Properties that only another process can observe: herma is killed, or herma runs as a normal user.

use std::fs;
use std::process::{Child, Command};

use herma_core::RunId;
use herma_destination::leftovers;

use crate::support::{JobDirs, helper, processes_with, run_id, until};

/// Another process starts a command that starts a daemon and stays.
fn started_elsewhere(kind: &str, ground: &JobDirs, run: RunId, mark: &str) -> Child {
    let script = format!("setsid sh -c 'touch ready; sleep 600; : {mark}' & sleep 600; : {mark}");
    let child = Command::new(helper())
        .args([kind, &run.to_string()])
        .arg(ground.workspace())
        .args(["sh", "-c", &script])
        .spawn()
        .unwrap();
    until("the daemon is there", || ground.workspace().join("ready").exists());
    child
}

#[test]
fn nothing_in_the_sandbox_survives_a_herma_that_was_killed() {
    let ground = JobDirs::new();
    let mark = format!("mark-{}", run_id());
    let run = run_id();
    let mut herma = started_elsewhere("sandbox", &ground, run, &mark);
    assert!(processes_with(&mark) >= 3);
    herma.kill().unwrap();
    herma.wait().unwrap();
    // Its processes die by themselves, one after the other.
    until("everything is dead", || processes_with(&mark) == 0 && leftovers::count(run).unwrap() == 0);
    // Its cgroup is left, which this removes.
    assert_eq!(leftovers::kill(run).unwrap(), 0);
}

#[test]
fn on_the_host_the_command_dies_with_herma_and_the_rest_as_leftovers() {
    let ground = JobDirs::new();
    let mark = format!("mark-{}", run_id());
    let run = run_id();
    let mut herma = started_elsewhere("host", &ground, run, &mark);
    herma.kill().unwrap();
    herma.wait().unwrap();
    until("the command is dead", || processes_with(&format!("& sleep 600; : {mark}")) == 0);
    assert_eq!(leftovers::kill(run_id()).unwrap(), 0);
    assert!(processes_with(&mark) >= 1, "another run's processes are left alone");
    assert!(leftovers::kill(run).unwrap() >= 2);
    assert_eq!((processes_with(&mark), leftovers::count(run).unwrap()), (0, 0));
}

#[test]
fn leftovers_find_a_whole_sandbox_too() {
    let ground = JobDirs::new();
    let mark = format!("mark-{}", run_id());
    let run = run_id();
    let mut herma = started_elsewhere("sandbox", &ground, run, &mark);
    // bubblewrap's two processes, two shells and their sleeps.
    until("all of it is there", || leftovers::count(run).unwrap() == 6);
    assert!(leftovers::kill(run).unwrap() >= 1);
    assert_eq!(leftovers::count(run).unwrap(), 0);
    // The starting process only waits for the dead job.
    herma.wait().unwrap();
    assert_eq!(processes_with(&mark), 0);
}

#[test]
fn everything_holds_for_a_normal_user_too() {
    if !rustix::process::geteuid().is_root() {
        // Then every other test already runs as a normal user.
        return;
    }
    // The same tests once more as the user `nobody`, in a directory that it can reach.
    let place = JobDirs::new();
    let root = place.dir.path();
    fs::set_permissions(root, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for dir in ["deps", "examples"] {
        fs::create_dir(root.join(dir)).unwrap();
    }
    fs::copy(std::env::current_exe().unwrap(), root.join("deps/it")).unwrap();
    fs::copy(helper(), root.join("examples/destination-helper")).unwrap();
    let output = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .arg(root.join("deps/it"))
        .args(["isolation::", "ending::", "probes::", "filter::", "limits::", "loopback_relay::", "teeth::"])
        .args(["outer::nothing", "outer::on_the_host", "outer::leftovers"])
        .current_dir("/")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    let passed = said.split("test result: ok. ").nth(1).and_then(|rest| rest.split(' ').next());
    let passed: u32 = passed.unwrap().parse().unwrap();
    assert!(passed >= 50, "only {passed} tests ran: {said}");
}
