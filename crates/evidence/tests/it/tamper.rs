//! Any change to a bundle is detected, and the failing check is named.

use std::fs::{self, File};
use std::sync::LazyLock;

use herma_core::blocker::Blocker;
use herma_core::report::{ChangedByCommand, ChildrenUse, EgressUse, Usage, VerificationStatus};
use herma_core::units::Usd;
use herma_core::{Digest, RepoPath, RunId, Status, Timestamp};
use herma_evidence::verify::CheckName as C;
use herma_evidence::{ExpectedRun, InstallationKey, Trust, layout};
use proptest::prelude::*;

use crate::sample::{Sample, check, check_as, check_with, failed, pass, pass_saying};

const FILES: [&str; 11] = [
    layout::REPORT,
    layout::REPORT_MD,
    layout::EVENTS,
    layout::TRACE,
    layout::PATCH,
    layout::TEST_LOG,
    layout::DECISION,
    layout::CONTRACT,
    layout::ENGINE_STDOUT,
    layout::ENGINE_STDERR,
    layout::ATTESTATION,
];

#[test]
fn an_untouched_bundle_passes() {
    let sample = pass(|_| {});
    let list = sample.verify();
    assert!(list.ok(), "{list:#?}");
    assert_eq!(list.checks.len(), 21);
}

#[test]
fn a_bundle_of_another_run_or_contract_than_the_named_one_is_found() {
    let sample = pass(|_| {});
    let trust = Trust { keys: vec![sample.key.public()], approvers: Vec::new() };
    let (run_id, contract) = (sample.report.run_id, sample.report.contract_digest);
    let other_run = RunId::new(Timestamp::UNIX_EPOCH, [1; 10]);
    let other_contract = Digest::of(b"another contract");
    for (run_id, contract_digest, expected) in [
        (run_id, Some(contract), vec![]),
        (run_id, None, vec![]),
        (other_run, Some(contract), vec![C::Identity]),
        (other_run, None, vec![C::Identity]),
        (run_id, Some(other_contract), vec![C::Identity]),
    ] {
        let list = check_as(&sample.dir(), &trust, Some(&ExpectedRun { run_id, contract_digest }));
        assert_eq!(failed(&list), expected, "{run_id} {contract_digest:?}");
    }
}

#[test]
fn every_flipped_bit_of_the_attestation_is_found() {
    let sample = pass(|_| {});
    let path = sample.dir().join(layout::ATTESTATION);
    let sound = fs::read(&path).unwrap();
    for at in 0..sound.len() {
        let mut broken = sound.clone();
        broken[at] ^= 1u8 << (at % 8);
        fs::write(&path, &broken).unwrap();
        let failed = failed(&sample.verify());
        assert!(failed.contains(&C::Envelope) || failed.contains(&C::Signature), "byte {at}: {failed:?}");
    }
}

proptest! {
    #[test]
    fn every_flipped_bit_of_every_file_is_found(file in 0..FILES.len(), at in any::<prop::sample::Index>(), bit in 0u32..8) {
        static SAMPLE: LazyLock<Sample> = LazyLock::new(|| pass(|_| {}));
        let path = SAMPLE.dir().join(FILES[file]);
        let sound = fs::read(&path).unwrap();
        let mut broken = sound.clone();
        broken[at.index(sound.len())] ^= 1u8 << bit;
        fs::write(&path, &broken).unwrap();
        let list = SAMPLE.verify();
        fs::write(&path, &sound).unwrap();
        let failed = failed(&list);
        let expected = if FILES[file] == layout::ATTESTATION { [C::Envelope, C::Signature] } else { [C::Subjects; 2] };
        prop_assert!(failed.iter().any(|name| expected.contains(name)), "{}: {:?}", FILES[file], failed);
    }
}

#[test]
fn a_missing_file_is_found() {
    for name in FILES {
        let sample = pass(|_| {});
        fs::remove_file(sample.dir().join(name)).unwrap();
        assert_eq!(failed(&sample.verify())[0], C::Files, "{name}");
    }
}

