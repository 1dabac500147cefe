//! Which directories herma uses, makes and leaves alone.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;

use crate::kit::{Herma, names, run_tool};

/// The state of a directory that a command could change.
fn state(dir: &Path) -> (u32, u32, Vec<String>) {
    let meta = fs::metadata(dir).unwrap();
    (meta.mode() & 0o7777, meta.uid(), names(dir))
}

#[test]
fn a_directory_of_somebody_elses_making_is_refused_by_every_command() {
    for mode in [0o700, 0o755, 0o1777] {
        let mut herma = Herma::new();
        let theirs = herma.at("theirs");
        herma.file("theirs/file", "precious");
        fs::set_permissions(&theirs, Permissions::from_mode(mode)).unwrap();
        let before = state(&theirs);
        herma.set_home(&theirs);
        for args in [&["runs"][..], &["engines"], &["demo"]] {
            let ended = herma.run(args);
            assert_eq!(ended.code, Some(2), "{args:?}: {ended:#?}");
            let message = format!("{} is not empty and is not a herma home", theirs.display());
            assert!(ended.stderr.contains(&message), "{args:?}: {ended:#?}");
            assert!(ended.stderr.contains("next: set HERMA_HOME to an empty directory"), "{ended:#?}");
            assert_eq!(state(&theirs), before, "{args:?}");
        }
        let told = herma.run(&["doctor"]);
        assert_eq!(told.code, Some(1), "{told:#?}");
        assert!(told.stdout.contains("is not empty and is not a herma home"), "{told:#?}");
        assert_eq!(state(&theirs), before);
    }
}

#[test]
fn a_home_of_a_user_who_is_not_there_is_not_made() {
    let mut herma = Herma::new();
    let user = herma.at("gone/user");
    herma.set("HOME", &user);
    herma.wrap(&["env", "-u", "HERMA_HOME"]);
    let ended = herma.run(&["runs"]);
    assert_eq!(ended.code, Some(2), "{ended:#?}");
    assert!(ended.stderr.contains(&format!("{} does not exist", user.display())), "{ended:#?}");
    assert!(!herma.at("gone").exists());
    // Below one that is there, the default is made.
    fs::create_dir_all(&user).unwrap();
    assert_eq!(herma.run(&["runs"]).code, Some(0));
    assert_eq!(fs::read_to_string(user.join(".local/state/herma/herma-home")).unwrap(), "herma-home 1\n");
    // A directory that a variable names is not made with those above it.
    herma.set("XDG_STATE_HOME", herma.at("gone/state"));
    let ended = herma.run(&["runs"]);
    assert_eq!(ended.code, Some(2), "{ended:#?}");
    assert!(ended.stderr.contains("gone/state does not exist"), "{ended:#?}");
    assert!(!herma.at("gone/state").exists());
}

#[test]
fn a_home_of_an_earlier_version_still_works() {
    let herma = Herma::new();
    herma.demo(&["--destination", "host"]);
    fs::remove_file(herma.home().join("herma-home")).unwrap();
    assert_eq!(herma.json(&["runs", "--all", "--json"])["runs"].as_array().unwrap().len(), 1);
    assert!(herma.home().join("herma-home").is_file());
}

#[test]
fn the_routers_state_is_kept_only_where_the_router_made_it() {
    let herma = Herma::new();
    herma.file("theirs/file", "precious");
    for (state_dir, message) in [
        ("theirs", "theirs is not empty, and herma did not make it"),
        ("missing/state", "missing does not exist"),
        ("theirs/file", "is not a directory"),
    ] {
        let config = format!("state = \"{state_dir}\"\n[listen]\naddress = \"unix:router.sock\"\n");
        let config = herma.file("router.toml", config);
        let before = state(&herma.at("theirs"));
        let ended = herma.run(&["router".as_ref(), "--config".as_ref(), config.as_os_str()]);
        assert_eq!(ended.code, Some(2), "{ended:#?}");
        assert!(ended.stderr.contains(message), "{message}: {ended:#?}");
        assert_eq!(state(&herma.at("theirs")), before);
        assert!(!herma.at("missing").exists());
    }
}

#[test]
fn a_first_contract_is_written_through_no_link() {
    let herma = Herma::new();
    let (repository, elsewhere) = (herma.at("repository"), herma.at("elsewhere"));
    run_tool("git", &["init".as_ref(), "-q".as_ref(), repository.as_os_str()], &[]);
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, repository.join(".herma")).unwrap();
    let ended = herma.run(&["init".as_ref(), repository.as_os_str()]);
    assert_eq!(ended.code, Some(2), "{ended:#?}");
    assert!(ended.stderr.contains(".herma is a symbolic link"), "{ended:#?}");
    assert_eq!(names(&elsewhere), [""; 0]);
}
