//! Whether herma's home is the user's own. Whoever else can write it chooses whom herma trusts.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::place::{MARKER, MARKER_TEXT};

/// herma's home cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    /// Nobody says where it could be.
    #[error(
        "there is no place for herma's home: neither HERMA_HOME nor HOME is set, and the system knows no home of this user"
    )]
    Nowhere,
    /// It cannot be made, read or written.
    #[error("herma's home {} cannot be used: {cause}", home.display())]
    Io {
        /// Which home.
        home: PathBuf,
        /// Why not.
        cause: io::Error,
    },
    /// Something else is there.
    #[error("herma's home {} is not a directory", home.display())]
    NotADirectory {
        /// Which home.
        home: PathBuf,
    },
    /// It is somebody else's.
    #[error(
        "herma's home {} belongs to user {owner}, and herma runs as user {user}: the keys in it may be somebody else's",
        home.display()
    )]
    NotOwn {
        /// Which home.
        home: PathBuf,
        /// Whose it is.
        owner: u32,
        /// Who herma runs as.
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
    /// Others can read it.
    #[error("herma's home {} can be read by others (mode {mode:03o})", home.display())]
    Readable {
        /// Which home.
        home: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// Others can write it.
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
    /// What to do about it.
    #[must_use]
    pub fn next_step(&self) -> String {
        let another = "set HERMA_HOME to another directory";
        match self {
            Self::Nowhere => "set HERMA_HOME to a directory of your own".to_owned(),
            Self::NotADirectory { .. } => another.to_owned(),
            Self::Io { .. } => format!("free space there, make it writable, or {another}"),
            Self::NotOwn { home, user, .. } => {
                format!("if you trust what lies there, `chown -R {user} {}`; else {another}", home.display())
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
                format!("if you trust what lies there, `chmod go-w {}`; else {another}", home.display())
            }
        }
    }
}

/// Checks that a home which is there belongs to who runs herma, and that nobody else can write it. A link counts as what
/// it leads to.
pub fn check_home(home: &Path) -> Result<(), HomeError> {
    check_owner(home, rustix::process::geteuid().as_raw()).map(drop)
}

/// The home's permissions; none where there is no home.
pub(super) fn check_owner(home: &Path, user: u32) -> Result<Option<u32>, HomeError> {
    let named = || home.to_owned();
    let there = match fs::metadata(home) {
        Ok(there) => there,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(cause) => return Err(HomeError::Io { home: named(), cause }),
    };
    let mode = there.permissions().mode() & 0o7777;
    if !there.is_dir() {
        Err(HomeError::NotADirectory { home: named() })
    } else if there.uid() != user {
        Err(HomeError::NotOwn { home: named(), owner: there.uid(), user })
    } else if mode & 0o022 != 0 {
        Err(HomeError::Writable { home: named(), mode })
    } else {
        Ok(Some(mode))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::home::{Home, HomePlace};

    fn open(home: &Path) -> Result<Home, HomeError> {
        Home::open(&HomePlace::named(home.to_owned()))
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn a_home_that_others_can_write_is_refused_and_left_as_it_is() {
        for shared in [0o770, 0o702, 0o1777, 0o755 | 0o020] {
            let dir = tempfile::tempdir().unwrap();
            fs::set_permissions(dir.path(), Permissions::from_mode(shared)).unwrap();
            let refused = open(dir.path()).unwrap_err();
            assert!(matches!(refused, HomeError::Writable { mode, .. } if mode == shared), "{refused:?}");
            assert!(refused.next_step().contains(&format!("chmod go-w {}", dir.path().display())));
            assert!(check_home(dir.path()).is_err());
            assert_eq!(mode(dir.path()), shared);
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        }
    }

    #[test]
    fn a_home_of_somebody_else_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let owner = fs::metadata(dir.path()).unwrap().uid();
        assert!(check_owner(dir.path(), owner).is_ok());
        let refused = check_owner(dir.path(), owner + 1).unwrap_err();
        assert!(matches!(refused, HomeError::NotOwn { .. }), "{refused:?}");
        assert!(refused.next_step().contains(&format!("chown -R {}", owner + 1)), "{}", refused.next_step());
    }

    #[test]
    fn trying_to_write_follows_no_link() {
        let dir = tempfile::tempdir().unwrap();
        let (home, elsewhere) = (dir.path().join("home"), dir.path().join("elsewhere"));
        open(&home).unwrap();
        fs::write(&elsewhere, "precious").unwrap();
        for name in [".writable", "reserve"] {
            let _ = fs::remove_file(home.join(name));
            symlink(&elsewhere, home.join(name)).unwrap();
            let _ = open(&home);
            assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "precious", "{name}");
        }
    }
}
