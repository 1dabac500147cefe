//! Signals end herma: Ctrl-C, `kill`, a terminal that closes. It ends what it started and closes the run itself.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::thread::sleep;
use std::time::Duration;

use herma_core::engine::EndedBy;
use herma_core::{Blocker, EventType, RunId, Status, Step};
use herma_evidence::layout;
use rustix::process::Signal;

use crate::crash::assert_closed;
use crate::kit::{
    Ended, Finished, Herma, MODEL, ON_REPOSITORY, Repository, Started, contract_text, fix_and, names,
    on_path, processes_of, until,
};

/// Its immediate output.
const SAID: &str = "a second signal ends herma at once";
/// A second signal counts when this has passed.
const ANOTHER_WORD: Duration = Duration::from_millis(600);

/// The arguments of a run of this script.
fn args(herma: &Herma, script: &str, terms: &[(&str, &str)]) -> Vec<OsString> {
    let (contract, script) = (herma.contract(terms), herma.script(script));
    vec!["run".into(), contract.into(), "--script".into(), script.into()]
}

/// The one run, once its engine is at work.
fn at_work(herma: &Herma) -> RunId {
    until("the engine works", || herma.runs().iter().any(|run| herma.said(*run, "engine.started")));
    let run = herma.runs()[0];
    until("the engine has a process", || !processes_of(run).is_empty());
    run
}

/// Waits until the run has come to this step.
fn come_to(herma: &Herma, step: Step) -> RunId {
    let line = format!("\"step\":\"{step}\"");
    let there = |run: &RunId| {
        fs::read_to_string(herma.bundle(*run).dir.join(layout::TRACE)).is_ok_and(|text| text.contains(&line))
    };
    until("the run comes to its step", || herma.runs().iter().any(there));
    herma.runs()[0]
}

/// The run is closed already, and its only blocker says which signal it was, and where.
fn assert_interrupted(herma: &Herma, run: RunId, ended: Ended, signal: &str, step: Step) -> Finished {
    assert!(ended.stderr.contains(&format!("{signal}: ")) && ended.stderr.contains(SAID), "{ended:#?}");
    assert_closed(herma, run, step);
    herma.assert_only_the_bundle_is_left(run);
    let bundle = herma.bundle(run);
    let finished = Finished { report: bundle.report(), ended, bundle };
    finished.assert_only(Blocker::Interrupted);
    let detail = &finished.report.blockers[0].detail;
    assert_eq!(*detail, format!("herma received {signal}, at the step `{step}`"));
    finished
}

#[test]
fn an_engine_at_work_is_ended_and_its_run_is_closed_at_once() {
    for (destination, signal, name) in [
        ("host", Signal::INT, "SIGINT"),
        ("sandbox", Signal::TERM, "SIGTERM"),
        ("sandbox", Signal::HUP, "SIGHUP"),
    ] {
        let herma = Herma::new();
        let script = "steps: [{ say: hello }, { daemon: sleep 1000 }, { sleep: 10m }]";
        let started = herma.start(&args(&herma, script, &[("destination", destination)]));
        let run = at_work(&herma);
        started.signal(signal);
        let finished = assert_interrupted(&herma, run, started.end(), name, Step::Engine);
        assert_eq!(finished.report.engine_exit.unwrap().ended_by, EndedBy::Interrupted);
        let listed = herma.json(&["runs", "--all", "--json"]);
        assert_eq!(listed["runs"][0]["status"], "blocked");
    }
}

#[test]
fn a_signal_to_the_process_group_interrupts_the_run_and_nothing_else() {
    for destination in ["host", "sandbox"] {
        let mut herma = Herma::new();
        herma.wrap(&["setsid"]);
        let repository = Repository::of_fixture(&herma, "string-slugify");
        let before = repository.picture();
        let terms = [&[("destination", destination)][..], &ON_REPOSITORY].concat();
        let started = herma.start(&args(&herma, "steps: [{ say: hello }, { sleep: 10m }]", &terms));
        let run = at_work(&herma);
        started.signal_group(Signal::INT);
        assert_interrupted(&herma, run, started.end(), "SIGINT", Step::Engine);
        assert_eq!(repository.picture(), before);
    }
}

#[test]
fn a_verification_command_is_ended_and_those_after_it_are_not_run() {
    for destination in ["host", "sandbox"] {
        let herma = Herma::new();
        let terms =
            [("destination", destination), ("verify", "[\"echo first\", \"sleep 1000\", \"echo never\"]")];
        let started = herma.start(&args(&herma, &fix_and(&[]), &terms));
        let run = come_to(&herma, Step::Verify);
        let log = herma.bundle(run).dir.join(layout::TEST_LOG);
        until("the second command runs", || {
            fs::read_to_string(&log).is_ok_and(|text| text.contains("first\n"))
                && !processes_of(run).is_empty()
        });
        sleep(Duration::from_millis(100));
        started.signal(Signal::TERM);
        let finished = assert_interrupted(&herma, run, started.end(), "SIGTERM", Step::Verify);
        assert!(finished.report.verification.is_empty(), "{:#?}", finished.report);
        assert!(!finished.bundle.has_event(EventType::VerificationCompleted));
        let log = finished.bundle.text(layout::TEST_LOG);
        assert!(log.contains("[killed: the run goes no further]") && !log.contains("never"), "{log}");
        assert_eq!(finished.changed(), ["slugify.sh"], "what was collected is known");
    }
}

