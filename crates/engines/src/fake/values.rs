//! Values in a script that are more than text.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

/// A path in a script. It can be anything, also absolute or with `..`: `fake` must be able to misbehave.
///
/// `\xNN` stands for one byte and `\\` for a backslash, so that names which are not UTF-8 can be written. In YAML such a
/// path stands without quotes or in single ones, since double quotes have escapes of their own.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct ScriptPath(Vec<u8>);

impl ScriptPath {
    /// The path; relative ones start at the workspace.
    #[must_use]
    pub fn as_path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.0))
    }
}

impl fmt::Display for ScriptPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_path().display().fmt(f)
    }
}

impl fmt::Debug for ScriptPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_path().fmt(f)
    }
}

impl TryFrom<String> for ScriptPath {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text.is_empty() {
            return Err("the path is empty".to_owned());
        }
        let mut bytes = Vec::with_capacity(text.len());
        let mut rest = text.as_str();
        while let Some((before, after)) = rest.split_once('\\') {
            bytes.extend_from_slice(before.as_bytes());
            let hex = |digits: &str| u8::from_str_radix(digits, 16).ok();
            rest = if let Some(after) = after.strip_prefix('\\') {
                bytes.push(b'\\');
                after
            } else if let Some(byte) = after.strip_prefix('x').and_then(|x| x.get(..2)).and_then(hex) {
                bytes.push(byte);
                &after[3..]
            } else {
                return Err(format!(
                    "`{text}` is not a path: after `\\` comes `x` and two hex digits, or `\\`"
                ));
            };
        }
        bytes.extend_from_slice(rest.as_bytes());
        if bytes.contains(&0) {
            Err(format!("`{text}` is not a path: it holds a zero byte"))
        } else {
            Ok(Self(bytes))
        }
    }
}

/// Permissions as three or four octal digits, like `755`.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Permissions(u32);

impl Permissions {
    /// As the system takes them.
    #[must_use]
    pub fn bits(self) -> u32 {
        self.0
    }
}

impl fmt::Debug for Permissions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:03o}", self.0)
    }
}

impl TryFrom<String> for Permissions {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let digits = (3..=4).contains(&text.len()) && text.bytes().all(|b| (b'0'..=b'7').contains(&b));
        let bits = digits.then(|| u32::from_str_radix(&text, 8).ok()).flatten();
        bits.map(Self)
            .ok_or_else(|| format!("`{text}` is not a mode: write three or four octal digits, like \"755\""))
    }
}

pub(super) fn base64_bytes(text: &str) -> Result<Vec<u8>, String> {
    STANDARD.decode(text).map_err(|e| format!("`base64` is not base64: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_can_name_any_bytes_but_zero() {
        let bytes = |text: &str| ScriptPath::try_from(text.to_owned()).map(|path| path.0);
        assert_eq!(bytes("../a b/ü").unwrap(), "../a b/ü".as_bytes());
        assert_eq!(bytes(r"caf\xe9\\x\x0a").unwrap(), b"caf\xe9\\x\n");
        for bad in ["", r"a\", r"a\n", r"\x", r"\x1", r"\xg0", r"\x0ü", r"\x00"] {
            assert!(bytes(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_mode_is_three_or_four_octal_digits() {
        assert_eq!(Permissions::try_from("4755".to_owned()).unwrap().bits(), 0o4755);
        for bad in ["", "75", "788", "+75", "0o75", "07555"] {
            assert!(Permissions::try_from(bad.to_owned()).is_err(), "{bad}");
        }
    }
}
