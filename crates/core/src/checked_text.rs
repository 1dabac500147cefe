//! Texts that are checked when they are made, and the checks that several kinds of them share.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::visible::{is_unseen, visible_line};

/// A text that is checked by `$check` when it is made, and serialises as itself.
macro_rules! checked_text {
    ($(#[$doc:meta])* $name:ident, $check:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(try_from = "String", into = "String")]
        #[schemars(with = "String")]
        pub struct $name(String);

        impl $name {
            /// The text itself.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = String;

            fn try_from(text: String) -> Result<Self, String> {
                let check: fn(&str) -> Result<(), String> = $check;
                check(&text).map(|()| Self(text))
            }
        }

        impl FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                Self::try_from(text.to_owned())
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> Self {
                value.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

pub(crate) use checked_text;

checked_text!(
    /// A gitignore-style glob.
    Pattern,
    check_pattern
);

pub(crate) fn check_name(text: &str, what: &str) -> Result<(), String> {
    let letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let sound = text.len() <= 64
        && text.bytes().next().is_some_and(letter)
        && text.bytes().all(|b| letter(b) || matches!(b, b'.' | b'_' | b'-'));
    if sound {
        return Ok(());
    }
    let shown: String = text.chars().take(64).collect();
    Err(format!(
        "`{shown}` is not {what}: 1 to 64 lower-case letters, digits, `.`, `_` and `-`, starting with a letter or a digit"
    ))
}

fn check_pattern(text: &str) -> Result<(), String> {
    let refuse = |why: &str| Err(format!("`{text}` is not a path pattern: {why}"));
    if text.trim() != text || text.is_empty() {
        return refuse("it is empty, or starts or ends with a blank");
    }
    if text.starts_with('!') {
        return refuse("there is no `!`; name what is forbidden in `forbidden_paths`");
    }
    if text.starts_with('#') {
        return refuse("it starts with `#`; write `\\#` for a name that does");
    }
    if text.chars().any(char::is_control) {
        return refuse("it holds a control character");
    }
    // Some file systems leave such characters out of a name, and a reader cannot see what they would do to a pattern.
    if let Some(unseen) = text.chars().find(|c| is_unseen(*c)) {
        let why = format!("it holds {}, which is invisible; write `*` in its place", unseen.escape_unicode());
        return Err(format!("`{}` is not a path pattern: {why}", visible_line(text)));
    }
    if text.contains(['{', '}']) {
        return refuse("braces are not part of gitignore patterns; write two patterns");
    }
    if text.split('/').any(|part| part == ".." || part == ".") {
        return refuse("`.` and `..` never match; paths start at the repository's root");
    }
    if text.trim_matches('/').is_empty() || text.contains("//") {
        return refuse("it names no path");
    }
    if text.chars().rev().take_while(|c| *c == '\\').count() % 2 == 1 {
        return refuse("it ends with a lone backslash");
    }
    let (mut open, mut escaped) = (false, false);
    for c in text.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' if !open => open = true,
            ']' => open = false,
            '/' if open => return refuse("a `[` is closed before the next `/`"),
            _ => {}
        }
    }
    if open { refuse("a `[` is not closed") } else { Ok(()) }
}
