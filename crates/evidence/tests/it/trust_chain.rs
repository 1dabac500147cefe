//! The trust chain: any removed, changed or moved record is detected.

use std::sync::LazyLock;

use herma_core::admission::AdmissionKind;
use herma_core::approval::{Answer, ApprovalId};
use herma_core::approver::Revocation;
use herma_core::trust::{ChainedApprover, TrustEntry, TrustHead};
use herma_core::{Digest, RunId, Timestamp};
use herma_evidence::{ApproverKey, InstallationKey, Signer, TrustChain};
use proptest::prelude::*;

struct World {
    installation: InstallationKey,
    alice: ApproverKey,
    bob: ApproverKey,
    lines: Vec<Vec<u8>>,
    head: TrustHead,
}

static WORLD: LazyLock<World> = LazyLock::new(World::new);

impl World {
    /// A chain with a record of every type.
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let installation = InstallationKey::load_or_create(dir.path()).unwrap();
        let (alice, bob) = (ApproverKey::generate().unwrap(), ApproverKey::generate().unwrap());
        let mut world = Self { installation, alice, bob, lines: Vec::new(), head: TrustHead::empty() };
        let admission = |record| TrustEntry::AdmissionSigned {
            kind: AdmissionKind::Target,
            name: "shop".to_owned(),
            record: Digest::of(record),
        };
        let entries: Vec<(TrustEntry, &dyn Signer)> = vec![
            (world.started(), &world.alice),
            (TrustEntry::ApproverAdded { approver: chained("bob", &world.bob) }, &world.alice),
            (admission(b"old"), &world.bob),
            (
                TrustEntry::AdmissionRevoked { kind: AdmissionKind::Target, name: "shop".to_owned() },
                &world.installation,
            ),
            (admission(b"new"), &world.alice),
            (ruled(1), &world.bob),
            (TrustEntry::ApprovalConsumed { approval: approval(1), run: run(1) }, &world.installation),
            (revoked("bob", &world.bob), &world.installation),
            (ruled(2), &world.alice),
            (TrustEntry::EgressGrantRevoked { grant: Digest::of(b"grant") }, &world.installation),
            (TrustEntry::EgressListSigned { serial: 1, record: Digest::of(b"list") }, &world.alice),
        ];
        let mut chain = world.empty();
        let mut lines = Vec::new();
        for (entry, signer) in entries {
            let line = chain.next(entry, signer, now()).unwrap();
            chain.follow(&line).unwrap();
            lines.push(line);
        }
        world.head = chain.head();
        world.lines = lines;
        world
    }

    fn started(&self) -> TrustEntry {
        let installation = self.installation.key_id();
        TrustEntry::Started { installation, adopted: false, approver: chained("alice", &self.alice) }
    }

    fn empty(&self) -> TrustChain {
        TrustChain::new(self.installation.public())
    }

    /// The chain after these lines, or why they are none.
    fn read<'a>(&self, lines: impl IntoIterator<Item = &'a Vec<u8>>) -> Result<TrustChain, String> {
        let mut chain = self.empty();
        lines.into_iter().try_for_each(|line| chain.follow(line)).map_err(|e| e.to_string())?;
        Ok(chain)
    }

    /// Whether a reader who knows the head accepts these lines as the chain.
    fn holds<'a>(&self, lines: impl IntoIterator<Item = &'a Vec<u8>>) -> bool {
        self.read(lines).is_ok_and(|chain| chain.contains(&self.head))
    }

    /// Why a record that is appended to the first `after` lines is refused.
    fn refused(&self, after: usize, entry: TrustEntry, signer: &dyn Signer) -> String {
        let mut chain = self.read(&self.lines[..after]).unwrap();
        let line = chain.next(entry, signer, now()).unwrap();
        chain.follow(&line).unwrap_err().to_string()
    }
}

fn chained(name: &str, key: &ApproverKey) -> ChainedApprover {
    ChainedApprover {
        name: name.parse().unwrap(),
        public_key: key.public().to_pem().unwrap(),
        record: Digest::of(name.as_bytes()),
    }
}

fn revoked(name: &str, key: &ApproverKey) -> TrustEntry {
    TrustEntry::ApproverRevoked {
        revocation: Revocation {
            name: name.parse().unwrap(),
            key_id: key.key_id(),
            reason: "left".to_owned(),
            keeps: std::collections::BTreeSet::default(),
            revoked_at: now(),
        },
    }
}

fn ruled(n: u8) -> TrustEntry {
    TrustEntry::ApprovalRuled { approval: approval(n), answer: Answer::Granted, record: Digest::of(&[n]) }
}

fn approval(n: u8) -> ApprovalId {
    ApprovalId::new(now(), [n; 10])
}

fn run(n: u8) -> RunId {
    RunId::new(now(), [n; 10])
}

