//! Characters that no new name may contain, because a reader does not see them or sees others differently for them.

use std::ops::RangeInclusive;

/// One class of refused characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedCharacters {
    /// Their name, in the plural.
    pub what: &'static str,
    /// The Unicode properties or general categories that they are taken from.
    pub property: &'static str,
    /// The code points, without those of the classes before.
    pub ranges: &'static [RangeInclusive<char>],
}

/// Every refused character, by Unicode's own data (`DerivedCoreProperties.txt`, `PropList.txt`,
/// `DerivedGeneralCategory.txt`). A test compares each class with these properties over all code points.
pub const REFUSED_IN_NAMES: &[RefusedCharacters] = &[
    RefusedCharacters {
        what: "control characters",
        property: "Cc",
        ranges: &['\0'..='\u{1f}', '\u{7f}'..='\u{9f}'],
    },
    RefusedCharacters {
        what: "bidirectional controls",
        property: "Bidi_Control",
        ranges: &[
            '\u{61c}'..='\u{61c}',
            '\u{200e}'..='\u{200f}',
            '\u{202a}'..='\u{202e}',
            '\u{2066}'..='\u{2069}',
        ],
    },
    RefusedCharacters {
        what: "invisible characters: zero-width, fillers, variation selectors, tags, the byte order mark",
        property: "Default_Ignorable_Code_Point",
        ranges: &[
            '\u{ad}'..='\u{ad}',
            '\u{34f}'..='\u{34f}',
            '\u{115f}'..='\u{1160}',
            '\u{17b4}'..='\u{17b5}',
            '\u{180b}'..='\u{180f}',
            '\u{200b}'..='\u{200d}',
            '\u{2060}'..='\u{2065}',
            '\u{206a}'..='\u{206f}',
            '\u{3164}'..='\u{3164}',
            '\u{fe00}'..='\u{fe0f}',
            '\u{feff}'..='\u{feff}',
            '\u{ffa0}'..='\u{ffa0}',
            '\u{fff0}'..='\u{fff8}',
            '\u{1bca0}'..='\u{1bca3}',
            '\u{1d173}'..='\u{1d17a}',
            '\u{e0000}'..='\u{e0fff}',
        ],
    },
    RefusedCharacters {
        what: "format characters",
        property: "Cf",
        ranges: &[
            '\u{600}'..='\u{605}',
            '\u{6dd}'..='\u{6dd}',
            '\u{70f}'..='\u{70f}',
            '\u{890}'..='\u{891}',
            '\u{8e2}'..='\u{8e2}',
            '\u{fff9}'..='\u{fffb}',
            '\u{110bd}'..='\u{110bd}',
            '\u{110cd}'..='\u{110cd}',
            '\u{13430}'..='\u{1343f}',
        ],
    },
    RefusedCharacters {
        what: "line and paragraph separators",
        property: "Zl, Zp",
        ranges: &['\u{2028}'..='\u{2029}'],
    },
    RefusedCharacters {
        what: "spaces other than U+0020, and the blank Braille pattern",
        property: "Zs, U+2800",
        ranges: &[
            '\u{a0}'..='\u{a0}',
            '\u{1680}'..='\u{1680}',
            '\u{2000}'..='\u{200a}',
            '\u{202f}'..='\u{202f}',
            '\u{205f}'..='\u{205f}',
            '\u{2800}'..='\u{2800}',
            '\u{3000}'..='\u{3000}',
        ],
    },
    RefusedCharacters {
        what: "noncharacters",
        property: "Noncharacter_Code_Point",
        ranges: &[
            '\u{fdd0}'..='\u{fdef}',
            '\u{fffe}'..='\u{ffff}',
            '\u{1fffe}'..='\u{1ffff}',
            '\u{2fffe}'..='\u{2ffff}',
            '\u{3fffe}'..='\u{3ffff}',
            '\u{4fffe}'..='\u{4ffff}',
            '\u{5fffe}'..='\u{5ffff}',
            '\u{6fffe}'..='\u{6ffff}',
            '\u{7fffe}'..='\u{7ffff}',
            '\u{8fffe}'..='\u{8ffff}',
            '\u{9fffe}'..='\u{9ffff}',
            '\u{afffe}'..='\u{affff}',
            '\u{bfffe}'..='\u{bffff}',
            '\u{cfffe}'..='\u{cffff}',
            '\u{dfffe}'..='\u{dffff}',
            '\u{efffe}'..='\u{effff}',
            '\u{ffffe}'..='\u{fffff}',
            '\u{10fffe}'..='\u{10ffff}',
        ],
    },
];

/// The class that refuses this character.
#[must_use]
pub fn refused_as(c: char) -> Option<&'static RefusedCharacters> {
    // Most names are ASCII.
    if matches!(c, ' '..='~') {
        return None;
    }
    REFUSED_IN_NAMES.iter().find(|class| class.ranges.iter().any(|range| range.contains(&c)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind};

    use super::*;
    use crate::RepoPath;

    /// The code points of a regular expression's character class.
    fn class(pattern: &str) -> ClassUnicode {
        match regex_syntax::parse(pattern).unwrap().into_kind() {
            HirKind::Class(Class::Unicode(class)) => class,
            other => panic!("{pattern}: {other:?}"),
        }
    }

    #[test]
    fn each_class_is_what_unicode_says_without_the_classes_before_it() {
        let properties = [
            r"\p{Cc}",
            r"\p{Bidi_Control}",
            r"\p{Default_Ignorable_Code_Point}",
            r"\p{Cf}",
            r"[\p{Zl}\p{Zp}]",
            r"[[\p{Zs}--\x20]\u{2800}]",
            r"\p{Noncharacter_Code_Point}",
        ];
        assert_eq!(properties.len(), REFUSED_IN_NAMES.len());
        let mut before = ClassUnicode::empty();
        for (property, refused) in properties.iter().zip(REFUSED_IN_NAMES) {
            let whole = class(property);
            let mut expected = whole.clone();
            expected.difference(&before);
            let own = refused.ranges.iter().map(|r| ClassUnicodeRange::new(*r.start(), *r.end()));
            assert_eq!(ClassUnicode::new(own), expected, "{property}");
            before.union(&whole);
        }
    }

    #[test]
    fn ordinary_names_are_fine() {
        for name in ["README.md", "a b", "Ärger", "日本語.txt", "العربية", "🙂", "e\u{301}", "~x", "\u{e000}"]
        {
            assert!(!name.chars().any(|c| refused_as(c).is_some()), "{name}");
        }
    }

    proptest! {
        #[test]
        fn a_name_is_refused_if_it_has_a_refused_character_anywhere(
            before in "[a-zß日/]{0,8}", after in "[a-zß日/]{0,8}", c in any::<char>(),
        ) {
            let Some(path) = RepoPath::new(format!("x{before}{c}{after}x")) else { return Ok(()) };
            prop_assert_eq!(path.name_problem().is_some(), refused_as(c).is_some());
        }
    }
}
