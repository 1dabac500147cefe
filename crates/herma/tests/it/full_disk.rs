//! A home on a full or read-only disk: never a pass, never without a trace, and closed as soon as that is possible.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use herma_core::{Blocker, RunId, Status};

use crate::kit::{Herma, run_tool};

/// A small file system that is gone after the test.
pub(crate) struct SmallDisk {
    pub(crate) at: PathBuf,
}

impl SmallDisk {
    pub(crate) fn mount(at: PathBuf, mebibytes: u32) -> Self {
        std::fs::create_dir_all(&at).unwrap();
        let size = format!("size={mebibytes}m");
        let words = ["-t", "tmpfs", "-o", &size, "tmpfs"].map(OsStr::new);
        run_tool("mount", &[&words[..], &[at.as_os_str()]].concat(), &[]);
        Self { at }
    }

    fn make_read_only(&self) {
        run_tool("mount", &["-o".as_ref(), "remount,ro".as_ref(), self.at.as_os_str()], &[]);
    }

    /// Writes until nothing fits any more, then gives `spare` bytes back.
    fn fill(&self, spare: u64) -> PathBuf {
        let file = self.at.join("filler");
        let full = std::fs::write(&file, vec![0; 64 << 20]).unwrap_err();
        assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
        let size = file.metadata().unwrap().len();
        let open = std::fs::OpenOptions::new().write(true).open(&file).unwrap();
        open.set_len(size.saturating_sub(spare)).unwrap();
        file
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        run_tool("umount", &["-l".as_ref(), self.at.as_os_str()], &[]);
    }
}

fn herma_on(disk: &SmallDisk, herma: &mut Herma) {
    herma.set_home(&disk.at.join("home"));
    // Key, store and reserve are made while there is room.
    assert_eq!(herma.run(&["runs"]).code, Some(0));
}

/// The state after a run on a full disk: closed, verifying, and no false pass.
fn assert_all_closed(herma: &Herma, fresh: &Path, spare: u64) {
    let _ = std::fs::remove_file(fresh);
    let listed = herma.run(&["runs", "--all", "--json"]);
    assert_eq!(listed.code, Some(0), "{spare} bytes: {listed:#?}");
    assert_eq!(herma.active(), [""; 0], "{spare} bytes");
    for run in herma.runs() {
        let bundle = herma.bundle(run);
        bundle.assert_whole();
        herma.assert_verifies(&bundle);
        herma.assert_only_the_bundle_is_left(run);
    }
}

#[test]
fn a_disk_that_fills_up_at_any_point_of_a_run_ends_it_as_a_write_failure() {
    let mut herma = Herma::new();
    let mut seen = Vec::new();
    // From no room at all to room for nearly everything; the run's own files decide where it ends.
    for spare_kib in [0, 8, 16, 32, 64, 96, 128, 160, 192, 224, 256, 320, 384] {
        let disk = SmallDisk::mount(herma.at(&format!("disk{spare_kib}")), 8);
        herma_on(&disk, &mut herma);
        let spare = spare_kib << 10;
        let filler = disk.fill(spare);
        let ended = herma.run(&["demo", "--json", "--destination", "host"]);
        let code = ended.code.unwrap();
        assert!(matches!(code, 0 | 1 | 4), "{spare_kib} KiB: {ended:#?}");
        let told = ended.json();
        if told["schema"] == "herma.error/v1" {
            let said = told["error"].as_str().unwrap_or_default();
            let named = ["artifact_write_failure", "herma's home", "store", "full", "No space"];
            assert!(named.iter().any(|word| said.contains(word)), "{spare_kib} KiB: {ended:#?}");
        } else if code == 0 {
            // There was room after all.
            assert_eq!(told["status"], "pass");
        } else {
            assert_ne!(told["status"], "pass");
            let blockers = told["blockers"].as_array().unwrap();
            let named = blockers.iter().any(|b| b["blocker"] == Blocker::ArtifactWriteFailure.as_str());
            assert!(named, "{spare_kib} KiB: {told:#}");
        }
        seen.push(code);
        assert_all_closed(&herma, &filler, spare);
        // A run that failed is not turned into a pass by closing it later. Where the whole bundle was signed and
        // only the store had no room (exit 4), its verdict stands.
        let passed = |run: &RunId| herma.bundle(*run).report().status == Status::Pass;
        assert!(code != 1 || !herma.runs().iter().any(passed), "{spare_kib} KiB: {told:#}");
    }
    assert!(seen.contains(&1), "no run closed itself with the reserve: {seen:?}");
    assert_ne!(seen[0], 0, "a run passed on a disk without any room");
}

#[test]
fn after_space_is_freed_the_same_contract_passes() {
    let mut herma = Herma::new();
    let disk = SmallDisk::mount(herma.at("disk"), 8);
    herma_on(&disk, &mut herma);
    let filler = disk.fill(16 << 10);
    assert_ne!(herma.run(&["demo", "--destination", "host"]).code, Some(0));
    std::fs::remove_file(filler).unwrap();
    herma.demo(&["--destination", "host"]);
}

#[test]
fn a_read_only_home_is_no_place_for_a_run() {
    let mut herma = Herma::new();
    let disk = SmallDisk::mount(herma.at("disk"), 8);
    herma_on(&disk, &mut herma);
    disk.make_read_only();
    for args in [&["demo"][..], &["demo", "--destination", "host"], &["run", "fixture:string-slugify"]] {
        let ended = herma.run(args);
        assert_eq!(ended.code, Some(4), "{args:?}: {ended:#?}");
        let home = herma.home().display().to_string();
        let named = ended.stderr.contains("artifact_write_failure") || ended.stderr.contains(&home);
        assert!(named, "{args:?}: neither the home nor the blocker is named: {ended:#?}");
        assert!(ended.stderr.contains("next: "), "{args:?}: {ended:#?}");
        herma.assert_no_run();
    }
}

#[test]
fn a_home_that_cannot_be_made_is_named() {
    let mut herma = Herma::new();
    let file = herma.file("not-a-directory", "");
    herma.set_home(&file.join("home"));
    let ended = herma.run(&["demo"]);
    assert_eq!(ended.code, Some(4), "{ended:#?}");
    assert!(ended.stderr.contains(&format!("herma's home {}", file.join("home").display())), "{ended:#?}");
}
