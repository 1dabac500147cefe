//! Signed records: any change to one invalidates its signature.

use std::fs;
use std::sync::LazyLock;

use herma_core::secret::Secret;
use herma_core::signed::{Signable, Signed};
use herma_evidence::approver_key::TOKEN_PREFIX;
use herma_evidence::signed::{check, digest, sign};
use herma_evidence::{ApproverKey, BadSignature, KeyError, Redactor, Signer, Unlocked, secrets};
use pkcs8::der::Decode as _;
use pkcs8::der::asn1::OctetStringRef;
use pkcs8::der::pem::LineEnding;
use pkcs8::pkcs5::EncryptionScheme;
use pkcs8::pkcs5::pbes2::{self, Parameters, ScryptParams};
use pkcs8::{EncryptedPrivateKeyInfoRef, SecretDocument};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Yes {
    to: String,
    count: u64,
    parts: Vec<Option<bool>>,
}

impl Signable for Yes {
    const KIND: &'static str = "herma.test-yes/v1";
}

/// The same fields under another kind.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
struct No(Yes);

impl Signable for No {
    const KIND: &'static str = "herma.test-no/v1";
}

static KEY: LazyLock<ApproverKey> = LazyLock::new(|| ApproverKey::generate().unwrap());

fn yes() -> impl Strategy<Value = Yes> {
    let parts = prop::collection::vec(any::<Option<bool>>(), 0..4);
    (any::<String>(), 0..=1u64 << 53, parts).prop_map(|(to, count, parts)| Yes { to, count, parts })
}

fn passphrase(text: &str) -> Secret<String> {
    Secret::new(text.to_owned())
}

proptest! {
    #[test]
    fn only_the_signed_record_verifies(record in yes(), other in yes(), at in any::<prop::sample::Index>(), bit in 0u32..8) {
        let signed = sign(record.clone(), &*KEY).unwrap();
        prop_assert!(check(&signed, &KEY.public()).is_ok());
        let key_id = signed.key_id;

        let swapped = Signed { record: other.clone(), ..signed.clone() };
        prop_assert_eq!(check(&swapped, &KEY.public()).is_ok(), other == record);
        prop_assert_eq!(digest(&other).unwrap() == digest(&record).unwrap(), other == record);

        let kind = Signed { record: No(record), key_id, signature: signed.signature.clone() };
        prop_assert!(matches!(check(&kind, &KEY.public()), Err(BadSignature::Wrong(_))));

        // Any flipped bit of the file either makes it unreadable or is found.
        let mut bytes = serde_json::to_vec(&signed).unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= 1u8 << bit;
        if let Ok(read) = serde_json::from_slice::<Signed<Yes>>(&bytes) {
            prop_assert!(read != signed, "byte {at} has two spellings");
            prop_assert!(check(&read, &KEY.public()).is_err(), "byte {at}");
        }
    }
}

#[test]
fn every_flipped_bit_of_a_signature_is_found() {
    let record = Yes { to: "all".to_owned(), count: 1, parts: vec![None] };
    let signed = sign(record, &*KEY).unwrap();
    for at in 0..signed.signature.len() {
        for bit in 0..7 {
            let mut text = signed.signature.clone().into_bytes();
            text[at] ^= 1 << bit;
            let broken = Signed { signature: String::from_utf8(text).unwrap(), ..signed.clone() };
            assert!(check(&broken, &KEY.public()).is_err(), "character {at}, bit {bit}");
        }
    }
    for odd in
        [signed.signature.trim_end_matches('=').to_owned(), format!("{}\n", signed.signature), String::new()]
    {
        let broken = Signed { signature: odd, ..signed.clone() };
        assert!(matches!(check(&broken, &KEY.public()), Err(BadSignature::Malformed)));
    }
}

#[test]
fn another_key_is_not_this_one() {
    let other = ApproverKey::generate().unwrap();
    let record = Yes { to: "all".to_owned(), count: 1, parts: Vec::new() };
    let signed = sign(record, &other).unwrap();
    assert!(matches!(check(&signed, &KEY.public()), Err(BadSignature::OtherKey { .. })));
    let renamed = Signed { key_id: KEY.key_id(), ..signed.clone() };
    assert!(matches!(check(&renamed, &KEY.public()), Err(BadSignature::Wrong(_))));
    let misnamed = Signed { key_id: KEY.key_id(), ..signed };
    assert!(matches!(check(&misnamed, &other.public()), Err(BadSignature::OtherKey { .. })));
}

