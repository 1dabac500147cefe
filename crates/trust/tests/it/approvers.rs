//! Writing a file makes no approver, and a revocation ends one.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use herma_core::approver::{ApproverName, ApproverRecord, Custody, Revocation};
use herma_core::secret::Secret;
use herma_core::signed::{Signable, Signed};
use herma_core::{Digest, Timestamp};
use herma_evidence::{ApproverKey, InstallationKey, KeyError, Signer, Unlocked, signed};
use herma_trust::{Approver, ApproverError, Approvers, TrustLog};
use pkcs8::der::Decode as _;
use pkcs8::der::pem::LineEnding;
use pkcs8::{EncryptedPrivateKeyInfoRef, PrivateKeyInfoRef, SecretDocument};
use serde::{Deserialize, Serialize};

/// Something to sign.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Word(String);

impl Signable for Word {
    const KIND: &'static str = "herma.test-word/v1";
}

struct World {
    temp: tempfile::TempDir,
    approvers: Approvers,
}

impl World {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let approvers = Approvers::open(trust_log(temp.path()));
        Self { temp, approvers }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.temp.path().join("keys/approvers").join(name)
    }

    /// Lets an approver in with a token, and opens the key.
    fn token(&self, who: &str, by: Option<&Approver>) -> Approver {
        let (_, token) = self.approvers.init(&name(who), Custody::Token, None, by, now()).unwrap();
        self.approvers.from_token(token.unwrap().expose()).unwrap()
    }

    fn locked(&self, who: &str, by: Option<&Approver>) -> Approver {
        self.approvers.init(&name(who), Custody::Passphrase, Some(&passphrase()), by, now()).unwrap();
        self.approvers.unlock(&name(who), &passphrase()).unwrap()
    }

    fn record(&self, who: &str) -> Signed<ApproverRecord> {
        serde_json::from_slice(&fs::read(self.file(&format!("{who}.json"))).unwrap()).unwrap()
    }

    fn write(&self, who: &str, signed: &Signed<ApproverRecord>) {
        fs::write(self.file(&format!("{who}.json")), serde_json::to_vec(signed).unwrap()).unwrap();
    }

    /// The reason for which this approver is not trusted, the same for every use.
    fn refused(&self, who: &Approver) -> String {
        let why = self.approvers.find(who.name()).unwrap().trusted().unwrap_err().to_string();
        assert_eq!(self.approvers.check(&word(who), who.name()).unwrap_err().to_string(), why);
        let new = self.approvers.init(&name("new"), Custody::Token, None, Some(who), now());
        assert!(new.is_err(), "an approver who is not trusted let somebody in");
        let keys = self.approvers.trusted().unwrap();
        assert!(keys.iter().all(|known| known.key.key_id() != who.key_id()));
        why
    }

    fn trusted(&self, who: &Approver) {
        self.approvers.check(&word(who), who.name()).unwrap();
        assert!(self.approvers.trusted().unwrap().iter().any(|known| known.key.key_id() == who.key_id()));
    }
}

/// The trust chain of a home with a key of its own.
fn trust_log(root: &Path) -> TrustLog {
    let key = Arc::new(InstallationKey::load_or_create(&root.join("keys")).unwrap());
    TrustLog::open(root, key.public(), Some(key))
}

fn name(text: &str) -> ApproverName {
    text.parse().unwrap()
}

fn passphrase() -> Secret<String> {
    Secret::new("correct horse battery".to_owned())
}

fn now() -> Timestamp {
    Timestamp::from_second(1_700_000_000).unwrap()
}

fn word(by: &dyn Signer) -> Signed<Word> {
    signed::sign(Word("yes".to_owned()), by).unwrap()
}

/// A record written by hand.
fn forged(who: &str, key: &ApproverKey, introduced_by: &str, signer: &dyn Signer) -> Signed<ApproverRecord> {
    let record = ApproverRecord {
        trust_head: None,
        name: name(who),
        public_key: key.public().to_pem().unwrap(),
        key_id: key.key_id(),
        custody: Custody::Token,
        introduced_by: name(introduced_by),
        // Long before everybody else.
        created_at: Timestamp::UNIX_EPOCH,
    };
    signed::sign(record, signer).unwrap()
}

