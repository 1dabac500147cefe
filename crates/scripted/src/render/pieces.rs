//! A text in the pieces of a stream.

use std::num::NonZeroUsize;

/// The most pieces that one text is cut into, however small they are wanted.
const MOST_PIECES: usize = 4096;

/// The text in pieces of `chunk` characters, never through a character; none where it is empty.
pub(super) fn pieces(text: &str, chunk: NonZeroUsize) -> impl Iterator<Item = &str> {
    let chunk = chunk.get().max(text.len().div_ceil(MOST_PIECES));
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let at = rest.char_indices().nth(chunk).map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at(at);
        rest = after;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_text_and_none_is_empty() {
        let cut = |text, chunk| pieces(text, NonZeroUsize::new(chunk).unwrap()).collect::<Vec<&str>>();
        assert_eq!(cut("äöüß", 3), ["äöü", "ß"]);
        assert_eq!(cut("abc", 3), ["abc"]);
        assert_eq!(cut("", 3), [""; 0]);
        let long = "x".repeat(1 << 20);
        assert!(cut(&long, 1).len() <= MOST_PIECES);
        assert_eq!(cut(&long, 1).concat(), long);
    }
}
