//! The maximum length of a path, so that every machine can check the result out.

use herma_core::RepoPath;

/// The longest new path. macOS takes no longer one; Linux takes 4,095 bytes, of which herma's own directories need some.
pub const MAX_PATH_BYTES: usize = 1024;
/// The longest name of a file or directory on the usual file systems.
pub const MAX_NAME_BYTES: usize = 255;

/// Why a path is too long, where it is.
pub(crate) fn problem(path: &RepoPath) -> Option<String> {
    let bytes = path.as_bytes().len();
    if bytes > MAX_PATH_BYTES {
        return Some(format!("it has {bytes} bytes, and a new path may have {MAX_PATH_BYTES}"));
    }
    let longest = path.components().map(<[u8]>::len).max().unwrap_or(0);
    (longest > MAX_NAME_BYTES)
        .then(|| format!("one of its names has {longest} bytes, and a name may have {MAX_NAME_BYTES}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_names_have_a_longest() {
        let of = |name: usize, count: usize| RepoPath::new(vec!["a".repeat(name); count].join("/")).unwrap();
        for (path, fits) in [
            (of(MAX_NAME_BYTES, 1), true),
            (of(MAX_NAME_BYTES, 4), true),
            (of(MAX_NAME_BYTES + 1, 1), false),
            (of(1, 512), true),
            (of(1, 513), false),
        ] {
            assert_eq!(problem(&path).is_none(), fits, "{} bytes", path.as_bytes().len());
        }
    }
}