#[test]
fn an_extra_file_is_found() {
    for name in
        ["notes.txt", "engine/more.log", "engine/outcome.json", layout::CONFINEMENT, ".unfinished-patch.diff"]
    {
        let sample = pass(|_| {});
        fs::write(sample.dir().join(name), "x").unwrap();
        assert_eq!(failed(&sample.verify())[0], C::Files, "{name}");
    }
    let sample = pass(|_| {});
    fs::create_dir(sample.dir().join("empty")).unwrap();
    assert_eq!(failed(&sample.verify()), [C::Files]);
}

#[test]
fn a_link_in_place_of_a_file_is_found() {
    let sample = pass(|_| {});
    let (path, elsewhere) = (sample.dir().join(layout::TEST_LOG), sample.temp.path().join("elsewhere"));
    fs::rename(&path, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
    let list = sample.verify();
    assert_eq!(failed(&list)[0], C::Files);
    assert!(list.checks[0].detail.contains("test.log"), "{:?}", list.checks[0]);
}

#[test]
fn a_fifo_in_place_of_a_file_is_found_and_not_waited_for() {
    let sample = pass(|_| {});
    let path = sample.dir().join(layout::TEST_LOG);
    fs::remove_file(&path).unwrap();
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    assert_eq!(failed(&sample.verify())[0], C::Files);
}

#[test]
fn a_huge_file_without_a_signature_is_not_read() {
    for name in FILES {
        let sample = pass(|_| {});
        // Reading all of it would take the test as good as forever.
        File::options().write(true).open(sample.dir().join(name)).unwrap().set_len(1 << 42).unwrap();
        let list = sample.verify();
        assert_eq!(failed(&list)[0], C::Files, "{name}");
        assert!(list.checks[0].detail.contains(&format!("{name} is larger than")), "{:?}", list.checks[0]);
    }
}

#[test]
fn a_large_log_is_read_where_a_trusted_key_vouches_for_its_size() {
    let sample = pass_saying(&vec![b'.'; (256 << 20) + 1]);
    let list = sample.verify();
    assert!(list.ok(), "{list:#?}");
    let nobody = check_with(&sample.dir(), &Trust::default());
    assert_eq!(failed(&nobody)[0], C::Files);
    assert!(nobody.checks[0].detail.contains("no trusted key vouches"), "{:?}", nobody.checks[0]);
}

#[test]
fn swapped_events_break_the_chain() {
    let sample = pass(|_| {});
    let path = sample.dir().join(layout::EVENTS);
    let text = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.swap(2, 3);
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    let failed = failed(&sample.verify());
    assert!(failed.contains(&C::Chain) && failed.contains(&C::Subjects), "{failed:?}");
}

#[test]
fn an_unknown_signer_is_a_failure() {
    let sample = pass(|_| {});
    let other = InstallationKey::load_or_create(&sample.temp.path().join("other")).unwrap();
    assert_eq!(failed(&check(&sample.dir(), &other)), [C::Signature]);
}

#[test]
fn another_bundles_signature_is_found() {
    let (sample, other) = (pass(|_| {}), pass(|report| report.walls.push("seccomp".to_owned())));
    let read = |s: &Sample| {
        let bytes = fs::read(s.dir().join(layout::ATTESTATION)).unwrap();
        serde_json::from_slice::<serde_json::Value>(&bytes).unwrap()
    };
    let mut envelope = read(&sample);
    envelope["signatures"][0]["sig"] = read(&other)["signatures"][0]["sig"].clone();
    fs::write(sample.dir().join(layout::ATTESTATION), serde_json::to_vec(&envelope).unwrap()).unwrap();
    assert_eq!(failed(&sample.verify()), [C::Signature]);
}

#[test]
fn added_whitespace_in_the_envelope_is_found() {
    let sample = pass(|_| {});
    let path = sample.dir().join(layout::ATTESTATION);
    let mut bytes = fs::read(&path).unwrap();
    bytes.push(b'\n');
    fs::write(&path, bytes).unwrap();
    let failed = failed(&sample.verify());
    assert!(failed.contains(&C::Envelope), "{failed:?}");
}

fn changed_by_command() -> ChangedByCommand {
    ChangedByCommand { count: 1, first: vec![RepoPath::new("strings.py").unwrap()] }
}

/// A failed report says which files a command changed, and has the blocker.
#[test]
fn changed_files_and_their_blocker_are_not_without_each_other() {
    let blocked = |r: &mut herma_core::Report| {
        r.status = Status::Fail;
        r.blockers = vec![Blocker::VerificationChangedFiles.because("strings.py")];
    };
    let changed = |r: &mut herma_core::Report| {
        r.verification[0].status = VerificationStatus::ChangedFiles;
        r.verification[0].changed_files = Some(changed_by_command());
    };
    let lies =
        |lie: &dyn Fn(&mut herma_core::Report)| failed(&pass(|r| lie(r)).verify()).contains(&C::Agreement);
    let agrees = |r: &mut herma_core::Report| (blocked(r), changed(r)).1;
    assert!(!lies(&agrees));
    assert!(lies(&blocked));
    assert!(lies(&|r| {
        agrees(r);
        r.blockers = vec![Blocker::NoDiff.because("none")];
    }));
    assert!(lies(&|r| {
        agrees(r);
        r.verification[0].changed_files.as_mut().unwrap().count = 0;
    }));
    assert!(lies(&|r| {
        agrees(r);
        r.verification[0].changed_files.as_mut().unwrap().first.clear();
    }));
}

/// herma itself signs a report that is not true: the checks after the seal find it.
#[test]
fn a_signed_lie_is_found() {
    type Lie = fn(&mut herma_core::Report);
    let lies: &[(&str, C, Lie)] = &[
        ("a pass with a blocker", C::Agreement, |r| r.blockers.push(Blocker::NoDiff.because("none"))),
        ("a failed verification", C::Agreement, |r| r.verification[0].status = VerificationStatus::Failed),
        ("a rewritten test", C::Agreement, |r| r.changed_tests.push(RepoPath::new("strings.py").unwrap())),
        ("a changed file that is listed twice", C::Agreement, |r| {
            let first = r.changed_files[0].clone();
            r.changed_files.push(first);
        }),
        ("an ignored file that is listed twice", C::Agreement, |r| {
            r.ignored_files = vec![RepoPath::new("out").unwrap(); 2];
        }),
        ("a rewritten file that decides what verification does", C::Agreement, |r| {
            r.changed_verification_files.push(RepoPath::new("strings.py").unwrap());
        }),
        ("a verification file that did not change", C::Agreement, |r| {
            r.changed_verification_files.push(RepoPath::new("Makefile").unwrap());
        }),
        ("a failed verification with old tests", C::Agreement, |r| {
            r.verification_with_baseline_tests = r.verification.clone();
            r.verification_with_baseline_tests[0].status = VerificationStatus::Failed;
        }),
        ("a command that changed tracked files", C::Agreement, |r| {
            r.verification[0].changed_files = Some(changed_by_command());
        }),
        ("such a command, called by its name", C::Agreement, |r| {
            r.verification[0].status = VerificationStatus::ChangedFiles;
            r.verification[0].changed_files = Some(changed_by_command());
        }),
        ("no verification", C::Agreement, |r| r.verification.clear()),
        ("a changed target", C::Agreement, |r| r.source_mutated = Some(true)),
        ("an engine that did not start", C::Agreement, |r| r.engine_started = false),
        ("model calls from nowhere", C::Agreement, |r| {
            r.usage = Usage { requests: 1, usd: Usd(0), ..Usage::NONE };
        }),
        ("decisions of egress from nowhere", C::Agreement, |r| {
            r.egress = Some(EgressUse { allowed: 1, ..EgressUse::default() });
        }),
        ("child runs from nowhere", C::Agreement, |r| {
            r.children = Some(ChildrenUse { runs: 1, ..ChildrenUse::default() });
        }),
        ("a model that the contract does not name", C::Agreement, |r| r.model = Some("other".to_owned())),
        ("another contract", C::Contract, |r| r.contract_digest = Digest::of(b"other")),
        ("another engine", C::Decision, |r| r.engine = "codex".parse().unwrap()),
        ("another blob", C::Patch, |r| r.changed_files[0].new.as_mut().unwrap().id = "9".repeat(40)),
        ("a change too many", C::Patch, |r| {
            let mut more = r.changed_files[0].clone();
            more.path = RepoPath::new("more.py").unwrap();
            r.changed_files.push(more);
        }),
        ("a change too few", C::Patch, |r| r.changed_files.clear()),
        ("a path outside", C::Paths, |r| r.changed_files[0].path = RepoPath::new("setup.py").unwrap()),
        ("a late start", C::Freshness, |r| r.run_started_at += std::time::Duration::from_millis(5)),
        ("a layer that was not probed", C::Order, |r| {
            r.destination = herma_core::engine::DestinationKind::Sandbox;
        }),
        ("a file without a reason", C::Artifacts, |r| drop(r.not_applicable.remove(layout::CONFINEMENT))),
        ("a reason for a file that is there", C::Artifacts, |r| {
            r.not_applicable.insert(layout::PATCH.to_owned(), "none".to_owned());
        }),
        ("missing events", C::Order, |r| r.required_events_passed = false),
    ];
    for (lie, expected, change) in lies {
        let sample = pass(change);
        let failed = failed(&sample.verify());
        assert!(failed.contains(expected), "{lie}: {failed:?}");
        assert!(!failed.contains(&C::Signature) && !failed.contains(&C::Subjects), "{lie}: {failed:?}");
    }
}

#[test]
fn a_signed_secret_is_found_in_a_log_and_never_written_into_a_report() {
    let token = format!("ghp_{}", "aB3dE5fG7h".repeat(4));
    assert_eq!(failed(&pass_saying(format!("it is {token}\n").as_bytes()).verify()), [C::Secrets]);
    let sample = pass(|report| report.engine_version.clone_from(&token));
    assert!(sample.verify().ok());
    assert_eq!(sample.report.engine_version, "[redacted:github_token]");
    for name in [layout::REPORT, layout::REPORT_MD] {
        assert!(!fs::read_to_string(sample.dir().join(name)).unwrap().contains(&token), "{name}");
    }
}

#[test]
fn a_name_that_held_a_secret_is_not_judged_by_what_is_left_of_it() {
    let redacted = |report: &mut herma_core::Report| {
        let path = RepoPath::new("src/[redacted:github_token].py").unwrap();
        report.changed_files[0].path = path;
        report.not_applicable.insert(layout::PATCH.to_owned(), "withheld".to_owned());
    };
    let judged = |change: &dyn Fn(&mut herma_core::Report)| {
        let list = pass(|report| {
            redacted(report);
            change(report);
        });
        failed(&list.verify()).contains(&C::Paths)
    };
    assert!(judged(&|_| {}), "in a pass nothing was redacted");
    assert!(!judged(&|report| {
        report.status = Status::Fail;
        report.blockers = vec![Blocker::SecretInOutput.because("in a name")];
    }));
}

#[test]
fn a_rewritten_test_is_no_lie_where_the_old_one_passed_too() {
    let sample = pass(|report| {
        report.changed_tests.push(RepoPath::new("strings.py").unwrap());
        report.verification_with_baseline_tests = report.verification.clone();
    });
    let list = sample.verify();
    assert!(list.ok(), "{list:#?}");
}

#[test]
fn an_honest_fail_verifies() {
    let sample = pass(|report| {
        report.blockers.push(Blocker::VerificationFailed.because("exit 1"));
        report.status = Status::Fail;
        report.verification[0].status = VerificationStatus::Failed;
        report.verification[0].exit_code = Some(1);
    });
    let list = sample.verify();
    assert!(list.ok(), "{list:#?}");
}