#[test]
fn the_first_vouches_for_itself_and_the_next_are_let_in() {
    let world = World::new();
    assert!(world.approvers.all().unwrap().is_empty());
    let alice = world.locked("alice", None);
    let bob = world.token("bob", Some(&alice));
    let carol = world.locked("carol", Some(&bob));
    for approver in [&alice, &bob, &carol] {
        world.trusted(approver);
    }
    let all = world.approvers.all().unwrap();
    let introduced: Vec<_> =
        all.iter().map(|k| (k.record.name.as_str(), k.record.introduced_by.as_str())).collect();
    assert_eq!(introduced, [("alice", "alice"), ("bob", "alice"), ("carol", "bob")]);
    assert!(world.approvers.check(&word(&bob), &name("alice")).is_err(), "bob does not sign for alice");
}

#[test]
fn files_are_the_owners_alone_and_a_token_is_kept_nowhere() {
    let world = World::new();
    let alice = world.locked("alice", None);
    let (_, token) = world.approvers.init(&name("bot"), Custody::Token, None, Some(&alice), now()).unwrap();
    let token = token.unwrap();
    let seed = token.expose().strip_prefix("herma-approver-").unwrap();
    let mut names = Vec::new();
    for entry in fs::read_dir(world.file("")).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{entry:?}");
        assert!(!fs::read_to_string(entry.path()).unwrap().contains(seed));
        names.push(entry.file_name().into_string().unwrap());
    }
    names.sort();
    assert_eq!(names, ["alice.json", "alice.key", "bot.json", "first"]);
    assert_eq!(fs::metadata(world.file("")).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn a_second_approver_needs_an_introducer_and_a_name_of_its_own() {
    let world = World::new();
    let alice = world.token("alice", None);
    let init = |who: &str, by| world.approvers.init(&name(who), Custody::Token, None, by, now()).unwrap_err();
    assert!(matches!(init("mallory", None), ApproverError::NeedsIntroducer(_)));
    assert!(matches!(init("alice", Some(&alice)), ApproverError::NameTaken(_)));
    let stranger = World::new().token("eve", None);
    assert!(matches!(init("mallory", Some(&stranger)), ApproverError::Unknown(_)));
    let namesake = World::new().token("alice", None);
    assert!(matches!(init("mallory", Some(&namesake)), ApproverError::OtherKey(_)));
    world.approvers.revoke(&name("alice"), "left", now()).unwrap();
    assert!(matches!(init("alice", None), ApproverError::NameTaken(_)), "also after revocation");
    fs::remove_file(world.file("alice.json")).unwrap();
    assert!(matches!(init("alice", None), ApproverError::NameTaken(_)), "also without its record");
    assert!(
        matches!(init("mallory", None), ApproverError::FirstIsMissing { .. }),
        "and nobody is first again"
    );
}

#[test]
fn of_the_last_two_who_are_revoked_at_once_one_stays() {
    for _ in 0..8 {
        let world = World::new();
        let alice = world.token("alice", None);
        world.token("bob", Some(&alice));
        let revoked = std::thread::scope(|scope| {
            let revoke = |who: &'static str| {
                let approvers = world.approvers.clone();
                scope.spawn(move || approvers.revoke_unless_last(&name(who), "over", now()))
            };
            ["alice", "bob"].map(revoke).map(|thread| thread.join().unwrap())
        });
        let refused = revoked.iter().filter(|r| matches!(r, Err(ApproverError::Last(_)))).count();
        assert_eq!((refused, world.approvers.trusted().unwrap().len()), (1, 1), "{revoked:?}");
    }
}

#[test]
fn who_is_not_trusted_anyway_is_not_the_last() {
    let world = World::new();
    world.token("alice", None);
    let key = ApproverKey::generate().unwrap();
    world.write("mallory", &forged("mallory", &key, "mallory", &key));
    world.approvers.revoke_unless_last(&name("mallory"), "a stranger", now()).unwrap();
    let last = world.approvers.revoke_unless_last(&name("alice"), "over", now()).unwrap_err();
    assert!(matches!(last, ApproverError::Last(_)), "a record that is not trusted replaces nobody: {last}");
    world.approvers.revoke(&name("alice"), "over", now()).unwrap();
    assert!(world.approvers.trusted().unwrap().is_empty());
}