#[test]
fn a_model_that_does_not_answer_at_the_gates_is_not_waited_for() {
    let silent = "name: silent\nrepeat: true\nmodels: [m]\nturns: [{ say: ready, forever: silence }]\n";
    let herma = Herma::with_model(silent);
    let before = herma.runs();
    let started = herma.start(&args(&herma, &fix_and(&[]), &[MODEL]));
    until("the model is asked", || herma.runs().iter().any(|run| herma.said(*run, "confinement.probed")));
    let run = *herma.runs().iter().find(|run| !before.contains(run)).unwrap();
    sleep(Duration::from_millis(300));
    started.signal(Signal::INT);
    let finished = assert_interrupted(&herma, run, started.end(), "SIGINT", Step::Probe);
    assert!(!finished.report.engine_started);
}

/// At any time: closed at once where it was not too late for that, and in order always.
#[test]
fn a_run_is_closed_properly_whenever_a_signal_arrives() {
    let mut interrupted = 0;
    for delay in [0, 3, 10, 30, 60, 100, 150, 200, 300, 400, 600] {
        for destination in ["host", "sandbox"] {
            let herma = Herma::new();
            let started = herma.start(&["demo", "--destination", destination]);
            until("there is a run", || started.stderr_so_far().contains("run "));
            sleep(Duration::from_millis(delay));
            started.signal(Signal::INT);
            let ended = started.end();
            let [run] = herma.runs()[..] else { panic!("{ended:#?}") };
            let bundle = herma.bundle(run);
            bundle.assert_whole();
            herma.assert_verifies(&bundle);
            herma.assert_only_the_bundle_is_left(run);
            assert_eq!(processes_of(run), [0; 0]);
            let finished = Finished { report: bundle.report(), ended, bundle };
            if finished.report.status == Status::Pass {
                // It came after the last step at which something could be left out, or after the end.
                assert!(matches!(finished.ended.code, Some(0) | None), "{:#?}", finished.ended);
            } else {
                finished.assert_only(Blocker::Interrupted);
                interrupted += 1;
            }
        }
    }
    assert!(interrupted > 4, "only {interrupted} of them were in time");
}

#[test]
fn a_second_signal_ends_herma_at_once_and_the_next_command_closes_the_run() {
    let mut herma = Herma::new();
    let slow = slow_git(&mut herma);
    let repository = Repository::of_fixture(&herma, "string-slugify");
    let before = repository.picture();
    let terms = [&[("destination", "host")][..], &ON_REPOSITORY].concat();
    let started = herma.start(&args(&herma, "steps: [{ say: hello }, { sleep: 10m }]", &terms));
    let run = at_work(&herma);
    // Closing takes a while: the target is looked at once more.
    fs::write(&slow, "").unwrap();
    started.signal(Signal::INT);
    until("herma says that it ends", || started.stderr_so_far().contains(SAID));
    started.signal(Signal::INT);
    sleep(ANOTHER_WORD);
    started.signal(Signal::TERM);
    let ended = started.end();
    assert!(ended.was_killed(), "{ended:#?}");
    assert_eq!(herma.active(), [run.to_string()]);
    fs::remove_file(slow).unwrap();
    assert_eq!(herma.run(&["runs"]).code, Some(0));
    assert_closed(&herma, run, Step::Engine);
    assert_eq!(repository.picture(), before);
}

#[test]
fn a_signal_that_arrives_twice_counts_once() {
    let mut herma = Herma::new();
    let slow = slow_git(&mut herma);
    Repository::of_fixture(&herma, "string-slugify");
    let started = herma.start(&args(&herma, "steps: [{ say: hello }, { sleep: 10m }]", &ON_REPOSITORY));
    let run = at_work(&herma);
    fs::write(&slow, "").unwrap();
    started.signal(Signal::TERM);
    until("herma says that it ends", || started.stderr_so_far().contains(SAID));
    started.signal(Signal::HUP);
    let finished = assert_interrupted(&herma, run, started.end(), "SIGTERM", Step::Engine);
    assert_eq!(finished.ended.code, Some(3));
}

/// Puts a git in herma's way that takes its time while the file is there.
fn slow_git(herma: &mut Herma) -> std::path::PathBuf {
    let (bin, slow, git) = (herma.at("bin"), herma.at("slow"), on_path("git"));
    fs::create_dir(&bin).unwrap();
    let text =
        format!("#!/bin/sh\n[ ! -e '{}' ] || sleep 2\nexec '{}' \"$@\"\n", slow.display(), git.display());
    fs::write(bin.join("git"), text).unwrap();
    fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut path = bin.into_os_string();
    path.push(":");
    path.push(crate::kit::environment("PATH"));
    herma.set("PATH", path);
    slow
}

