//! Fuzzes what reads the usage of an answer.

use herma_dialect::read_response;
use herma_dialect::tap::Tap;
use serde::de::IgnoredAny;

/// Any body is an answer or is none. Of a usage no part is more than the whole, and an event that is the same body says
/// the same. The first byte says which dialect.
pub fn usage(input: &[u8]) {
    let (dialect, body) = super::dialect(input);
    let one_line = !body.iter().any(|byte| matches!(byte, b'\n' | b'\r'));
    let mut tap = Tap::new(dialect);
    tap.feed(&[b"data: ", body, b"\n\n"].concat());
    let (rest, seen) = tap.finish();
    assert_eq!(rest, b"", "nothing is held");
    let Ok(summary) = read_response(dialect, body) else {
        assert!(!one_line || seen.malformed || body.trim_ascii() == b"[DONE]");
        return;
    };
    assert!(serde_json::from_slice::<IgnoredAny>(body).is_ok(), "an answer is JSON");
    if one_line {
        assert_eq!(
            (&seen.usage, &seen.model, &seen.stop, seen.tool_calls),
            (&summary.usage, &summary.model, &summary.stop, summary.tool_calls)
        );
        assert_eq!((seen.events, seen.malformed, seen.error_event), (1, false, summary.error));
    }
    if let Some(usage) = summary.usage {
        assert!(usage.cached_input.checked_add(usage.cache_write).is_some_and(|parts| parts <= usage.input));
        assert!(usage.cache_write_long <= usage.cache_write && usage.reasoning <= usage.output);
    }
}
