//! Several runs in one process, watched and cancelled on their own, and followed from other processes.

#![allow(clippy::disallowed_macros, reason = "it prints its seed and figures")]

use std::fs;
use std::path::{Path, PathBuf};

use herma_core::{Blocker, RunId, Status};
use serde_json::Value;

use crate::kit::{Herma, Random, Service, Started, contract_text, fix_and, processes_of, rounds, until};

/// A script that fixes the bug after this long.
fn fix_after(herma: &Herma, seconds: &str) -> PathBuf {
    let script = fix_and(&["- say: done", &format!("- sleep: {seconds}")]);
    herma.file(&format!("fix-{seconds}.yaml"), script)
}

fn contract(herma: &Herma) -> PathBuf {
    herma.file("contracts/service.md", contract_text(&[("destination", "sandbox")]))
}

/// The lines of `herma watch --json` so far.
fn watched(watch: &Started) -> Vec<Value> {
    let text = watch.stdout_so_far();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn saw_event(watch: &Started, run: RunId, kind: &str) -> bool {
    watched(watch).iter().any(|line| line["run_id"] == run.to_string() && line["event"]["type"] == kind)
}

/// The statuses with which a watcher saw runs closed.
fn saw_closed(lines: &[Value], run: RunId) -> Option<String> {
    let line = lines.iter().find(|line| line["run_id"] == run.to_string() && line.get("closed").is_some())?;
    Some(line["closed"]["status"].as_str().unwrap().to_owned())
}

/// The run has left a bundle that verifies, and nothing else on this machine.
fn assert_only_evidence_is_left(herma: &Herma, run: RunId) {
    herma.assert_verifies(&herma.bundle(run));
    herma.assert_only_the_bundle_is_left(run);
    until("every process of the run is gone", || processes_of(run).is_empty());
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(&run.to_string()), "{mounts}");
    assert!(!has_cgroup(Path::new("/sys/fs/cgroup"), &run.to_string()), "{run}");
}

fn has_cgroup(dir: &Path, run: &str) -> bool {
    let Ok(entries) = fs::read_dir(dir) else { return false };
    let mut dirs = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    dirs.any(|dir| dir.file_name().to_string_lossy().contains(run) || has_cgroup(&dir.path(), run))
}

#[test]
fn one_of_two_runs_in_a_process_is_cancelled_alone() {
    let herma = Herma::new();
    let contract = contract(&herma);
    let mut service = herma.service(2);
    service.submit(&contract, &fix_after(&herma, "10m"));
    let cancelled = service.until_submitted(1)[0];
    service.submit(&contract, &fix_after(&herma, "2s"));
    let passes = service.until_submitted(2)[1];
    for run in [cancelled, passes] {
        until("both engines work", || service.published(run, "engine.started"));
    }
    service.cancel(cancelled);
    until("the cancelled run is closed", || service.closed().contains_key(&cancelled));
    let ended = service.end();
    assert_eq!(ended.code, Some(0), "{ended:#?}");

    let report = herma.bundle(cancelled).report();
    assert_eq!(report.status, Status::Blocked, "{report:#?}");
    assert_eq!(report.blockers[0].blocker, Blocker::Interrupted, "{report:#?}");
    assert_eq!(report.blockers[0].detail, "the run was cancelled, at the step `engine`");
    assert_eq!(herma.bundle(passes).report().status, Status::Pass);
    for run in [cancelled, passes] {
        assert_only_evidence_is_left(&herma, run);
    }
}

#[test]
fn another_process_follows_runs_live_and_sees_them_closed_after_a_kill() {
    let herma = Herma::new();
    let contract = contract(&herma);
    let mut service = herma.service(2);
    for _ in 0..2 {
        service.submit(&contract, &fix_after(&herma, "10m"));
    }
    let runs = service.until_submitted(2);
    let [one, other] = [runs[0].to_string(), runs[1].to_string()];
    until("both runs are in the store", || {
        herma.json(&["runs", "--all", "--json"])["runs"].as_array().unwrap().len() == 2
    });
    let watch = herma.start(&["watch", &one, &other, "--json"]);
    let logs = herma.start(&["logs", &one, "--only", "stdout", "--follow"]);
    for run in &runs {
        until("the events are followed live", || saw_event(&watch, *run, "engine.message"));
    }
    until("the log is followed live", || logs.stdout_so_far().contains("done"));
    service.kill();
    let lines = {
        until("both runs are closed", || {
            let lines = watched(&watch);
            runs.iter().all(|run| saw_closed(&lines, *run).is_some())
        });
        watched(&watch)
    };
    let ended = watch.end();
    assert_eq!(ended.code, Some(3), "{ended:#?}");
    assert_eq!(logs.end().code, Some(0));
    for run in runs {
        assert_eq!(saw_closed(&lines, run).as_deref(), Some("blocked"));
        let of_run = |line: &&Value| line["run_id"] == run.to_string() && line.get("event").is_some();
        let seen: Vec<u64> =
            lines.iter().filter(of_run).map(|line| line["event"]["seq"].as_u64().unwrap()).collect();
        let all: Vec<u64> = herma.bundle(run).events().iter().map(|event| event.seq).collect();
        assert_eq!(seen, all, "every event once, in order");
        assert_only_evidence_is_left(&herma, run);
    }
}

