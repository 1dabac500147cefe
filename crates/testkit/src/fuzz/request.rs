//! Fuzzes what reads and rewrites requests.

use herma_dialect::{Dialect, MaximumKey, OutputBound, Rewrite, outline, read_request};
use serde_json::Value;

const BOUND: u64 = 1000;

/// Any body is a request or is refused, by both readers alike. The model is the one that another parser finds. A
/// rewritten body says what was wanted, and nothing is left to rewrite. The first byte says which dialect.
pub fn request(input: &[u8]) {
    let (dialect, body) = super::dialect(input);
    let outline = match (read_request(dialect, body), outline(dialect, body)) {
        (Ok(asked), Ok(outline)) => {
            assert_eq!(asked.model, outline.model);
            assert_eq!((asked.stream, asked.max_output), (outline.stream, outline.max_output));
            assert_eq!(asked.reaches_out, outline.reaches_out);
            outline
        }
        (asked, outline) => {
            let refusal = outline.expect_err("both refuse");
            assert_eq!(asked, Err(refusal.clone()));
            assert!(matches!(refusal.status(), 400 | 403 | 413) && !refusal.to_string().is_empty());
            return;
        }
    };
    // Half a pair of surrogates and numbers that are too large are not for serde_json.
    let value = serde_json::from_slice::<Value>(body).ok();
    if let Some(value) = &value {
        assert_eq!(value["model"], *outline.model);
    }

    let key = match dialect {
        Dialect::Chat => MaximumKey::MaxCompletionTokens,
        Dialect::Responses => MaximumKey::MaxOutputTokens,
        Dialect::Messages => MaximumKey::MaxTokens,
    };
    let max_output = Some(OutputBound { at_most: BOUND, key, beside_others: false });
    let rewrite = Rewrite { model: Some("an\"other"), max_output, include_usage: true, not_stored: true };
    let rewritten = outline.rewritten(&rewrite);
    let again = herma_dialect::outline(dialect, rewritten.as_bytes()).expect("it is still a request");
    assert_eq!(again.model, "an\"other");
    assert_eq!(again.max_output, Some(outline.max_output.unwrap_or(BOUND).min(BOUND)));
    assert_eq!((again.stream, again.choices), (outline.stream, outline.choices));
    assert_eq!(again.reaches_out, outline.reaches_out);
    assert!(again.splices(&rewrite).is_empty(), "{rewritten}");
    if let Some(mut before) = value {
        let mut after: Value = serde_json::from_str(&rewritten).expect("it is still JSON");
        for value in [&mut before, &mut after] {
            for key in [
                "model",
                "store",
                "stream_options",
                "max_tokens",
                "max_completion_tokens",
                "max_output_tokens",
                "n_predict",
            ] {
                value.as_object_mut().map(|keys| keys.remove(key));
            }
        }
        assert_eq!(after, before, "nothing else changed");
    }
}
