//! Where the libraries are installed, and that they are those that are pinned.

use std::fs;
use std::path::{Path, PathBuf};

/// The pinned versions, below the directory of this test; a copy of each is where it was installed.
const PINNED: &[&str] =
    &["python/requirements.txt", "javascript/package.json", "javascript/package-lock.json"];

/// The directory of this test.
pub(crate) fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients")
}

/// Where `scripts/clients` installs the libraries.
pub(crate) fn installed() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/clients")
}

/// A missing library fails the test: a test that skips itself proves nothing.
pub(crate) fn must_be_installed() {
    for pinned in PINNED {
        let wanted = fs::read(here().join(pinned)).unwrap();
        let found = fs::read(installed().join("pinned").join(Path::new(pinned).file_name().unwrap()));
        assert!(
            found.is_ok_and(|found| found == wanted),
            "the client libraries of {pinned} are not installed; run scripts/clients"
        );
    }
}
