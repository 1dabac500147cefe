//! Fuzzes the redactor: no secret survives.

use herma_core::secret::Secret;
use herma_evidence::Redactor;
use herma_evidence::redact::Stream;

/// Values that herma itself knows: a plain one, one that overlaps itself, one of two lines, one that JSON escapes.
const KNOWN: [&str; 4] =
    ["s3cr3t-Value_42", "a.a.a.a.a", "first-line-of-it\nsecond-line-of-it", "quo\"ted\\value"];
/// A secret that a rule finds by its form, in two parts so that no scanner finds it in this file.
const TOKEN: [&str; 2] = ["ghp_", "aB3dE5fG7hJ9kL2mN4pQ6rS8tU1vW0xYzZ7q"];

const KIB: usize = 1 << 10;

/// A secret is planted into any text, at any place, and the text arrives in any chunks. The first bytes say which
/// secret, how large the chunks are, where in the text, and how much stands before the text.
pub fn redactor(input: &[u8]) {
    let (which, rest) = super::choice(input);
    let (size, rest) = super::choice(rest);
    let (place, rest) = super::choice(rest);
    let (fill, text) = super::choice(rest);
    let known = KNOWN.get(which % (KNOWN.len() + 1)).copied();
    // A token counts only where a word starts.
    let secret = known.map_or_else(|| format!(" {}", TOKEN.concat()), str::to_owned);
    // One that the text itself has inside a word is none, and stays.
    if known.is_none() && text.windows(secret.trim().len()).any(|part| part == secret.trim().as_bytes()) {
        return;
    }
    let redactor = Redactor::new(known.map(|value| Secret::new(value.to_owned())));

    // Inputs longer than a window come from repeating the text: a fuzzer finds inputs that large slowly.
    let repeated = text.iter().copied().cycle().take(KIB * fill.saturating_sub(160));
    let at = text.len() * place / 255;
    let mut planted: Vec<u8> = repeated.collect();
    planted.extend([&text[..at], secret.as_bytes(), &text[at..]].concat());
    let mut clean = String::new();
    let mut stream = Stream::new(redactor.clone());
    for chunk in planted.chunks(1 + size * (1 + fill)) {
        stream.push(chunk, &mut |piece| clean.push_str(piece));
    }
    stream.finish(&mut |piece| clean.push_str(piece));

    for part in secret.lines().map(str::trim) {
        assert!(!clean.contains(part), "{part:?} is still in {clean:?}");
    }
    assert!(!redactor.finds_secret(clean.as_bytes()), "the redactor still finds a secret in {clean:?}");
    let whole = redactor.redact(&String::from_utf8_lossy(&planted));
    assert_eq!(clean, whole, "the chunks do not matter");
}
