//! Why herma's home cannot be used, and the next step for each reason.

use std::io;
use std::path::PathBuf;

use crate::marker::{MARKER, MARKER_TEXT};

/// herma's home cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    /// No setting and no passwd entry names a place for it.
    #[error(
        "there is no place for herma's home: neither HERMA_HOME nor HOME is set, and the system knows no home of this user"
    )]
    Nowhere,
    /// It cannot be made, read or written.
    #[error("herma's home {} cannot be used: {source}", home.display())]
    Io {
        /// Which home.
        home: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A file of another kind is there.
    #[error("herma's home {} is not a directory", home.display())]
    NotADirectory {
        /// Which home.
        home: PathBuf,
    },
    /// There is none yet, and the command only reads.
    #[error("there is no herma home at {}", home.display())]
    Missing {
        /// Which home.
        home: PathBuf,
    },
    /// It belongs to another user.
    #[error(
        "herma's home {} belongs to user {owner}, and herma runs as user {user}: the keys in it may be somebody else's",
        home.display()
    )]
    NotOwn {
        /// Which home.
        home: PathBuf,
        /// The owner's uid.
        owner: u32,
        /// The uid that herma runs as.
        user: u32,
    },
    /// It is in use for something else.
    #[error(
        "{} is not empty and is not a herma home: it has no file `{MARKER}`; herma does not use it, and changed nothing",
        home.display()
    )]
    Foreign {
        /// Which directory.
        home: PathBuf,
    },
    /// The directory that it would be made in is missing.
    #[error("herma's home {} cannot be made: {} does not exist", home.display(), parent.display())]
    NoParent {
        /// Which home.
        home: PathBuf,
        /// Which directory is missing.
        parent: PathBuf,
    },
    /// It has a format that this version does not know.
    #[error("{} names a format of herma's home that this version does not know", file.display())]
    Format {
        /// The marker.
        file: PathBuf,
    },
    /// Other users can read it.
    #[error("herma's home {} can be read by others (mode {mode:03o})", home.display())]
    Readable {
        /// Which home.
        home: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// Other users can write it.
    #[error(
        "herma's home {} can be written by others (mode {mode:03o}): the keys in it may be somebody else's",
        home.display()
    )]
    Writable {
        /// Which home.
        home: PathBuf,
        /// Its permissions.
        mode: u32,
    },
}

impl HomeError {
    /// The next step for the user.
    #[must_use]
    pub fn next_step(&self) -> String {
        let another = "set HERMA_HOME to another directory";
        match self {
            Self::Nowhere => "set HERMA_HOME to a directory of your own".to_owned(),
            Self::Missing { .. } => format!("`herma demo` makes it with a first run, or {another}"),
            Self::NotADirectory { .. } => another.to_owned(),
            Self::Io { .. } => format!("free space there, make it writable, or {another}"),
            Self::NotOwn { home, user, .. } => {
                format!("if you trust its contents, `chown -R {user} {}`; else {another}", home.display())
            }
            Self::Foreign { home } => format!(
                "set HERMA_HOME to an empty directory or to a new one; if {} is to be herma's home all the same, \
                 write the line `{}` to its file `{MARKER}`",
                home.display(),
                MARKER_TEXT.trim_end()
            ),
            Self::NoParent { parent, .. } => format!("create {}, or {another}", parent.display()),
            Self::Format { .. } => format!("use the version of herma that made it, or {another}"),
            Self::Readable { home, .. } => format!("`chmod go-rwx {}`, or {another}", home.display()),
            Self::Writable { home, .. } => {
                format!("if you trust its contents, `chmod go-w {}`; else {another}", home.display())
            }
        }
    }
}
