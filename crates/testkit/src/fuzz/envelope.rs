//! Fuzzes the reader of attestations.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use herma_core::Digest;
use herma_evidence::envelope::{Envelope, PAYLOAD_TYPE};

/// Any bytes are an envelope in its one spelling, or an error. The same bytes are also tried as the statement inside.
pub fn envelope(input: &[u8]) {
    read(input);
    let signer = Digest::of(b"nobody");
    let (payload, signature) = (STANDARD.encode(input), STANDARD.encode([0; 64]));
    let around = format!(
        r#"{{"payload":"{payload}","payloadType":"{PAYLOAD_TYPE}","signatures":[{{"keyid":"{signer}","sig":"{signature}"}}]}}"#
    );
    if let Some(envelope) = read(around.as_bytes()) {
        let statement = envelope.statement().expect("an envelope holds a statement");
        let spelled = serde_json_canonicalizer::to_vec(&statement).expect("a statement can be written");
        assert_eq!(spelled, input, "a statement has one spelling");
        let sealed = Envelope::seal(&statement, |_| (signer, [0; 64])).expect("a statement can be sealed");
        assert_eq!(sealed, envelope);
    }
}

fn read(bytes: &[u8]) -> Option<Envelope> {
    let envelope = Envelope::parse(bytes).ok()?;
    assert_eq!(envelope.to_bytes().ok().as_deref(), Some(bytes), "an envelope has one spelling");
    assert!(envelope.signature().is_ok() && envelope.signed().is_ok());
    let statement = envelope.statement().expect("an envelope holds a statement");
    let names: Vec<&str> = statement.subjects().map(|(name, _)| name).collect();
    assert!(names.is_sorted_by(|a, b| a < b), "each file is named once");
    Some(envelope)
}