#[test]
fn numbers_that_share_a_canonical_form_are_not_signed() {
    let record = |count| Yes { to: String::new(), count, parts: Vec::new() };
    assert!(sign(record(1 << 53), &*KEY).is_ok());
    assert!(sign(record((1 << 53) + 1), &*KEY).is_err());
    let signed = sign(record(1 << 53), &*KEY).unwrap();
    let neighbour = Signed { record: record((1 << 53) + 1), ..signed };
    assert!(matches!(check(&neighbour, &KEY.public()), Err(BadSignature::Record(_))));
}

/// The key in a lock that is as strong as one that is made now.
fn current(locked: &str, phrase: &str) -> ApproverKey {
    match ApproverKey::unlock(locked, &passphrase(phrase)).unwrap() {
        Unlocked::Current(key) => key,
        Unlocked::Outdated(outdated) => panic!("{outdated:?}"),
    }
}

#[test]
fn a_locked_key_opens_with_its_passphrase_only() {
    let locked = KEY.lock(&passphrase("correct horse battery")).unwrap();
    assert!(locked.starts_with("-----BEGIN ENCRYPTED PRIVATE KEY-----\n"), "{locked}");
    let opened = current(&locked, "correct horse battery");
    assert_eq!(opened.key_id(), KEY.key_id());
    for wrong in ["correct horse batterz", "", "correct horse battery "] {
        let error = ApproverKey::unlock(&locked, &passphrase(wrong)).unwrap_err();
        assert!(matches!(error, KeyError::WrongPassphrase), "{wrong:?}: {error}");
    }
    assert_ne!(
        locked,
        KEY.lock(&passphrase("correct horse battery")).unwrap(),
        "each lock has a salt of its own"
    );
}

/// Decryption is not authenticated: with this passphrase the padding happens to look right, and still there is no key.
#[test]
fn a_wrong_passphrase_that_decrypts_to_something_gives_no_key() {
    let locked = include_str!("openssl-scrypt.pem");
    let error = ApproverKey::unlock(locked, &passphrase("wrong horse 36")).unwrap_err();
    assert!(matches!(error, KeyError::WrongPassphrase), "{error}");
}

#[test]
fn a_short_passphrase_is_refused() {
    assert!(matches!(KEY.lock(&passphrase("elevenchars")), Err(KeyError::ShortPassphrase { length: 11 })));
    // Twelve characters, though more bytes: people count characters.
    assert!(KEY.lock(&passphrase("zwölf äöüßßß")).is_ok());
}

#[test]
fn an_invalid_locked_key_is_reported() {
    let temp = tempfile::tempdir().unwrap();
    herma_evidence::InstallationKey::load_or_create(temp.path()).unwrap();
    let open = fs::read_to_string(temp.path().join("installation.key")).unwrap();
    let locked = KEY.lock(&passphrase("correct horse battery")).unwrap();
    let body = locked.lines().nth(1).unwrap();
    for text in ["", "hello", &open, &locked.replace(body, ""), &locked.replace("ENCRYPTED ", "")] {
        let error = ApproverKey::unlock(text, &passphrase("correct horse battery")).unwrap_err();
        assert!(matches!(error, KeyError::Malformed { .. }), "{text}: {error}");
    }
}

#[test]
fn a_key_that_openssl_locked_opens() {
    // The vector was made by `openssl pkcs8 -topk8 -scrypt`, at N = 2^14 like the locks of earlier versions.
    let locked = include_str!("openssl-scrypt.pem");
    let opened = ApproverKey::unlock(locked, &passphrase("correct horse battery")).unwrap();
    let Unlocked::Outdated(outdated) = opened else { panic!("N = 2^14 is taken for a strong lock") };
    let (key, relocked) = outdated.relock(&passphrase("correct horse battery")).unwrap();
    assert_eq!(key.public().to_pem().unwrap(), include_str!("openssl-scrypt.pub"));
    assert_eq!(current(&relocked, "correct horse battery").key_id(), key.key_id());
}

