//! Escapes text of others so that it cannot deceive a reader: invisible characters are spelled out.

use std::ops::RangeInclusive;

/// Characters that are drawn as nothing, or that change how others are drawn or ordered. Control characters are not
/// in the list: they are asked for by name.
const UNSEEN: &[RangeInclusive<char>] = &[
    '\u{ad}'..='\u{ad}',       // soft hyphen
    '\u{34f}'..='\u{34f}',     // grapheme joiner
    '\u{61c}'..='\u{61c}',     // Arabic letter mark
    '\u{115f}'..='\u{1160}',   // Hangul fillers
    '\u{17b4}'..='\u{17b5}',   // Khmer inherent vowels
    '\u{180b}'..='\u{180f}',   // Mongolian selectors
    '\u{200b}'..='\u{200f}',   // zero width, left-to-right and right-to-left marks
    '\u{2028}'..='\u{202e}',   // line and paragraph separators, embeddings and overrides
    '\u{2060}'..='\u{206f}',   // word joiner, invisible operators, isolates
    '\u{3164}'..='\u{3164}',   // Hangul filler
    '\u{fe00}'..='\u{fe0f}',   // variation selectors, in which text can be hidden
    '\u{feff}'..='\u{feff}',   // byte order mark
    '\u{ffa0}'..='\u{ffa0}',   // half-width Hangul filler
    '\u{fff0}'..='\u{fffb}',   // unassigned and interlinear annotation
    '\u{1bca0}'..='\u{1bca3}', // shorthand format controls
    '\u{1d173}'..='\u{1d17a}', // musical format controls
    '\u{e0000}'..='\u{e0fff}', // tags and more variation selectors
];

/// The text with every control, bidirectional and invisible character spelled out; line ends and tabs stay.
#[must_use]
pub fn visible(text: &str) -> String {
    shown(text, |c| c == '\n' || c == '\t')
}

/// The same for a text that is one line: line ends and tabs are spelled out too, so that it stays one.
#[must_use]
pub fn visible_line(text: &str) -> String {
    shown(text, |_| false)
}

fn shown(text: &str, stays: fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            _ if stays(c) || !is_unseen(c) => shown.push(c),
            '\n' | '\r' | '\t' => shown.extend(c.escape_default()),
            _ => shown.extend(c.escape_unicode()),
        }
    }
    shown
}

/// Whether a reader would not see it, or would see others otherwise for it.
pub(crate) fn is_unseen(c: char) -> bool {
    c.is_control() || UNSEEN.iter().any(|range| range.contains(&c))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn visible_text_stays_unchanged() {
        for text in ["", "plain", "zwölf Boxkämpfer", "日本語", "a\\b `c` $d", "العربية", "🙂"]
        {
            assert_eq!(visible_line(text), text);
        }
        assert_eq!(visible("two\n\tlines"), "two\n\tlines");
    }

    #[test]
    fn invisible_characters_are_spelled_out() {
        assert_eq!(visible("\u{1b}[31mred\r\u{7}"), "\\u{1b}[31mred\\r\\u{7}");
        assert_eq!(visible("a\u{202e}b\u{2066}c\u{61c}"), "a\\u{202e}b\\u{2066}c\\u{61c}");
        assert_eq!(visible("a\u{9b}31m\u{85}\u{2028}"), "a\\u{9b}31m\\u{85}\\u{2028}");
        assert_eq!(visible("a\u{e0041}\u{200b}"), "a\\u{e0041}\\u{200b}");
        assert_eq!(visible_line("one\ntwo\tthree\r"), "one\\ntwo\\tthree\\r");
    }

    #[test]
    fn the_ranges_are_in_order() {
        assert!(UNSEEN.windows(2).all(|pair| pair[0].end() < pair[1].start()));
    }

    proptest! {
        #[test]
        fn nothing_unseen_is_left(text in any::<String>()) {
            prop_assert!(!visible_line(&text).chars().any(is_unseen));
            prop_assert!(!visible(&text).chars().any(|c| is_unseen(c) && c != '\n' && c != '\t'));
        }
    }
}