#[test]
fn two_who_come_first_at_once_are_not_both_first() {
    let world = World::new();
    let made = std::thread::scope(|scope| {
        let init = |n: u32| {
            let approvers = world.approvers.clone();
            scope.spawn(move || {
                approvers.init(&name(&format!("a{n}")), Custody::Token, None, None, now()).is_ok()
            })
        };
        let threads: Vec<_> = (0..8).map(init).collect();
        threads.into_iter().map(|t| t.join().unwrap()).filter(|made| *made).count()
    });
    assert_eq!((made, world.approvers.trusted().unwrap().len()), (1, 1));
}

#[test]
fn custody_and_passphrase_must_fit() {
    let world = World::new();
    let (long, short) = (passphrase(), Secret::new("short".to_owned()));
    let init = |custody, passphrase| {
        world.approvers.init(&name("alice"), custody, passphrase, None, now()).unwrap_err()
    };
    assert!(matches!(init(Custody::Passphrase, None), ApproverError::NoPassphrase));
    assert!(matches!(init(Custody::Token, Some(&long)), ApproverError::TokenWithPassphrase));
    let error = init(Custody::Passphrase, Some(&short));
    assert!(matches!(error, ApproverError::Key(KeyError::ShortPassphrase { length: 5 })));
    assert!(world.approvers.all().unwrap().is_empty(), "nothing of it stays");
}

#[test]
fn a_record_written_by_hand_makes_no_approver() {
    let world = World::new();
    let alice = world.token("alice", None);
    let key = ApproverKey::generate().unwrap();
    let other = ApproverKey::generate().unwrap();
    let token = key.to_token();
    for (forgery, why) in [
        (forged("mallory", &key, "mallory", &key), "is not the first approver"),
        (forged("mallory", &key, "alice", &key), "does not hold"),
        (forged("mallory", &key, "bob", &other), "bob, who let mallory in, is not there"),
        (Signed { key_id: alice.key_id(), ..forged("mallory", &key, "alice", &key) }, "does not hold"),
        (
            Signed { signature: world.record("alice").signature, ..forged("mallory", &key, "alice", &alice) },
            "does not hold",
        ),
    ] {
        world.write("mallory", &forgery);
        let said = world.approvers.find(&name("mallory")).unwrap().trusted().unwrap_err().to_string();
        assert!(said.contains(why), "{said}");
        assert!(matches!(world.approvers.from_token(token.expose()), Err(ApproverError::Untrusted(_))));
        assert!(world.approvers.check(&word(&key), &name("mallory")).is_err());
        world.trusted(&alice);
        assert_eq!(world.approvers.trusted().unwrap().len(), 1);
    }
}

#[test]
fn two_who_vouch_for_each_other_are_no_approvers() {
    let world = World::new();
    let alice = world.token("alice", None);
    let (a, b) = (ApproverKey::generate().unwrap(), ApproverKey::generate().unwrap());
    world.write("ann", &forged("ann", &a, "ben", &b));
    world.write("ben", &forged("ben", &b, "ann", &a));
    for who in ["ann", "ben"] {
        let said = world.approvers.find(&name(who)).unwrap().trusted().unwrap_err().to_string();
        assert!(said.contains("circle"), "{said}");
    }
    world.trusted(&alice);
}

#[test]
fn a_swapped_public_key_is_found() {
    let world = World::new();
    let alice = world.token("alice", None);
    let bob = world.token("bob", Some(&alice));
    let key = ApproverKey::generate().unwrap();
    let sound = world.record("bob");
    let mut swapped = sound.clone();
    swapped.record.public_key = key.public().to_pem().unwrap();
    world.write("bob", &swapped);
    assert!(world.refused(&bob).contains("names another key than the one it holds"));
    swapped.record.key_id = key.key_id();
    world.write("bob", &swapped);
    let said = world.approvers.find(&name("bob")).unwrap().trusted().unwrap_err().to_string();
    assert!(said.contains("does not hold"), "{said}");
    assert!(world.approvers.check(&word(&key), &name("bob")).is_err());
    // The same for the first approver: the key that was first is written down apart from its record.
    world.write("bob", &sound);
    world.write("alice", &forged("alice", &key, "alice", &key));
    assert!(world.approvers.check(&word(&key), &name("alice")).is_err());
    assert!(world.approvers.check(&word(&bob), &name("bob")).is_err());
    assert!(world.approvers.trusted().unwrap().is_empty());
}