/// A lock with these parameters of scrypt. The body is no key, and is never decrypted where the lock is refused.
fn lock_with(cost: u64, block_size: u16, parallelization: u16) -> String {
    let salt = [7u8; 16].as_slice().try_into().unwrap();
    let kdf = ScryptParams { salt, cost_parameter: cost, block_size, parallelization, key_length: None };
    let parameters =
        Parameters { kdf: kdf.into(), encryption: pbes2::EncryptionScheme::Aes256Cbc { iv: [0; 16] } };
    let body = OctetStringRef::new(&[0; 48]).unwrap();
    let locked = EncryptedPrivateKeyInfoRef { encryption_algorithm: parameters.into(), encrypted_data: body };
    let document = SecretDocument::encode_msg(&locked).unwrap();
    document.to_pem("ENCRYPTED PRIVATE KEY", LineEnding::LF).unwrap().to_string()
}

#[test]
fn a_lock_that_is_weak_or_takes_all_memory_is_refused_before_it_is_tried() {
    let refused = [
        (0, 8, 1),
        (1 << 10, 8, 1),
        (1 << 13, 8, 1),
        (1 << 20, 8, 1),
        (1 << 40, 8, 1),
        (1 << 17, 1, 1),
        (1 << 17, 64, 1),
        (1 << 17, u16::MAX, 1),
        (1 << 17, 8, 5),
        (1 << 17, 8, u16::MAX),
    ];
    for (cost, block_size, parallelization) in refused {
        let locked = lock_with(cost, block_size, parallelization);
        let error = ApproverKey::unlock(&locked, &passphrase("correct horse battery")).unwrap_err();
        assert!(matches!(error, KeyError::BadLock { .. }), "{cost} {block_size} {parallelization}: {error}");
        assert!(error.to_string().contains("herma approver init"), "{error}");
    }
    for cost in [1 << 14, 1 << 17] {
        let error =
            ApproverKey::unlock(&lock_with(cost, 8, 1), &passphrase("correct horse battery")).unwrap_err();
        assert!(matches!(error, KeyError::WrongPassphrase), "{cost}: {error}");
    }
}

#[test]
fn a_new_lock_takes_the_memory_that_current_guidance_asks_for() {
    let locked = KEY.lock(&passphrase("correct horse battery")).unwrap();
    let (_, document) = SecretDocument::from_pem(&locked).unwrap();
    let locked = EncryptedPrivateKeyInfoRef::from_der(document.as_bytes()).unwrap();
    let EncryptionScheme::Pbes2(parameters) = &locked.encryption_algorithm else { panic!() };
    let scrypt = parameters.kdf.scrypt().unwrap();
    assert_eq!((scrypt.cost_parameter, scrypt.block_size, scrypt.parallelization), (1 << 17, 8, 1));
}

#[test]
fn a_token_is_the_key_and_is_redacted_anywhere() {
    let token = KEY.to_token();
    assert_eq!(format!("{token:?}{:?}", *KEY), format!("[secret]ApproverKey({})", KEY.key_id()));
    let text = token.expose();
    assert_eq!(ApproverKey::from_token(text).unwrap().key_id(), KEY.key_id());
    for broken in
        [&text[1..], &text[..text.len() - 1], &format!("{text}="), &format!("{text}AA"), TOKEN_PREFIX, ""]
    {
        let error = ApproverKey::from_token(broken).unwrap_err();
        assert!(matches!(error, KeyError::BadToken));
        assert!(!error.to_string().contains(&text[TOKEN_PREFIX.len()..][..8]));
    }
    for around in [format!("TOKEN={text}"), format!("x{text}x"), format!("\"{text}\",\n")] {
        let found = secrets::scan(around.as_bytes());
        assert_eq!(found.iter().map(|f| f.rule).collect::<Vec<_>>(), ["herma_approver_token"], "{around}");
        let clean = Redactor::default().redact(&around);
        assert!(!clean.contains(&text[TOKEN_PREFIX.len()..][..8]), "{clean}");
    }
    assert!(secrets::scan(b"herma-approver-init-is-a-command").is_empty());
}
