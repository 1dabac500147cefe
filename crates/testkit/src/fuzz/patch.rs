//! Fuzzes the reader of patch headers.

use herma_evidence::patch::{PatchReader, parse_headers};

/// Any bytes are a patch or an error, and it does not matter in which chunks they come. The first byte says how large
/// the chunks are.
pub fn patch(input: &[u8]) {
    let (size, text) = super::choice(input);
    let whole = parse_headers(text);
    let mut reader = PatchReader::new(text.len());
    for chunk in text.chunks(size + 1) {
        reader.push(chunk);
    }
    assert_eq!(reader.finish(), whole);
    let Ok(files) = whole else { return };
    for file in &files {
        assert!(file.old_mode.is_some() || file.new_mode.is_some(), "{file:?} is there on no side");
        assert!(file.blobs.is_some() || file.old_mode != file.new_mode, "{file:?} changes nothing");
    }
    if let Some(most) = files.len().checked_sub(1) {
        let mut strict = PatchReader::new(most);
        strict.push(text);
        assert!(strict.finish().is_err(), "more files than were promised");
    }
}