#[test]
fn a_signal_that_herma_was_started_without_does_not_count_and_is_not_handed_on() {
    for destination in ["host", "sandbox"] {
        let mut herma = Herma::new();
        herma.wrap(&["sh", "-c", "trap '' HUP INT; exec \"$0\" \"$@\""]);
        let script = fix_and(&[
            "- shell: grep -E '^Sig(Blk|Ign)' /proc/self/status",
            "- shell: 'while [ ! -e tests/go ]; do sleep 0.05; done; rm tests/go'",
        ]);
        let started = herma.start(&args(&herma, &script, &[("destination", destination)]));
        let run = at_work(&herma);
        started.signal(Signal::HUP);
        started.signal(Signal::INT);
        let go = herma.home().join("runs").join(run.to_string()).join("workspace/tests/go");
        fs::write(go, "").unwrap();
        let ended = started.end();
        assert!(!ended.stderr.contains(SAID), "{ended:#?}");
        let bundle = herma.bundle(run);
        let finished = Finished { report: bundle.report(), ended, bundle };
        finished.assert_pass();
        let said = finished.engine_said();
        for name in ["SigBlk:", "SigIgn:"] {
            let mask =
                said.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{said}"));
            let mask = u64::from_str_radix(mask.trim(), 16).unwrap();
            let ours =
                [Signal::HUP, Signal::INT, Signal::TERM].map(|signal| mask & (1 << (signal.as_raw() - 1)));
            assert_eq!(ours, [0; 3], "{destination}: {said}");
        }
    }
}

#[test]
fn a_child_is_interrupted_with_the_run_that_asked_for_it() {
    let herma = Herma::new();
    let child = contract_text(&[
        ("id", "the-child"),
        ("target", "{ repo: . }"),
        ("limits", "{ total: 30s, idle: 30s }"),
    ]);
    let script = format!(
        "steps:\n  - write: {{ path: /tmp/child.md, text: {child:?} }}\n  \
         - write: {{ path: /tmp/child.yaml, text: 'steps: [{{ say: hello }}, {{ sleep: 10m }}]' }}\n  \
         - shell: /herma/herma run /tmp/child.md --script /tmp/child.yaml\n"
    );
    let started = herma.start(&args(&herma, &script, &[("limits", "{ total: 50s, idle: 50s }")]));
    until("the child's engine works", || {
        herma.runs().iter().filter(|run| herma.said(**run, "engine.started")).count() == 2
    });
    started.signal(Signal::INT);
    let ended = started.end();
    assert_eq!(ended.code, Some(3), "{ended:#?}");
    assert_eq!(ended.stderr.matches(SAID).count(), 1, "{ended:#?}");
    for run in herma.runs() {
        assert_closed(&herma, run, Step::Engine);
        let report = herma.bundle(run).report();
        assert_eq!(report.blockers.len(), 1, "{report:#?}");
        assert!(report.blockers[0].detail.contains("SIGINT"), "{report:#?}");
    }
}

/// Waits for the first case, or the first turn, and tells herma to end. On a busy machine it may hear that in the second.
fn told_in_the_first(herma: &Herma, started: Started) -> Ended {
    until("a run is under way", || herma.active().len() == 1 && !herma.runs().is_empty());
    started.signal(Signal::INT);
    let ended = started.end();
    assert_eq!(ended.code, Some(3), "{ended:#?}");
    assert!(ended.stderr.contains(SAID) && ended.stderr.contains("interrupted by SIGINT"), "{ended:#?}");
    assert!(herma.runs().len() <= 2, "{:?}: {ended:#?}", herma.runs());
    for bundle in herma.runs().into_iter().map(|run| herma.bundle(run)) {
        bundle.assert_whole();
        herma.assert_verifies(&bundle);
    }
    ended
}

#[test]
fn a_cancelled_proof_runs_no_further_case_and_is_not_kept() {
    let herma = Herma::new();
    let ended = told_in_the_first(&herma, herma.start(&["prove", "--engine", "fake", "--stage", "1"]));
    assert!(!ended.stderr.contains(" 3/"), "{ended:#?}");
    assert_eq!(names(&herma.home().join("proofs")), [""; 0]);
    assert_eq!(names(&herma.home().join("proving")).iter().filter(|name| *name != "lock").count(), 0);
}

#[test]
fn a_cancelled_comparison_runs_no_further_turn_and_is_not_kept() {
    let herma = Herma::new();
    let args = ["compare", "--contract", "fixture:string-slugify", "--engines", "fake", "--runs", "9"];
    told_in_the_first(&herma, herma.start(&args));
    assert_eq!(names(&herma.home().join("comparisons")), [""; 0]);
}
