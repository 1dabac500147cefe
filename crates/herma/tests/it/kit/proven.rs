//! Homes that take long to make are made once, kept beside the build, and copied for each test.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use herma_core::Digest;
use rustix::fs::{FlockOperation, flock};

use super::{HERMA, Herma, names, run_tool};

/// Where templates are kept: one directory for each herma binary, because a proof is bound to its digest.
const TEMPLATES: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/templates");

impl Herma {
    /// A home in which `fake` has proven every stage up to this one, with the approver alice and her `alice.txt`.
    pub(crate) fn proven(stage: u8) -> Self {
        assert!((3..=5).contains(&stage), "stages 1 to 3 need no proof of `fake`, and 6 is judged");
        if stage == 3 {
            return Self::from_template("alice", |herma| herma.let_in("alice", None));
        }
        Self::from_template(&format!("fake-{stage}"), |herma| {
            herma.let_in("alice", None);
            for stage in 4..=stage {
                let prove = ["prove", "--engine", "fake", "--stage", &stage.to_string()];
                let proven = herma.run_as("alice", &prove);
                assert_eq!(proven.code, Some(0), "{proven:#?}");
            }
        })
    }

    /// A copy of everything that `make` leaves in a test's directory. It is made once for each build of herma, by
    /// whichever test comes first; the others wait for it.
    pub(crate) fn from_template(name: &str, make: impl FnOnce(&Self)) -> Self {
        let build = || Digest::of(&fs::read(HERMA).unwrap()).to_string().replace(':', "-");
        let binary = build();
        let (all, own) = (PathBuf::from(TEMPLATES), Path::new(TEMPLATES).join(&binary));
        fs::create_dir_all(&own).unwrap();
        let lock = File::create(own.join(format!("{name}.lock"))).unwrap();
        flock(&lock, FlockOperation::LockExclusive).unwrap();
        let template = own.join(name);
        if !template.exists() {
            forget_all_but(&all, &binary);
            let first = Self::new();
            make(&first);
            // Only what is whole gets the template's name.
            let unfinished = own.join(format!("{name}.unfinished"));
            let _ = fs::remove_dir_all(&unfinished);
            copy(first.at("").as_path(), &unfinished);
            assert_eq!(build(), binary, "herma was built anew meanwhile: run the test again");
            fs::rename(&unfinished, &template).unwrap();
        }
        // Many may copy at once.
        flock(&lock, FlockOperation::LockShared).unwrap();
        let herma = Self::new();
        for entry in names(&template) {
            let _ = fs::remove_dir_all(herma.at(&entry));
            copy(&template.join(&entry), &herma.at(&entry));
        }
        herma
    }
}

/// Removes the templates of builds that are gone, unless they are young: a test may be copying one.
fn forget_all_but(all: &Path, binary: &str) {
    for other in names(all).iter().filter(|name| *name != binary) {
        let dir = all.join(other);
        let age = dir.metadata().and_then(|meta| meta.modified()).ok().and_then(|time| time.elapsed().ok());
        if age.is_some_and(|age| age.as_secs() > 3600) {
            let _ = fs::remove_dir_all(dir);
        }
    }
}

/// Copies a tree or a file with modes and times.
fn copy(from: &Path, to: &Path) {
    run_tool("cp", &[OsStr::new("-a"), from.as_os_str(), to.as_os_str()], &[]);
}
