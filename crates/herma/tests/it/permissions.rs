//! An agent that takes permissions away from what it made: its work is judged all the same.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use herma_core::report::{Mode, PathRule as Rule};

use crate::kit::{HOLD, Herma, fix_and, until};

#[test]
fn files_without_permissions_are_opened_and_judged() {
    for destination in ["sandbox", "host"] {
        let (herma, _) = Herma::of_normal_user();
        let close = "- shell: 'chmod 000 slugify.sh; mkdir -p tests/deep/er; echo a > tests/deep/er/file; \
                     echo b > tests/deep/runs; chmod 100 tests/deep/runs; ln -s file tests/deep/er/link; \
                     chmod 400 tests/deep/er; chmod 000 tests/deep .git/config .git .'";
        let run = herma.play(&fix_and(&[close]), &[("destination", destination)]);
        run.assert_pass();
        let new = |path: &str| {
            let changed = run.report.changed_files.iter().find(|change| change.path.to_string() == path);
            changed.and_then(|change| change.new.as_ref()).map(|entry| entry.mode)
        };
        assert_eq!(
            run.changed(),
            ["slugify.sh", "tests/deep/er/file", "tests/deep/er/link", "tests/deep/runs"],
            "{destination}"
        );
        assert_eq!(new("slugify.sh"), Some(Mode::File), "{destination}");
        assert_eq!(new("tests/deep/runs"), Some(Mode::Executable), "{destination}");
        assert_eq!(new("tests/deep/er/link"), Some(Mode::Symlink), "{destination}");
    }
}

#[test]
fn a_link_to_an_unreadable_file_is_not_followed() {
    let (herma, _) = Herma::of_normal_user();
    let secret = herma.file("secret", "closed");
    fs::set_permissions(&secret, Permissions::from_mode(0o000)).unwrap();
    let link = format!("- shell: 'ln -s {} tests/link; chmod 000 tests'", secret.display());
    let run = herma.play(&fix_and(&[&link]), &[("destination", "host")]);
    run.assert_disallowed(&[("tests/link", Rule::SymlinkEscape)]);
    assert_eq!(secret.metadata().unwrap().permissions().mode() & 0o777, 0);
}

/// Root can read and put down everything; only it can show what belongs to somebody else.
#[test]
fn an_unreadable_path_fails_the_run_and_is_named() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let (herma, _) = Herma::of_normal_user();
    let (contract, script) = (herma.contract(&[]), herma.script(&fix_and(&[HOLD])));
    let run = herma.finished_by(|| {
        let args = ["run".as_ref(), contract.as_os_str(), "--script".as_ref(), script.as_os_str()];
        let started = herma.start(&args);
        until("the engine works", || herma.runs().iter().any(|run| herma.said(*run, "engine.started")));
        let workspace = herma.home().join("runs").join(herma.runs()[0].to_string()).join("workspace");
        fs::write(workspace.join("tests/foreign"), "of root").unwrap();
        fs::set_permissions(workspace.join("tests/foreign"), Permissions::from_mode(0o600)).unwrap();
        fs::write(workspace.join("tests/go"), "").unwrap();
        started.end()
    });
    run.assert_disallowed(&[("tests/foreign", Rule::SpecialFile)]);
}
