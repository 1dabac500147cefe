use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use super::*;
use crate::home::Home;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn names(dir: &Path) -> Vec<PathBuf> {
    let mut names: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    names
}

fn open(path: &Path) -> Result<Home, HomeError> {
    Home::open(&HomePlace::named(path.to_owned()))
}

#[test]
fn a_directory_with_other_files_is_refused_and_left_as_it_is() {
    for permissions in [0o700, 0o755, 0o1777] {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("theirs"), "precious").unwrap();
        set_mode(dir.path(), permissions);
        let refused = open(dir.path()).unwrap_err();
        assert!(matches!(refused, HomeError::Foreign { .. }), "{refused:?}");
        assert!(refused.next_step().contains(MARKER), "{}", refused.next_step());
        assert_eq!(mode(dir.path()), permissions);
        assert_eq!(names(dir.path()), [dir.path().join("theirs")]);
    }
}

#[test]
fn an_empty_directory_is_used_and_marked() {
    let dir = tempfile::tempdir().unwrap();
    set_mode(dir.path(), 0o700);
    open(dir.path()).unwrap();
    assert_eq!(fs::read_to_string(dir.path().join(MARKER)).unwrap(), MARKER_TEXT);
    open(dir.path()).unwrap();
}

#[test]
fn a_directory_that_others_can_read_is_refused_and_keeps_its_permissions() {
    let dir = tempfile::tempdir().unwrap();
    let (home, link) = (dir.path().join("home"), dir.path().join("link"));
    fs::create_dir(&home).unwrap();
    set_mode(&home, 0o755);
    symlink(&home, &link).unwrap();
    for place in [&home, &link] {
        let refused = open(place).unwrap_err();
        assert!(matches!(refused, HomeError::Readable { mode: 0o755, .. }), "{refused:?}");
        assert!(refused.next_step().contains("chmod go-rwx"), "{}", refused.next_step());
    }
    assert_eq!((mode(&home), names(&home)), (0o755, Vec::new()));
}

#[test]
fn a_home_of_an_earlier_version_is_known_by_its_key_and_store() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    open(&home).unwrap();
    fs::remove_file(home.join(MARKER)).unwrap();
    assert!(matches!(open(&home).unwrap_err(), HomeError::Foreign { .. }));
    for file in ["keys/installation.key", "store.db"] {
        fs::write(home.join(file), "").unwrap();
    }
    open(&home).unwrap();
    assert_eq!(fs::read_to_string(home.join(MARKER)).unwrap(), MARKER_TEXT);
}

#[test]
fn a_marker_of_another_format_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    set_mode(dir.path(), 0o700);
    fs::write(dir.path().join(MARKER), "herma-home 2\n").unwrap();
    let refused = open(dir.path()).unwrap_err();
    assert!(matches!(refused, HomeError::Format { .. }), "{refused:?}");
    assert_eq!(names(dir.path()), [dir.path().join(MARKER)]);
    // A process that was killed between creating and writing the marker.
    fs::write(dir.path().join(MARKER), "").unwrap();
    open(dir.path()).unwrap();
}

#[test]
fn only_the_last_component_of_a_named_home_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let (parent, home) = (dir.path().join("missing"), dir.path().join("missing/home"));
    let refused = open(&home).unwrap_err();
    assert!(matches!(&refused, HomeError::NoParent { parent: named, .. } if *named == parent), "{refused:?}");
    assert_eq!(names(dir.path()), [""; 0].map(PathBuf::from));
    open(&dir.path().join("home")).unwrap();
    assert_eq!(mode(&dir.path().join("home")), 0o700);
}

#[test]
fn the_default_home_is_made_below_a_user_home_that_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let user = dir.path().join("user");
    let refused = Home::open(&HomePlace::default_below(user.clone())).unwrap_err();
    assert!(matches!(&refused, HomeError::NoParent { parent, .. } if *parent == user), "{refused:?}");
    assert_eq!(names(dir.path()), [""; 0].map(PathBuf::from));
    fs::create_dir(&user).unwrap();
    set_mode(&user, 0o755);
    Home::open(&HomePlace::default_below(user.clone())).unwrap();
    assert_eq!(mode(&user), 0o755);
    for made in [".local", ".local/state", ".local/state/herma"] {
        assert_eq!(mode(&user.join(made)), 0o700, "{made}");
    }
}

#[test]
fn processes_that_open_a_new_home_at_once_all_get_it() {
    let dir = tempfile::tempdir().unwrap();
    for round in 0..50 {
        let home = dir.path().join(round.to_string());
        std::thread::scope(|scope| {
            let opening: Vec<_> = (0..4).map(|_| scope.spawn(|| open(&home).map(drop))).collect();
            for opened in opening {
                opened.join().unwrap().unwrap();
            }
        });
    }
}
