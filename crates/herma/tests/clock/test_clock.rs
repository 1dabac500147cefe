//! A wall clock of the test's own for a real herma: a library that is preloaded, and a file that says how far it is off.
#![allow(clippy::disallowed_types, reason = "the test builds its library with the C compiler")]

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const SOURCE: &str = include_str!("clock.c");

/// A wall clock that can be stepped while herma runs. It is right until it is stepped.
pub(crate) struct TestClock {
    file: PathBuf,
}

impl TestClock {
    /// The clock whose offset is kept in this file.
    pub(crate) fn new(file: PathBuf) -> Self {
        let clock = Self { file };
        clock.set_ms(0);
        clock
    }

    /// The variables to start herma with.
    pub(crate) fn variables(&self) -> [(&'static str, OsString); 2] {
        [("LD_PRELOAD", library().into()), ("TEST_CLOCK_FILE", self.file.clone().into())]
    }

    /// Steps the clock: from now on it is this far ahead of the real one, or behind.
    pub(crate) fn set_ms(&self, offset: i64) {
        // A concurrent reader sees the old file or the new one.
        let new = self.file.with_extension("new");
        fs::write(&new, offset.to_string()).unwrap();
        fs::rename(new, &self.file).unwrap();
    }
}

/// The library, built once.
fn library() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
        // Test binaries that run at once each build it under a name of their own.
        let own = dir.join(format!("test-clock-{}", std::process::id()));
        let (source, built) = (own.with_extension("c"), own.with_extension("so"));
        fs::write(&source, SOURCE).unwrap();
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o"]).arg(&built).arg(&source).arg("-ldl");
        assert!(cc.status().unwrap().success(), "the C compiler could not build the test's clock");
        fs::remove_file(source).unwrap();
        let library = dir.join("test-clock.so");
        fs::rename(built, &library).unwrap();
        library
    })
}