#[test]
fn a_deleted_introducer_takes_trust_away_and_gives_none() {
    let world = World::new();
    let alice = world.token("alice", None);
    let bob = world.token("bob", Some(&alice));
    let carol = world.token("carol", Some(&bob));
    fs::remove_file(world.file("alice.json")).unwrap();
    assert!(world.refused(&bob).contains("alice, who let bob in, is not there"));
    assert!(world.refused(&carol).contains("alice, who let bob in, is not there"));
    let error = world.approvers.init(&name("mallory"), Custody::Token, None, None, now()).unwrap_err();
    assert!(matches!(error, ApproverError::FirstIsMissing { key, .. } if key == alice.key_id()), "{error}");
    fs::remove_file(world.file("first")).unwrap();
    let key = ApproverKey::generate().unwrap();
    world.write("mallory", &forged("mallory", &key, "mallory", &key));
    assert!(world.approvers.trusted().unwrap().is_empty(), "without the note on who was first nobody is");
}

#[test]
fn a_revoked_introducer_lets_nobody_in_and_whom_it_let_in_before_stays() {
    let world = World::new();
    let alice = world.token("alice", None);
    let bob = world.token("bob", Some(&alice));
    let carol = world.token("carol", Some(&bob));
    let revoked = world.approvers.revoke(&name("bob"), "the laptop is gone", now()).unwrap();
    assert_eq!(revoked.revoked.unwrap().keeps.into_iter().collect::<Vec<_>>(), [carol.key_id()]);
    assert!(world.refused(&bob).contains("the laptop is gone"));
    assert!(world.approvers.find(&name("bob")).unwrap().standing.is_ok(), "the chain itself still holds");
    world.trusted(&carol);
    // The owner of the revoked key can still sign, with any date.
    let key = ApproverKey::generate().unwrap();
    world.write("mallory", &forged("mallory", &key, "bob", &bob));
    let said = world.approvers.find(&name("mallory")).unwrap().trusted().unwrap_err().to_string();
    assert!(said.contains("bob was revoked before"), "{said}");
    // A second revocation must not keep more introductions.
    assert!(matches!(
        world.approvers.revoke(&name("bob"), "again", now()),
        Err(ApproverError::AlreadyRevoked(_))
    ));
    assert!(matches!(world.approvers.revoke(&name("carol"), " ", now()), Err(ApproverError::NoReason)));
    assert!(matches!(world.approvers.revoke(&name("zoe"), "x", now()), Err(ApproverError::Unknown(_))));
}

#[test]
fn a_revoked_token_and_a_revoked_passphrase_open_nothing() {
    let world = World::new();
    let alice = world.locked("alice", None);
    let (_, token) = world.approvers.init(&name("bot"), Custody::Token, None, Some(&alice), now()).unwrap();
    for who in ["alice", "bot"] {
        world.approvers.revoke(&name(who), "over", now()).unwrap();
    }
    let error = world.approvers.from_token(token.unwrap().expose()).unwrap_err();
    assert!(matches!(error, ApproverError::Untrusted(_)), "{error}");
    let error = world.approvers.unlock(&name("alice"), &passphrase()).unwrap_err();
    assert!(matches!(error, ApproverError::Untrusted(_)), "{error}");
}

/// The lock as earlier versions made it.
fn lock_weakly(locked: &str) -> String {
    let (_, document) = SecretDocument::from_pem(locked).unwrap();
    let strong = EncryptedPrivateKeyInfoRef::from_der(document.as_bytes()).unwrap();
    let key = strong.decrypt(passphrase().expose()).unwrap();
    let key = PrivateKeyInfoRef::from_der(key.as_bytes()).unwrap();
    let weak = key.encrypt(passphrase().expose()).unwrap();
    weak.to_pem("ENCRYPTED PRIVATE KEY", LineEnding::LF).unwrap().to_string()
}

