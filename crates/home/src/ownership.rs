//! Whether the user owns herma's home. A user who can write it chooses the keys that herma trusts.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use crate::error::HomeError;

/// Checks that an existing home belongs to the user who runs herma, and that no other user can write it. Links are
/// followed.
pub fn check_home(home: &Path) -> Result<(), HomeError> {
    check_owner(home, rustix::process::geteuid().as_raw()).map(drop)
}

/// The home's permissions; none where there is no home.
pub(crate) fn check_owner(home: &Path, user: u32) -> Result<Option<u32>, HomeError> {
    let named = || home.to_owned();
    let metadata = match fs::metadata(home) {
        Ok(metadata) => metadata,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(HomeError::Io { home: named(), source }),
    };
    let mode = metadata.permissions().mode() & 0o7777;
    if !metadata.is_dir() {
        Err(HomeError::NotADirectory { home: named() })
    } else if metadata.uid() != user {
        Err(HomeError::NotOwn { home: named(), owner: metadata.uid(), user })
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
    use crate::home::Home;
    use crate::place::HomePlace;

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
