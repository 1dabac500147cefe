//! Whether herma's home is the user's own. Whoever else can write it chooses whom herma trusts.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

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
            Self::Writable { home, .. } => {
                format!("if you trust what lies there, `chmod go-w {}`; else {another}", home.display())
            }
        }
    }
}

/// Checks that a home which is there belongs to who runs herma, and that nobody else can write it. A link counts as what
/// it leads to.
pub fn check_home(home: &Path) -> Result<(), HomeError> {
    check(home, rustix::process::geteuid().as_raw()).map(drop)
}

/// The same, and nobody else can read it afterwards either.
pub(super) fn make_private(home: &Path) -> Result<(), HomeError> {
    let Some(mode) = check(home, rustix::process::geteuid().as_raw())? else { return Ok(()) };
    let private = mode & !0o077;
    if mode == private {
        return Ok(());
    }
    fs::set_permissions(home, Permissions::from_mode(private))
        .map_err(|cause| HomeError::Io { home: home.to_owned(), cause })
}

/// The home's permissions; none where there is no home.
fn check(home: &Path, user: u32) -> Result<Option<u32>, HomeError> {
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
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::home::Home;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn a_home_that_others_can_write_is_refused_and_left_as_it_is() {
        for shared in [0o770, 0o702, 0o1777, 0o755 | 0o020] {
            let dir = tempfile::tempdir().unwrap();
            fs::set_permissions(dir.path(), Permissions::from_mode(shared)).unwrap();
            let refused = Home::open(dir.path()).unwrap_err();
            assert!(matches!(refused, HomeError::Writable { mode, .. } if mode == shared), "{refused:?}");
            assert!(refused.next_step().contains(&format!("chmod go-w {}", dir.path().display())));
            assert!(check_home(dir.path()).is_err());
            assert_eq!(mode(dir.path()), shared);
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        }
    }

    #[test]
    fn a_home_that_others_can_only_read_is_closed_to_them() {
        let dir = tempfile::tempdir().unwrap();
        let (home, link) = (dir.path().join("home"), dir.path().join("link"));
        fs::create_dir(&home).unwrap();
        fs::set_permissions(&home, Permissions::from_mode(0o755)).unwrap();
        symlink(&home, &link).unwrap();
        Home::open(&link).unwrap();
        assert_eq!(mode(&home), 0o700);
    }

    #[test]
    fn a_home_of_somebody_else_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let owner = fs::metadata(dir.path()).unwrap().uid();
        assert!(check(dir.path(), owner).is_ok());
        let refused = check(dir.path(), owner + 1).unwrap_err();
        assert!(matches!(refused, HomeError::NotOwn { .. }), "{refused:?}");
        assert!(refused.next_step().contains(&format!("chown -R {}", owner + 1)), "{}", refused.next_step());
    }

    #[test]
    fn trying_to_write_follows_no_link() {
        let dir = tempfile::tempdir().unwrap();
        let (home, elsewhere) = (dir.path().join("home"), dir.path().join("elsewhere"));
        Home::open(&home).unwrap();
        fs::write(&elsewhere, "precious").unwrap();
        for name in [".writable", "reserve"] {
            let _ = fs::remove_file(home.join(name));
            symlink(&elsewhere, home.join(name)).unwrap();
            let _ = Home::open(&home);
            assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "precious", "{name}");
        }
    }
}
