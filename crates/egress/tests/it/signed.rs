//! Signed lists: only the named key's count, and never an older one.

use herma_core::signed::{Signable, Signed};
use herma_egress::signed::{BadList, NamedKey, SignedList, Verified, verify};
use herma_evidence::InstallationKey;
use herma_evidence::signed::sign;
use serde::Serialize;
use serde_json::{Value, json};

struct Keys {
    _dirs: [tempfile::TempDir; 2],
    right: InstallationKey,
    wrong: InstallationKey,
    named: NamedKey,
}

fn keys() -> Keys {
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [right, wrong] = [0, 1].map(|at: usize| InstallationKey::load_or_create(dirs[at].path()).unwrap());
    let named = NamedKey { name: "platform".to_owned(), key: right.public() };
    Keys { _dirs: dirs, right, wrong, named }
}

fn list(serial: u64, hosts: &[&str]) -> SignedList {
    SignedList { serial, hosts: hosts.iter().map(|host| (*host).to_owned()).collect() }
}

fn bytes<T: Signable>(record: T, key: &InstallationKey) -> Vec<u8> {
    serde_json::to_vec(&sign(record, key).unwrap()).unwrap()
}

#[test]
fn a_list_that_the_named_key_signed_counts() {
    let keys = keys();
    let verified =
        verify(&bytes(list(1, &["a.example", "*.b.example"]), &keys.right), &keys.named, None).unwrap();
    assert_eq!((verified.serial, verified.allowlist.rules().count()), (1, 2));
}

#[test]
fn a_list_that_was_changed_or_signed_by_another_does_not() {
    let keys = keys();
    let good = bytes(list(1, &["a.example"]), &keys.right);
    let said =
        verify(&bytes(list(1, &["a.example"]), &keys.wrong), &keys.named, None).unwrap_err().to_string();
    assert!(said.contains("not signed by the key `platform`"), "{said}");
    let mut forged: Signed<SignedList> =
        serde_json::from_slice(&bytes(list(1, &["a.example"]), &keys.wrong)).unwrap();
    forged.key_id = keys.right.key_id();
    let forged = serde_json::to_vec(&forged).unwrap();
    assert!(matches!(verify(&forged, &keys.named, None), Err(BadList::Signature { .. })));
    for (pointer, value) in [
        ("/record/hosts/0", json!("evil.example")),
        ("/record/serial", json!(2)),
        ("/signature", json!("AAAA")),
    ] {
        let mut changed: Value = serde_json::from_slice(&good).unwrap();
        *changed.pointer_mut(pointer).unwrap() = value;
        let changed = serde_json::to_vec(&changed).unwrap();
        assert!(matches!(verify(&changed, &keys.named, None), Err(BadList::Signature { .. })), "{pointer}");
    }
    let mut more: Value = serde_json::from_slice(&good).unwrap();
    more["record"]["also"] = json!(["evil.example"]);
    let more = serde_json::to_vec(&more).unwrap();
    assert!(matches!(verify(&more, &keys.named, None), Err(BadList::Unreadable(_))));
    assert!(matches!(verify(b"", &keys.named, None), Err(BadList::Unreadable(_))));
    assert!(matches!(verify(&vec![b' '; 2 << 20], &keys.named, None), Err(BadList::TooLarge)));
}

#[test]
fn a_signature_over_another_kind_of_record_is_none_over_a_list() {
    #[derive(Serialize)]
    struct Other(SignedList);
    impl Signable for Other {
        const KIND: &'static str = "herma.other/v1";
    }
    let keys = keys();
    let other = bytes(Other(list(1, &["a.example"])), &keys.right);
    assert!(matches!(verify(&other, &keys.named, None), Err(BadList::Signature { .. })));
}

#[test]
fn a_signed_entry_must_still_be_a_rule() {
    let keys = keys();
    let bad = verify(&bytes(list(1, &["127.0.0.1"]), &keys.right), &keys.named, None);
    assert!(matches!(bad, Err(BadList::Rule(_))));
}

#[test]
fn an_older_list_does_not_take_the_place_of_a_newer_one() {
    let keys = keys();
    let check = |serial, hosts: &[&str], last: Option<&Verified>| {
        verify(&bytes(list(serial, hosts), &keys.right), &keys.named, last)
    };
    let last = check(5, &["a.example"], None).unwrap();
    assert!(matches!(check(4, &["a.example"], Some(&last)), Err(BadList::Older { serial: 4, last: 5 })));
    assert!(matches!(check(5, &["b.example"], Some(&last)), Err(BadList::Older { .. })));
    assert_eq!(check(5, &["a.example"], Some(&last)).unwrap(), last);
    assert_eq!(check(6, &["b.example"], Some(&last)).unwrap().serial, 6);
}
