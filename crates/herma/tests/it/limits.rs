//! A run that meets a limit says which.

use herma_core::Blocker;
use herma_destination::{Confinement, HeldBy, LimitName};
use herma_evidence::layout;

use crate::kit::{Finished, Herma, fix_and};

/// Starts threads, which count as processes do, until no more can be started.
const BOMB: &str = "python3 -c 'import threading, time\nthreading.stack_size(65536)\nfor _ in range(5000): \
                    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()'";

/// The words for the limit, where this machine lets herma see that it was met.
fn met(run: &Finished) -> &'static str {
    let confinement: Confinement = serde_json::from_slice(&run.bundle.read(layout::CONFINEMENT)).unwrap();
    let held = confinement.limits.iter().find(|held| held.name == LimitName::Processes).unwrap();
    if matches!(held.by, HeldBy::CgroupV1 | HeldBy::CgroupV2) { ": it met the limit `processes`" } else { "" }
}

#[test]
fn an_engine_that_meets_a_limit_fails_with_its_name() {
    let herma = Herma::new();
    let step = format!("- shell: {{ command: {}, must: true }}", serde_json::to_string(BOMB).unwrap());
    let run = herma.play(&fix_and(&[&step]), &[]);
    run.assert_only(Blocker::EngineFailed);
    assert_eq!(run.report.blockers[0].detail, format!("the engine exited with 1{}", met(&run)));
}

#[test]
fn a_verification_command_that_meets_a_limit_says_so() {
    let herma = Herma::new();
    let verify = format!("[{}]", serde_json::to_string(BOMB).unwrap());
    let run = herma.play("fix", &[("verify", &verify)]);
    run.assert_only(Blocker::VerificationFailed);
    let met = met(&run);
    let detail = &run.report.blockers[0].detail;
    assert!(detail.ends_with(&format!("exited with 1{met}")), "{detail}");
    let log = run.bundle.text(layout::TEST_LOG);
    assert!(log.ends_with(&format!("[exit 1{met}]\n")), "{log}");
}