#[test]
fn a_run_is_watched_in_plain_lines_to_its_end() {
    let herma = Herma::new();
    let finished = herma.demo(&["--destination", "host"]);
    let watched = herma.run(&["watch"]);
    assert_eq!(watched.code, Some(0), "{watched:#?}");
    for said in ["  gates\n", "  engine.started\n", "closed  pass\n"] {
        assert!(watched.stdout.contains(said), "{said:?}: {}", watched.stdout);
    }
    let followed = herma.run(&["logs", "--only", "stdout", "--follow"]);
    assert_eq!((followed.code, followed.stdout), (Some(0), herma.run(&["logs", "--only", "stdout"]).stdout));
    assert_eq!(finished.report.status, Status::Pass);
}

/// Runs through one service, four at a time: some are cancelled at random moments, the process is killed once, and every run
/// ends in evidence that holds. `scripts/long service` does it with fifty.
#[test]
fn many_runs_are_submitted_cancelled_and_killed_and_each_leaves_its_evidence() {
    let total = usize::try_from(rounds(8)).unwrap();
    let (cancels, mut random) = ((total / 5).max(1), Random::new());
    let herma = Herma::new();
    let contract = contract(&herma);
    let scripts = ["0s", "1s", "2s"].map(|seconds| fix_after(&herma, seconds));
    let mut service = submit(&herma, &contract, &scripts, total, &mut random);
    let mut cancelled = cancel_some(&mut service, cancels.div_ceil(2), &mut random);
    // One that was submitted may wait for its turn, and has no files then.
    let begun = || -> Vec<RunId> {
        let submitted = service.submitted();
        submitted.into_iter().filter(|run| herma.said(*run, "eligibility.decided")).collect()
    };
    until("half of the runs have begun", || begun().len() >= total / 2);
    let begun = begun();
    let watch: Vec<String> = begun.iter().map(ToString::to_string).collect();
    let args: Vec<&str> = ["watch", "--json"].into_iter().chain(watch.iter().map(String::as_str)).collect();
    let watch = herma.start(&args);
    std::thread::sleep(std::time::Duration::from_millis(random.below(1500)));
    service.kill();
    let watched_first = watch.end();

    let left = total - herma.runs().len();
    let mut service = submit(&herma, &contract, &scripts, left, &mut random);
    cancelled.extend(cancel_some(&mut service, cancels / 2, &mut random));
    let ended = service.end();
    assert_eq!(ended.code, Some(0), "seed {}: {ended:#?}", random.seed());
    assert!(!ended.stdout.contains("error "), "seed {}: {ended:#?}", random.seed());

    assert_eq!(
        herma.json(&["runs", "--all", "--json", "--limit", "1000"])["runs"].as_array().unwrap().len(),
        total
    );
    assert_eq!(herma.active(), [""; 0]);
    for run in herma.runs() {
        assert_only_evidence_is_left(&herma, run);
        let report = herma.bundle(run).report();
        let interrupted = report.blockers.iter().any(|record| record.blocker == Blocker::Interrupted);
        let fine = report.status == Status::Pass || (report.status == Status::Blocked && interrupted);
        assert!(fine, "seed {}: {report:#?}", random.seed());
        if begun.contains(&run) {
            let line = format!("\"run_id\":\"{run}\",\"closed\"");
            assert!(watched_first.stdout.contains(&line), "seed {}: {watched_first:#?}", random.seed());
        }
    }
    let of_cancelled = |run: &&RunId| herma.bundle(**run).report().status == Status::Blocked;
    let blocked = cancelled.iter().filter(of_cancelled).count();
    println!(
        "seed {}: {total} runs, {} cancelled, {blocked} of them in time",
        random.seed(),
        cancelled.len()
    );
}

fn submit(herma: &Herma, contract: &Path, scripts: &[PathBuf], count: usize, random: &mut Random) -> Service {
    let mut service = herma.service(4);
    for _ in 0..count {
        let script = usize::try_from(random.below(scripts.len() as u64)).unwrap();
        service.submit(contract, &scripts[script]);
    }
    service
}

/// Cancels so many of the runs, each at a random moment after it has begun.
fn cancel_some(service: &mut Service, count: usize, random: &mut Random) -> Vec<RunId> {
    let mut cancelled = Vec::new();
    for at in 0..count {
        let runs = service.until_submitted(at + 1);
        std::thread::sleep(std::time::Duration::from_millis(random.below(700)));
        let last = *runs.last().unwrap();
        let next = service.submitted().into_iter().find(|run| !cancelled.contains(run)).unwrap_or(last);
        service.cancel(next);
        cancelled.push(next);
    }
    cancelled
}
