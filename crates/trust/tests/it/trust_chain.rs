//! The trust chain of a home: concurrent appends, and detection of a torn or rolled back file.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use herma_core::approver::Custody;
use herma_core::trust::TrustHead;
use herma_core::{Digest, RunId, Status, Timestamp};
use herma_evidence::InstallationKey;
use herma_evidence::envelope::{Envelope, Predicate, Statement};
use herma_trust::{AdmissionFile, Admissions, Approver, Approvers, TrustError, TrustLog};

const MODEL: &str = "\
kind: model
provider: openai
model: MODEL
credential_source: environment
network: public
review_trigger: { date: 2027-01-31 }
expires_at:
";

struct World {
    temp: tempfile::TempDir,
    ada: Approver,
}

impl World {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let approvers = Approvers::open(open(temp.path()));
        let (_, token) = approvers.init(&"ada".parse().unwrap(), Custody::Token, None, None, now()).unwrap();
        let ada = approvers.from_token(token.unwrap().expose()).unwrap();
        Self { temp, ada }
    }

    /// As another process would open it.
    fn log(&self) -> TrustLog {
        open(self.temp.path())
    }

    fn file(&self) -> PathBuf {
        self.temp.path().join("trust/chain.jsonl")
    }

    fn sign(&self, model: &str) {
        let draft = self.temp.path().join(format!("{model}.yaml"));
        fs::write(&draft, MODEL.replace("MODEL", model)).unwrap();
        let admissions = Admissions::open(self.temp.path().join("admissions"), self.log());
        admissions.sign(&AdmissionFile::read(&draft).unwrap(), &self.ada, now()).unwrap();
    }
}

fn open(root: &Path) -> TrustLog {
    let key = Arc::new(InstallationKey::load_or_create(&root.join("keys")).unwrap());
    TrustLog::open(root, key.public(), Some(key))
}

fn now() -> Timestamp {
    Timestamp::from_second(1_700_000_000).unwrap()
}

#[test]
fn of_fifty_who_append_at_once_nobody_is_lost() {
    let world = World::new();
    std::thread::scope(|scope| {
        for n in 0..50 {
            let world = &world;
            scope.spawn(move || world.sign(&format!("model-{n}")));
        }
    });
    let (chain, witnesses) = world.log().audit().unwrap();
    assert_eq!((chain.head().sequence, witnesses), (51, 50));
    let named =
        |n| chain.admission(herma_core::admission::AdmissionKind::Model, &format!("openai/model-{n}"));
    assert!((0..50).all(|n| matches!(named(n), Some(Some(_)))));
}

#[test]
fn a_line_that_a_power_cut_tore_is_no_record_and_is_replaced_by_the_next() {
    let world = World::new();
    world.sign("one");
    let whole = fs::read(world.file()).unwrap();
    world.sign("two");
    let two = fs::read(world.file()).unwrap();
    for end in [whole.len() + 1, two.len() - 1] {
        fs::write(world.file(), &two[..end]).unwrap();
        assert_eq!(world.log().read().unwrap().head().sequence, 2, "{end}");
        world.sign("three");
        let mended = fs::read(world.file()).unwrap();
        assert!(mended.starts_with(&whole) && mended.ends_with(b"\n"));
        assert_eq!(world.log().read().unwrap().head().sequence, 3);
    }
    // The signature of the removed record names its head, and so does not count.
    fs::write(world.file(), &whole).unwrap();
    assert_eq!(world.log().read().unwrap().head().sequence, 2);
}

#[test]
fn a_chain_that_changes_under_a_process_is_refused() {
    let world = World::new();
    world.sign("one");
    let log = world.log();
    let before = fs::read(world.file()).unwrap();
    world.sign("two");
    log.read().unwrap();
    fs::write(world.file(), &before).unwrap();
    assert!(matches!(log.read(), Err(TrustError::Changed)));
    // Another process knows it from the signed admission, which saw more.
    let other = world.log();
    world.sign("three");
    assert_eq!(other.read().unwrap().head().sequence, 3);
    fs::write(world.file(), &before[..=before.iter().position(|b| *b == b'\n').unwrap()]).unwrap();
    let refused = world.log().audit().unwrap_err();
    assert!(matches!(refused, TrustError::RolledBack { .. }), "{refused}");
    assert!(refused.to_string().contains("the signed admission of model"), "{refused}");
}

#[test]
fn what_is_there_in_place_of_the_chain_is_not_followed_and_not_waited_for() {
    let world = World::new();
    let chain = fs::read(world.file()).unwrap();
    let elsewhere = world.temp.path().join("elsewhere");
    fs::write(&elsewhere, chain).unwrap();
    fs::remove_file(world.file()).unwrap();
    std::os::unix::fs::symlink(&elsewhere, world.file()).unwrap();
    assert!(matches!(world.log().read(), Err(TrustError::Io { .. })));
    fs::remove_file(world.file()).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        world.file(),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    assert!(matches!(world.log().read(), Err(TrustError::Io { .. })));
}

