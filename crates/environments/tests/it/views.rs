//! Views with mounts: which directories are left to them, and how their changes become plain files.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use herma_core::{Digest, Timestamp};
use herma_environments::key::LayerKey;
use herma_environments::layers::{Acquired, LayerInUse, LayerStore, TreeLimits, take_over};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::layers::record;

fn layer(store: &LayerStore, files: impl Fn(&Path, &Path)) -> LayerInUse {
    let key = LayerKey::from_name(&Digest::of(b"layer").hex()).unwrap();
    let at = Timestamp::from_second(1).unwrap();
    let Acquired::Build(build) = store.acquire(key, at, &mut || {}, &|| false).unwrap() else {
        panic!("it is there")
    };
    files(&build.home(), &build.checkout());
    build.commit(at, |tree| record(key, tree)).unwrap()
}

fn write_many(dir: &Path, files: usize) {
    fs::create_dir_all(dir).unwrap();
    for number in 0..files {
        fs::write(dir.join(number.to_string()), "text").unwrap();
    }
}

#[test]
fn large_directories_that_the_checkout_lacks_are_left_to_mounts() {
    let dir = tempfile::tempdir().unwrap();
    let store = LayerStore::open(&dir.path().join("environments")).unwrap();
    let layer = layer(&store, |home, checkout| {
        fs::write(home.join("few"), "text").unwrap();
        write_many(&checkout.join("node_modules/a"), 100);
        fs::set_permissions(checkout.join("node_modules"), fs::Permissions::from_mode(0o750)).unwrap();
        write_many(&checkout.join("sub/deps"), 100);
        write_many(&checkout.join("sub/own"), 100);
        write_many(&checkout.join("small"), 3);
    });
    let (home, checkout) = (dir.path().join("home"), dir.path().join("checkout"));
    fs::create_dir(&home).unwrap();
    // The base has files in two of these directories.
    write_many(&checkout.join("sub/own"), 1);
    let mounts = layer.write_view_around_mounts(&home, &checkout, &TreeLimits::default()).unwrap();
    let mut places: Vec<&Path> = mounts.iter().map(|mount| mount.place.as_path()).collect();
    places.sort();
    assert_eq!(places, [Path::new("node_modules"), Path::new("sub/deps")]);
    for mount in &mounts {
        assert_eq!(fs::read_dir(checkout.join(&mount.place)).unwrap().count(), 0);
        assert_eq!(mount.lower, layer.checkout().join(&mount.place));
    }
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(checkout.join("node_modules")), 0o750);
    mounts[0].make_upper(&dir.path().join("upper")).unwrap();
    assert_eq!(mode(dir.path().join("upper")), mode(mounts[0].lower.clone()));
    // Everything else is a copy.
    assert_eq!(fs::read_dir(checkout.join("sub/own")).unwrap().count(), 100);
    assert_eq!(fs::read_dir(checkout.join("small")).unwrap().count(), 3);
    assert!(home.join("few").exists());
    assert!(layer.is_intact().unwrap());
}

/// A root with a place for changes, and changes for it.
fn changes(dir: &Path) -> (PathBuf, PathBuf) {
    let (root, upper) = (dir.join("root"), dir.join("upper"));
    for path in [root.join("sub/deps"), upper.join("pkg"), dir.join("elsewhere/deps")] {
        fs::create_dir_all(path).unwrap();
    }
    fs::write(upper.join("pkg/changed"), "text").unwrap();
    for deleted in ["gone", "pkg/gone"] {
        mknodat(CWD, upper.join(deleted), FileType::CharacterDevice, Mode::empty(), 0).unwrap();
    }
    (root, upper)
}

#[test]
fn changes_are_moved_to_their_place_without_the_marks_of_deleted_files() {
    let dir = tempfile::tempdir().unwrap();
    let (root, upper) = changes(dir.path());
    assert!(take_over(&upper, &root, Path::new("sub/deps")).unwrap());
    let names = |path: &str| -> Vec<String> {
        let entries = fs::read_dir(root.join(path)).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    assert_eq!(names("sub/deps"), ["pkg"]);
    assert_eq!(names("sub/deps/pkg"), ["changed"]);
    assert!(!upper.exists());
}

#[test]
fn changes_are_left_where_the_agent_put_something_else_in_their_place() {
    type Replace = fn(&Path);
    let replaced: [Replace; 3] = [
        |root| {
            fs::rename(root.join("sub"), root.join("moved")).unwrap();
            symlink("../elsewhere", root.join("sub")).unwrap();
        },
        |root| fs::write(root.join("sub/deps/own"), "text").unwrap(),
        |root| fs::rename(root.join("sub"), root.join("moved")).unwrap(),
    ];
    for replace in replaced {
        let dir = tempfile::tempdir().unwrap();
        let (root, upper) = changes(dir.path());
        replace(&root);
        assert!(!take_over(&upper, &root, Path::new("sub/deps")).unwrap());
        assert_eq!(
            fs::read_dir(dir.path().join("elsewhere/deps")).unwrap().count(),
            0,
            "no link was followed"
        );
        assert!(upper.join("pkg/changed").exists());
    }
}
