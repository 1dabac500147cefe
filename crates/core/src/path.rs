//! Paths inside a repository, as git knows them: bytes, separated by `/`, relative to the root.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::name_characters::refused_as;

/// A path inside a repository. Names are bytes and need not be UTF-8.
///
/// As text it is the path itself where that is printable UTF-8, else the form that git uses: in double quotes,
/// with backslash escapes. The two forms never meet, because a plain one does not start with a quote.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct RepoPath(Vec<u8>);

impl RepoPath {
    /// A path of these bytes, or `None` if it is empty, absolute, or has an empty, `.` or `..` component or a NUL.
    #[must_use]
    pub fn new(bytes: impl Into<Vec<u8>>) -> Option<Self> {
        let bytes = bytes.into();
        let sound = |part: &[u8]| !part.is_empty() && part != b"." && part != b"..";
        (bytes.split(|b| *b == b'/').all(sound) && !bytes.contains(&0)).then_some(Self(bytes))
    }

    /// The bytes of the whole path.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The names from the root down.
    pub fn components(&self) -> impl Iterator<Item = &[u8]> {
        self.0.split(|b| *b == b'/')
    }

    /// The directory that holds it, or `None` at the root.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        let slash = self.0.iter().rposition(|b| *b == b'/')?;
        Some(Self(self.0[..slash].to_vec()))
    }

    /// The last name of the path.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        self.0.rsplit(|b| *b == b'/').next().unwrap_or(&self.0)
    }

    /// Whether its text form is the path itself: UTF-8 without control characters.
    #[must_use]
    pub fn is_printable(&self) -> bool {
        std::str::from_utf8(&self.0).is_ok_and(|text| !text.chars().any(char::is_control))
    }

    /// Its text form for a message, cut where it is long.
    #[must_use]
    pub fn shortened(&self) -> String {
        const MAX_CHARS: usize = 240;
        let text = self.to_string();
        if text.chars().count() <= MAX_CHARS {
            return text;
        }
        let start: String = text.chars().take(MAX_CHARS).collect();
        format!("{start}… ({} bytes)", self.0.len())
    }

    /// Why no new file may have this path: it is not UTF-8, or it has a character that readers do not see or that
    /// changes how they see others.
    #[must_use]
    pub fn name_problem(&self) -> Option<String> {
        let Ok(text) = std::str::from_utf8(&self.0) else {
            return Some("its name is not UTF-8".to_owned());
        };
        text.chars().find_map(|c| {
            let class = refused_as(c)?;
            Some(format!("its name has U+{:04X}, which is one of the {}", u32::from(c), class.what))
        })
    }
}

impl fmt::Display for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_printable()
            && !self.0.starts_with(b"\"")
            && let Ok(text) = std::str::from_utf8(&self.0)
        {
            return f.write_str(text);
        }
        f.write_str("\"")?;
        for byte in &self.0 {
            match byte {
                b'"' => f.write_str("\\\"")?,
                b'\\' => f.write_str("\\\\")?,
                b'\n' => f.write_str("\\n")?,
                b'\t' => f.write_str("\\t")?,
                0x20..=0x7e => write!(f, "{}", char::from(*byte))?,
                _ => write!(f, "\\{byte:03o}")?,
            }
        }
        f.write_str("\"")
    }
}

impl fmt::Debug for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not a path inside a repository.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a path inside a repository")]
pub struct BadRepoPath(String);

impl TryFrom<String> for RepoPath {
    type Error = BadRepoPath;

    fn try_from(text: String) -> Result<Self, BadRepoPath> {
        let path = match text.strip_prefix('"') {
            None => Self::new(text.as_bytes()),
            Some(rest) => rest.strip_suffix('"').and_then(unquote).and_then(Self::new),
        };
        // Only the one canonical spelling is taken, so that equal paths are equal texts.
        path.filter(|p| p.to_string() == text).ok_or_else(|| BadRepoPath(text.chars().take(200).collect()))
    }
}

impl From<RepoPath> for String {
    fn from(path: RepoPath) -> Self {
        path.to_string()
    }
}

fn unquote(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        bytes.push(match rest.next()? {
            b'n' => b'\n',
            b't' => b'\t',
            quoted @ (b'"' | b'\\') => quoted,
            first @ b'0'..=b'3' => {
                let mut digit = || rest.next().filter(|d| (b'0'..=b'7').contains(d)).map(|d| d - b'0');
                (first - b'0') * 64 + digit()? * 8 + digit()?
            }
            _ => return None,
        });
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_path_out_of_the_repository_is_refused() {
        for bytes in [&b""[..], b"/etc", b"a/../b", b"..", ".".as_bytes(), b"a//b", b"a/", b"a\0b"] {
            assert_eq!(RepoPath::new(bytes), None, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn text_and_bytes_name_each_other(bytes in prop::collection::vec(any::<u8>(), 1..20)) {
            if let Some(path) = RepoPath::new(bytes) {
                prop_assert_eq!(RepoPath::try_from(path.to_string()).unwrap(), path);
            }
        }
    }
}
