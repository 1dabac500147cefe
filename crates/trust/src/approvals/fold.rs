//! Texts of others that cannot draw a line of their own by pushing it to where a terminal breaks.

/// How consecutive blanks are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blanks {
    /// At most so many stay.
    Fold(usize),
    /// One stays, and all others are spelled out.
    Spell,
}

/// The text with no more blanks in a row than that, whatever kind of blank they are.
pub(super) fn folded(text: &str, blanks: Blanks) -> String {
    let mut folded = String::with_capacity(text.len());
    let mut in_a_row = 0;
    for c in text.chars() {
        in_a_row = if is_blank(c) { in_a_row + 1 } else { 0 };
        match blanks {
            _ if in_a_row == 0 => folded.push(c),
            Blanks::Fold(most) if in_a_row > most => {}
            Blanks::Fold(_) => folded.push(' '),
            Blanks::Spell if c == ' ' && in_a_row == 1 => folded.push(' '),
            Blanks::Spell => folded.extend(c.escape_unicode()),
        }
    }
    folded
}

/// The text in parts of at most `width` columns, broken at blanks where there are some. There is always one part.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(end) = overflow(rest, width) {
        // The blank at the break is dropped, because it would be at the edge. One before anything else is an indentation.
        let at_blank = rest[..end].rfind(' ').filter(|at| !rest[..*at].trim_start().is_empty());
        let (part, after) = match at_blank {
            _ if rest[end..].starts_with(' ') => (&rest[..end], &rest[end + 1..]),
            Some(at) => (&rest[..at], &rest[at + 1..]),
            None => rest.split_at(end),
        };
        parts.push(part.to_owned());
        rest = after;
    }
    parts.push(rest.to_owned());
    parts
}

/// Where the first character begins that does not fit.
fn overflow(text: &str, width: usize) -> Option<usize> {
    let mut column = 0;
    text.char_indices().find_map(|(at, c)| {
        column += columns(c);
        (column > width).then_some(at)
    })
}

/// How many columns a character takes at most: those of East Asia and pictures take two.
fn columns(c: char) -> usize {
    if c < '\u{1100}' { 1 } else { 2 }
}

/// Whether it is drawn as nothing but room. The blank of Braille is no white space to Unicode.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || c == '\u{2800}'
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn blanks_of_every_kind_are_folded_or_spelled_out() {
        let padded = "a  b\u{a0}\u{3000}\u{2003}c\u{2800}\u{2800}d e";
        assert_eq!(folded(padded, Blanks::Fold(1)), "a b c d e");
        assert_eq!(folded("   if x:  y", Blanks::Fold(2)), "  if x:  y");
        assert_eq!(
            folded("a  b\u{a0}c d", Blanks::Spell),
            "a \\u{20}b\\u{a0}c d",
            "of what is taken literally nothing is lost"
        );
    }

    #[test]
    fn a_long_text_is_broken_at_blanks_or_where_it_must_be() {
        assert_eq!(wrapped("", 4), [""]);
        assert_eq!(wrapped("abcd", 4), ["abcd"]);
        assert_eq!(wrapped("ab cd", 4), ["ab", "cd"]);
        assert_eq!(wrapped("abcd ef", 4), ["abcd", "ef"]);
        assert_eq!(wrapped("abcdefghi", 4), ["abcd", "efgh", "i"]);
        assert_eq!(wrapped("日本語", 4), ["日本", "語"]);
        assert_eq!(wrapped("  abcdef", 4), ["  ab", "cdef"]);
    }

    proptest! {
        #[test]
        fn no_part_is_too_wide_and_nothing_but_blanks_is_lost(text in "[a-z 日🙂]{0,80}", width in 2_usize..20) {
            let parts = wrapped(&text, width);
            for part in &parts {
                prop_assert!(part.chars().map(columns).sum::<usize>() <= width, "{part:?}");
            }
            let solid = |text: &str| text.replace(' ', "");
            prop_assert_eq!(solid(&parts.concat()), solid(&text));
        }
    }
}
