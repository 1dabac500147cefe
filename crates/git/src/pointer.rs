//! Pointer files of Git LFS: <https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md>.

use herma_core::Digest;

/// A longer file is no pointer.
pub(crate) const MAX_BYTES: u64 = 1024;

/// The first lines that pointers have had.
const VERSIONS: [&str; 2] =
    ["version https://git-lfs.github.com/spec/v1", "version https://hawser.github.com/spec/v1"];

/// The file that a pointer stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pointer {
    /// The digest of its content.
    pub(crate) digest: Digest,
    /// Its size.
    pub(crate) bytes: u64,
}

impl Pointer {
    /// Parses a pointer. Extensions change content by programs of the user, so that a pointer with one is none.
    pub(crate) fn parse(content: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(content).ok()?;
        let mut lines = text.lines();
        lines.next().filter(|line| VERSIONS.contains(line))?;
        let hex = lines.next()?.strip_prefix("oid sha256:")?;
        let bytes = lines.next()?.strip_prefix("size ")?;
        let is_number = !bytes.is_empty() && bytes.bytes().all(|b| b.is_ascii_digit());
        if lines.next().is_some() || !is_number {
            return None;
        }
        Some(Self { digest: format!("sha256:{hex}").parse().ok()?, bytes: bytes.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEX: &str = "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393";

    #[test]
    fn only_a_complete_pointer_is_one() {
        let pointer = |oid: &str, size: &str| format!("{}\noid sha256:{oid}\nsize {size}\n", VERSIONS[0]);
        let whole = Pointer::parse(pointer(HEX, "12345").as_bytes()).unwrap();
        assert_eq!((whole.digest.hex().as_str(), whole.bytes), (HEX, 12_345));
        let extended = format!("{}\next-0-foo sha256:{HEX}\noid sha256:{HEX}\nsize 1\n", VERSIONS[0]);
        for bad in [
            pointer(&HEX[1..], "1"),
            pointer(HEX, "-1"),
            pointer(HEX, "+1"),
            pointer(HEX, ""),
            pointer(HEX, "99999999999999999999"),
            pointer(HEX, "1").replace("spec/v1", "spec/v2"),
            pointer(HEX, "1").replace("sha256", "md5"),
            format!("{}more\n", pointer(HEX, "1")),
            extended,
            String::new(),
        ] {
            assert_eq!(Pointer::parse(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(Pointer::parse(b"\xff"), None);
    }
}
