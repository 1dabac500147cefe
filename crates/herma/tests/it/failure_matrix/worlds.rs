//! Creates the faulty conditions around a run.

use std::cell::RefCell;
use std::ffi::OsString;
use std::os::unix::fs::{chown, symlink};
use std::path::Path;

use herma_core::RunId;
use herma_ladder::failure_matrix::{Setup, World};

use super::people;
use crate::kit::{Ended, Herma, LONG_ANSWERS, ON_REPOSITORY, Repository, environment, on_path};

/// A user id that nobody has.
const STRANGER: u32 = 12345;

/// A script of the upstream that never comes to an answer.
const REASONING: &str = "name: reasoning\nmodels: [m]\nrepeat: true\nturns: [{ think: I wonder. }]\n";

/// A world with a herma in it.
pub(super) struct Scene {
    pub(super) herma: Herma,
    world: World,
    repository: Option<Repository>,
    /// The runs that were there before the row's own.
    earlier: RefCell<Vec<RunId>>,
}

impl Scene {
    pub(super) fn set(world: World) -> Self {
        let mut herma = match world {
            World::Denied | World::ExpiredApproval | World::UsedApproval => Herma::proven(4),
            World::NoOutcome => Herma::proven(5),
            World::OtherProgram | World::OtherIdentity => Herma::with_stub(),
            World::Model => Herma::with_model(LONG_ANSWERS),
            World::ReasoningModel => Herma::with_model(REASONING),
            _ => Herma::new(),
        };
        let mut repository = None;
        match world {
            World::Sound
            | World::Denied
            | World::ExpiredApproval
            | World::UsedApproval
            | World::Model
            | World::ReasoningModel => {}
            World::Repository | World::DirtyRepository | World::ForeignRepository | World::NoOutcome => {
                repository = Some(Repository::of_fixture(&herma, "string-slugify"));
            }
            World::NoBubblewrap => {
                let tools = herma.at("tools");
                std::fs::create_dir(&tools).unwrap();
                symlink(on_path("git"), tools.join("git")).unwrap();
                herma.set("PATH", tools);
            }
            World::HomeInToolchain => move_home_into_toolchain(&mut herma),
            World::InsideRun => herma.wrap(&inside_a_run()),
            World::OtherProgram => people::change_program(&herma),
            World::OtherIdentity => people::admit_as_another(&herma),
        }
        let scene = Self { herma, world, repository, earlier: RefCell::default() };
        scene.spoil_repository();
        scene
    }

    fn spoil_repository(&self) {
        let Some(Repository { dir }) = &self.repository else { return };
        match self.world {
            World::DirtyRepository => std::fs::write(dir.join("README.md"), "not committed\n").unwrap(),
            World::ForeignRepository => give_away(dir),
            World::NoOutcome => self.herma.admit_target(dir, &[]),
            _ => {}
        }
    }

    /// Runs the row's contract, with its script, engine and fault.
    pub(super) fn run(&self, setup: &Setup) -> Ended {
        let mut terms = setup.terms.to_vec();
        if self.repository.is_some() && self.world != World::NoOutcome {
            terms.extend(ON_REPOSITORY);
        }
        if self.world == World::Repository {
            terms.push(("destination", "host"));
        }
        if self.world == World::HomeInToolchain {
            terms.push(("toolchains", "[rust]"));
        }
        let contract = self.herma.contract(&terms).into_os_string();
        let target = self.herma.at("repo").display().to_string();
        let script = self.herma.script(&setup.script.replace("{target}", &target)).into_os_string();
        people::speak(&self.herma, self.world);
        self.earlier.replace(self.herma.runs());
        let args: [OsString; 6] =
            ["run".into(), contract, "--script".into(), script, "--engine".into(), setup.engine.into()];
        match setup.fault {
            Some(fault) => self.herma.run_with_fault(fault, &args),
            None => self.herma.run(&args),
        }
    }

    /// The runs that the row made.
    pub(super) fn runs(&self) -> Vec<RunId> {
        let earlier = self.earlier.borrow();
        self.herma.runs().into_iter().filter(|run| !earlier.contains(run)).collect()
    }

    /// The herma that looks at what is left: nothing is wrong around it.
    pub(super) fn outside(&self) -> &Herma {
        &self.herma
    }

    /// The target as it is now.
    pub(super) fn picture(&self) -> Option<impl PartialEq + std::fmt::Debug + use<>> {
        self.repository.as_ref().map(Repository::picture)
    }
}

fn give_away(dir: &Path) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            give_away(&path);
        }
        std::os::unix::fs::lchown(&path, Some(STRANGER), Some(STRANGER)).unwrap();
    }
    chown(dir, Some(STRANGER), Some(STRANGER)).unwrap();
}

/// A `rustc` whose sysroot holds herma's home.
fn move_home_into_toolchain(herma: &mut Herma) {
    let sysroot = herma.at("sysroot");
    let text = herma.file("rustc.sh", format!("#!/bin/sh\nprintf %s '{}'\n", sysroot.display()));
    herma.program("sysroot/bin/rustc", &text);
    let mut path = sysroot.join("bin").into_os_string();
    path.push(":");
    path.push(environment("PATH"));
    herma.set("PATH", path);
    herma.set_home(&sysroot.join("home"));
}

/// bubblewrap around everything that is there, with the marker that the inside of a run has.
fn inside_a_run() -> Vec<OsString> {
    let mut words: Vec<OsString> = vec![on_path("bwrap").into(), "--tmpfs".into(), "/".into()];
    for entry in std::fs::read_dir("/").unwrap() {
        let path = entry.unwrap().path();
        words.extend(["--dev-bind".into(), path.clone().into(), path.into()]);
    }
    words.extend(["--ro-bind", "/dev/null", herma_destination::INSIDE_MARKER, "--"].map(OsString::from));
    words
}