fn now() -> Timestamp {
    Timestamp::from_second(1_700_000_000).unwrap()
}

#[test]
fn the_chain_tells_what_counts() {
    let chain = WORLD.read(&WORLD.lines).unwrap();
    assert!(WORLD.holds(&WORLD.lines));
    assert_eq!(chain.head().sequence, 11);
    assert_eq!(chain.admission(AdmissionKind::Target, "shop"), Some(Some(Digest::of(b"new"))));
    assert_eq!(chain.admission(AdmissionKind::Engine, "shop"), None);
    assert_eq!(chain.consumed_by(approval(1)), Some(run(1)));
    assert_eq!(chain.consumed_by(approval(2)), None);
    assert_eq!(chain.ruling(approval(2)), Some((Answer::Granted, Digest::of(&[2]))));
    assert!(chain.revocation(&"bob".parse().unwrap()).is_some());
    assert!(chain.is_grant_revoked(&Digest::of(b"grant")));
    assert_eq!(chain.egress_list(), Some((1, Digest::of(b"list"))));
    let earlier = WORLD.read(&WORLD.lines[..4]).unwrap();
    assert_eq!(earlier.admission(AdmissionKind::Target, "shop"), Some(None));
    assert!(chain.contains(&earlier.head()) && !earlier.contains(&chain.head()));
    assert!(chain.contains(&TrustHead::empty()));
    let fork = TrustHead { digest: Digest::of(b"fork"), ..earlier.head() };
    assert!(!chain.contains(&fork));
}

#[test]
fn a_record_of_the_wrong_signer_is_refused() {
    let added = || TrustEntry::ApproverAdded { approver: chained("carol", &WORLD.bob) };
    let stranger = ApproverKey::generate().unwrap();
    // The installation's key takes trust away and gives none.
    assert!(WORLD.refused(2, added(), &WORLD.installation).contains("no approver of the chain signed it"));
    assert!(WORLD.refused(2, added(), &stranger).contains("no approver of the chain signed it"));
    assert!(WORLD.refused(1, added(), &WORLD.bob).contains("no approver of the chain signed it"));
    assert!(WORLD.refused(8, added(), &WORLD.bob).contains("bob, who signed it, was revoked before"));
    assert!(WORLD.refused(2, revoked("bob", &WORLD.bob), &WORLD.bob).contains("it was signed with the key"));
    // No other approver vouches for the first, and there is only one first.
    assert!(WORLD.refused(0, WORLD.started(), &WORLD.bob).contains("it was signed with the key"));
    assert!(WORLD.refused(3, WORLD.started(), &WORLD.alice).contains("a chain starts once"));
    assert!(WORLD.refused(0, ruled(1), &WORLD.alice).contains("does not start with its first record"));
    let again = TrustEntry::ApproverAdded { approver: chained("bob", &stranger) };
    assert!(WORLD.refused(8, again, &WORLD.alice).contains("bob was added before"));
}

#[test]
fn the_chain_of_another_installation_is_refused() {
    let other = World::new();
    let why = WORLD.read(&other.lines).unwrap_err();
    assert!(why.contains("record 1") && why.contains("the chain is that of the installation"), "{why}");
    let spliced: Vec<_> = WORLD.lines[..3].iter().chain(&other.lines[3..]).cloned().collect();
    assert!(WORLD.read(&spliced).unwrap_err().contains("record 4"));
}

#[test]
fn every_truncation_is_detected_with_the_head() {
    for end in 0..WORLD.lines.len() {
        let chain = WORLD.read(&WORLD.lines[..end]).unwrap();
        assert!(!chain.contains(&WORLD.head), "{end}");
    }
}

proptest! {
    #[test]
    fn a_removed_record_is_found(at in 0..WORLD.lines.len()) {
        let mut lines = WORLD.lines.clone();
        lines.remove(at);
        prop_assert!(!WORLD.holds(&lines));
    }

    #[test]
    fn records_in_another_order_are_found(a in 0..WORLD.lines.len(), b in 0..WORLD.lines.len()) {
        prop_assume!(a != b);
        let mut lines = WORLD.lines.clone();
        lines.swap(a, b);
        prop_assert!(!WORLD.holds(&lines));
    }

    #[test]
    fn a_record_that_is_there_twice_is_found(from in 0..WORLD.lines.len(), to in 0..WORLD.lines.len()) {
        let mut lines = WORLD.lines.clone();
        lines.insert(to, WORLD.lines[from].clone());
        prop_assert!(!WORLD.holds(&lines));
    }

    #[test]
    fn a_changed_byte_is_found(at in 0..WORLD.lines.len(), place in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut lines = WORLD.lines.clone();
        let place = place.index(lines[at].len());
        prop_assume!(lines[at][place] != byte);
        lines[at][place] = byte;
        prop_assert!(!WORLD.holds(&lines));
    }
}