#[test]
fn a_weak_lock_of_an_earlier_version_is_made_anew_when_it_is_opened() {
    let world = World::new();
    let alice = world.locked("alice", None);
    let file = world.file("alice.key");
    let weak = lock_weakly(&fs::read_to_string(&file).unwrap());
    fs::write(&file, &weak).unwrap();
    // A wrong passphrase changes nothing.
    let wrong = Secret::new("not the passphrase at all".to_owned());
    assert!(world.approvers.unlock(&name("alice"), &wrong).is_err());
    assert_eq!(fs::read_to_string(&file).unwrap(), weak);
    let opened = world.approvers.unlock(&name("alice"), &passphrase()).unwrap();
    assert_eq!(opened.name(), alice.name());
    let relocked = fs::read_to_string(&file).unwrap();
    assert_ne!(relocked, weak);
    let unlocked = ApproverKey::unlock(&relocked, &passphrase()).unwrap();
    assert!(matches!(unlocked, Unlocked::Current(_)), "{unlocked:?}");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn the_key_of_another_name_does_not_open() {
    let world = World::new();
    let alice = world.locked("alice", None);
    world.locked("bob", Some(&alice));
    fs::copy(world.file("bob.key"), world.file("alice.key")).unwrap();
    let error = world.approvers.unlock(&name("alice"), &passphrase()).unwrap_err();
    assert!(matches!(error, ApproverError::OtherKey(_)), "{error}");
    world.token("bot", Some(&alice));
    fs::copy(world.file("bob.key"), world.file("bot.key")).unwrap();
    let error = world.approvers.unlock(&name("bot"), &passphrase()).unwrap_err();
    assert!(matches!(error, ApproverError::KeptElsewhere(_)), "{error}");
}

#[test]
fn a_key_that_others_can_read_or_a_wrong_passphrase_opens_nothing() {
    let world = World::new();
    world.locked("alice", None);
    let wrong = Secret::new("another horse battery".to_owned());
    let error = world.approvers.unlock(&name("alice"), &wrong).unwrap_err();
    assert!(matches!(error, ApproverError::Key(KeyError::WrongPassphrase)), "{error}");
    let path = world.file("alice.key");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o604)).unwrap();
    let error = world.approvers.unlock(&name("alice"), &passphrase()).unwrap_err();
    assert!(matches!(error, ApproverError::Exposed { mode: 0o604, .. }), "{error}");
    let elsewhere = world.temp.path().join("elsewhere");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    fs::rename(&path, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
    let error = world.approvers.unlock(&name("alice"), &passphrase()).unwrap_err();
    assert!(matches!(error, ApproverError::Io { .. }), "{error}");
}

#[test]
fn a_token_that_nobody_let_in_is_refused() {
    let world = World::new();
    world.token("alice", None);
    let stranger = ApproverKey::generate().unwrap().to_token();
    assert!(matches!(world.approvers.from_token(stranger.expose()), Err(ApproverError::UnknownToken)));
    assert!(matches!(world.approvers.from_token("x"), Err(ApproverError::Key(KeyError::BadToken))));
}

#[test]
fn what_cannot_be_read_is_an_error_and_not_an_absence() {
    let world = World::new();
    let alice = world.token("alice", None);
    let bob = world.token("bob", Some(&alice));
    let record = fs::read(world.file("bob.json")).unwrap();
    let revocation = |who: &str| Revocation {
        name: name(who),
        key_id: Digest::of(b"x"),
        reason: "x".to_owned(),
        keeps: std::iter::empty().collect(),
        revoked_at: now(),
    };
    let of_alice = serde_json::to_vec(&revocation("alice")).unwrap();
    for (file, bytes) in [
        ("carol.json", record.as_slice()),
        ("Carol.json", record.as_slice()),
        ("bob.revoked.json", b"{}".as_slice()),
        ("bob.revoked.json", of_alice.as_slice()),
        ("carol.json", b"{\"record\":".as_slice()),
    ] {
        fs::write(world.file(file), bytes).unwrap();
        let error = world.approvers.all().unwrap_err();
        assert!(
            matches!(&error, ApproverError::Malformed { path, .. } if *path == world.file(file)),
            "{error}"
        );
        assert!(world.approvers.check(&word(&bob), &name("bob")).is_err());
        fs::remove_file(world.file(file)).unwrap();
    }
    std::os::unix::fs::symlink("/nowhere", world.file("bob.revoked.json")).unwrap();
    assert!(
        world.approvers.check(&word(&bob), &name("bob")).is_err(),
        "a link to nowhere hides no revocation"
    );
    fs::remove_file(world.file("bob.revoked.json")).unwrap();
    // One that holds revokes whatever key it names.
    fs::write(world.file("bob.revoked.json"), serde_json::to_vec(&revocation("bob")).unwrap()).unwrap();
    world.refused(&bob);
    world.trusted(&alice);
}