/// The bundle of a run that names this head.
fn bundle(root: &Path, run: &str, head: TrustHead) {
    let key = InstallationKey::load_or_create(&root.join("keys")).unwrap();
    let run_id: RunId = run.parse().unwrap();
    let predicate = Predicate {
        run_id,
        contract_digest: Digest::of(b""),
        status: Status::Pass,
        herma_version: "0".to_owned(),
        trust_head: Some(head),
    };
    let dir = root.join("runs").join(run).join("bundle");
    fs::create_dir_all(&dir).unwrap();
    let statement = Statement::new([].into(), predicate);
    let sealed = Envelope::seal(&statement, |bytes| (key.key_id(), key.sign(bytes))).unwrap();
    fs::write(dir.join("attestation.json"), sealed.to_bytes().unwrap()).unwrap();
}

#[test]
fn a_rollback_is_seen_behind_any_number_of_bundles_with_later_names() {
    let world = World::new();
    let before = (fs::read(world.file()).unwrap(), world.log().read().unwrap().head());
    world.sign("one");
    let root = world.temp.path();
    bundle(root, "01890a5d-ac96-774b-bcce-b302099a8057", world.log().read().unwrap().head());
    for number in 100..200 {
        bundle(root, &format!("ffffffff-ffff-7fff-8fff-fffffffff{number}"), before.1);
    }
    world.log().read().unwrap();
    fs::write(world.file(), before.0).unwrap();
    let refused = world.log().read().unwrap_err();
    assert!(matches!(refused, TrustError::RolledBack { .. }), "{refused}");
    assert!(refused.to_string().contains("01890a5d-ac96-774b-bcce-b302099a8057"), "{refused}");
}

#[test]
fn a_list_of_checked_runs_hides_no_rollback() {
    let world = World::new();
    let (root, list) = (world.temp.path(), world.temp.path().join("trust/checked-runs"));
    let add = |from: u32| {
        let head = world.log().read().unwrap().head();
        for number in from..from + 70 {
            bundle(root, &format!("01890a5d-ac96-774b-bcce-b302099a8{number}"), head);
        }
        world.log().read().unwrap();
        (fs::read(world.file()).unwrap(), fs::read(&list).unwrap())
    };
    let (short_chain, short_list) = add(100);
    world.sign("one");
    let (long_chain, long_list) = add(200);
    assert!(long_list.len() > short_list.len());
    let refused = |chain: &[u8], checked: Option<&[u8]>| {
        fs::write(world.file(), chain).unwrap();
        match checked {
            Some(checked) => fs::write(&list, checked).unwrap(),
            None => fs::remove_file(&list).unwrap(),
        }
        matches!(world.log().read(), Err(TrustError::RolledBack { .. }))
    };
    let names = |checked: &[u8]| checked[checked.iter().position(|byte| *byte == b'\n').unwrap()..].to_vec();
    let header = short_list[..short_list.len() - names(&short_list).len()].to_vec();
    let forged = [header, names(&long_list)].concat();
    for checked in [Some(&long_list[..]), Some(&short_list), Some(&forged), Some(b""), None] {
        assert!(refused(&short_chain, checked), "{}", checked.is_some());
        assert!(!refused(&long_chain, checked.or(Some(b"?"))));
    }
}

#[test]
fn an_attestation_that_changed_since_it_was_listed_is_read_again() {
    let world = World::new();
    let (root, head) = (world.temp.path(), world.log().read().unwrap().head());
    let run = |number: u32| format!("01890a5d-ac96-774b-bcce-b302099a8{number}");
    (100..170).for_each(|number| bundle(root, &run(number), head));
    world.log().read().unwrap();
    let list = fs::read_to_string(root.join("trust/checked-runs")).unwrap();
    assert_eq!((list.lines().count(), list.matches(&run(100)).count()), (71, 1), "{list}");
    let later = TrustHead { sequence: 9, digest: Digest::of(b"later") };
    bundle(root, &run(100), later);
    assert!(matches!(world.log().read(), Err(TrustError::RolledBack { .. })));
}

#[test]
fn runs_of_a_home_without_a_chain_are_listed_too() {
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path();
    (100..170).for_each(|number| {
        bundle(root, &format!("01890a5d-ac96-774b-bcce-b302099a8{number}"), TrustHead::empty());
    });
    assert_eq!(open(root).head_to_name().unwrap(), TrustHead::empty());
    let list = fs::read_to_string(root.join("trust/checked-runs")).unwrap();
    assert_eq!(list.lines().count(), 71, "{list}");
    let later = TrustHead { sequence: 9, digest: Digest::of(b"later") };
    bundle(root, "01890a5d-ac96-774b-bcce-b302099a8100", later);
    assert_eq!(open(root).head_to_name().unwrap(), later);
}
