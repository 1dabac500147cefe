//! Text in admissions: one line that shows all that it holds.

use std::fmt;
use std::ops::Deref;
use std::path::Path;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checked_text::checked_text;
use crate::visible::visible_line;

/// More than this is not a note but a document.
const MAX_CHARS: usize = 1_000;

checked_text!(
    /// One line of text without characters that hide something.
    Line,
    check_line
);

checked_text!(
    /// A path from the root, without `.` and `..`.
    AbsolutePath,
    |text| {
        check_line(text)?;
        let sound = text.strip_prefix('/').is_some_and(|rest| {
            rest.split('/').all(|part| !part.is_empty() && part != "." && part != "..")
        });
        if sound { Ok(()) } else { Err("this is not a path from the root without `.` and `..`, like `/opt/tool/bin/tool`".to_owned()) }
    }
);

impl Deref for AbsolutePath {
    type Target = Path;

    fn deref(&self) -> &Path {
        Path::new(self.as_str())
    }
}

/// Refuses what a reader would not see, or not see as it is.
pub(crate) fn check_line(text: &str) -> Result<(), String> {
    if text.is_empty() || text.trim() != text {
        return Err("the text is empty, or starts or ends with a blank".to_owned());
    }
    if text.chars().count() > MAX_CHARS {
        return Err(format!("the text has more than {MAX_CHARS} characters"));
    }
    if visible_line(text) == text {
        Ok(())
    } else {
        Err(format!("the text holds characters that are not seen: `{}`", visible_line(text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_shows_all_that_it_holds() {
        for text in [
            "",
            " a",
            "a ",
            "a\nb",
            "a\tb",
            "a\0",
            "a\u{7f}",
            "a\u{202e}b",
            "a\u{200b}b",
            "a\u{feff}",
            "a\u{2028}b",
            "\u{e0041}",
        ] {
            assert!(text.parse::<Line>().is_err(), "{text:?}");
        }
        assert!("x".repeat(MAX_CHARS + 1).parse::<Line>().is_err());
        assert!("ü".repeat(MAX_CHARS).parse::<Line>().is_ok());
    }

    #[test]
    fn a_path_starts_at_the_root_and_stays_on_its_way() {
        for text in ["", "/", "a", "./a", "/a/../b", "/a/./b", "/a//b", "/a/", "~/a", "/a\u{202e}"] {
            assert!(text.parse::<AbsolutePath>().is_err(), "{text:?}");
        }
        assert!("/opt/a b/c".parse::<AbsolutePath>().is_ok());
    }
}
