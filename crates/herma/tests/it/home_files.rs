//! A file of the home that is no file: no command waits for it, and the one that needs it names it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::kit::{ANSWERS, Ended, Herma};

/// Things in the place of a file.
#[derive(Clone, Copy, Debug)]
enum Stand {
    Fifo,
    Directory,
    Loop,
    Device,
}

const STANDS: [Stand; 4] = [Stand::Fifo, Stand::Directory, Stand::Loop, Stand::Device];

impl Stand {
    fn put(self, at: &Path) {
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        match self {
            Self::Fifo => mknodat(CWD, at, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap(),
            Self::Directory => fs::create_dir(at).unwrap(),
            Self::Loop => symlink(at.file_name().unwrap(), at).unwrap(),
            Self::Device => symlink("/dev/zero", at).unwrap(),
        }
    }
}

/// The commands that look at a home and change nothing of it.
const COMMANDS: [&[&str]; 15] = [
    &["runs"],
    &["show", "last"],
    &["diff", "last"],
    &["logs", "last"],
    &["verify", "last"],
    &["usage"],
    &["approvals", "list"],
    &["approver", "list"],
    &["admissions", "list"],
    &["engines"],
    &["models"],
    &["ladder"],
    &["policy", "check"],
    &["egress", "show"],
    &["doctor"],
];

/// Each file of a home, `RUN` in it for the run that is there, and the command that needs it and names it. No command needs a
/// cache, a switch that is off where it cannot be read, or what herma writes anew.
const FILES: [(&str, Option<&[&str]>); 24] = [
    ("herma-home", Some(&["runs"])),
    (".writable", Some(&["runs"])),
    ("store.db", Some(&["runs"])),
    ("store.db-wal", Some(&["runs"])),
    ("store.db-shm", Some(&["runs"])),
    ("settings.yaml", Some(&["runs"])),
    ("keys/installation.key", Some(&["runs"])),
    ("keys/installation.pub", None),
    ("keys/approvers/alice.json", Some(&["approver", "list"])),
    ("keys/approvers/alice.revoked.json", Some(&["approver", "list"])),
    ("keys/approvers/first", Some(&["approver", "list"])),
    ("admissions/model/rehearsal+m.yaml", Some(&["admissions", "show", "model", "rehearsal/m"])),
    ("admissions/model/rehearsal+m.signed.json", None),
    ("router.toml", Some(&["models"])),
    ("policy/own.cedar", Some(&["policy", "check"])),
    ("egress/allowlist", Some(&["egress", "show"])),
    ("own-digest.json", None),
    ("reserve", None),
    ("engines/stub.json", None),
    ("proofs/fake/stage-1.json", None),
    ("active/01a1e111-a7fd-73d5-9b31-9354809d6c66", Some(&["runs"])),
    ("runs/RUN/bundle/report.json", Some(&["show", "last"])),
    ("runs/RUN/bundle/events.jsonl", Some(&["verify", "last"])),
    ("runs/RUN/bundle/model-calls.jsonl", None),
];

fn assert_names(ended: &Ended, file: &Path, what: &str) {
    let name = file.file_name().unwrap().to_str().unwrap();
    let said = [&*ended.stdout, &*ended.stderr].concat();
    assert!(said.contains(name), "{what}: {name} is not named: {ended:#?}");
}

/// A home with a run, an approver, a model and rules of the operator.
fn home() -> Herma {
    let herma = Herma::with_model(ANSWERS);
    herma.demo(&["--destination", "host"]);
    herma
}

/// Puts aside what has this name, and gives back how to restore it.
fn aside(file: &Path) -> Option<PathBuf> {
    let aside = file.with_extension("aside-for-a-test");
    fs::rename(file, &aside).ok().map(|()| aside)
}

fn restore(file: &Path, aside: Option<PathBuf>) {
    let _ = fs::remove_dir_all(file).or_else(|_| fs::remove_file(file));
    if let Some(aside) = aside {
        fs::rename(aside, file).unwrap();
    }
}

#[test]
fn no_command_waits_for_a_file_of_the_home_and_each_is_named() {
    let herma = home();
    let run = herma.runs()[0].to_string();
    for (file, named_by) in FILES {
        let file = herma.home().join(file.replace("RUN", &run));
        for stand in STANDS {
            let what = format!("{stand:?} {}", file.display());
            let before = aside(&file);
            stand.put(&file);
            if let Some(command) = named_by {
                let ended = herma.run(command);
                assert_ne!(ended.code, Some(0), "{what}: {command:?}: {ended:#?}");
                assert_names(&ended, &file, &what);
            }
            // Each of them ends, or the kit says that it hangs. A FIFO is what commands could wait for.
            let is_fifo = matches!(stand, Stand::Fifo);
            for command in COMMANDS.iter().filter(|command| is_fifo || **command == ["runs"]) {
                let ended = herma.run(command);
                assert!(ended.code.is_some(), "{what}: {command:?}: {ended:#?}");
            }
            restore(&file, before);
        }
        let ended = herma.run(&["runs"]);
        assert_eq!(ended.code, Some(0), "{}: {ended:#?}", file.display());
    }
}

#[test]
fn a_plan_that_is_no_file_removes_nothing_of_its_run() {
    let herma = home();
    let run = herma.runs()[0].to_string();
    let plan = herma.home().join("runs").join(&run).join("plan.json");
    let attestation = plan.with_file_name("bundle").join("attestation.json");
    fs::remove_file(&attestation).unwrap();
    for stand in STANDS {
        herma.file(herma.home().join("active").join(&run).to_str().unwrap(), "999999999");
        stand.put(&plan);
        let ended = herma.run(&["runs"]);
        assert_eq!(ended.code, Some(4), "{stand:?}: {ended:#?}");
        assert_names(&ended, &plan, &format!("{stand:?}"));
        assert!(plan.with_file_name("bundle").join("report.json").is_file(), "{stand:?}");
        restore(&plan, None);
    }
}

#[test]
fn no_command_waits_for_a_file_that_its_arguments_name() {
    let herma = home();
    let file = herma.at("named");
    let named = "named";
    let commands: [&[&str]; 9] = [
        &["contract", "check", named],
        &["run", named],
        &["run", "fixture:string-slugify", "--script", named],
        &["verify", "last", "--key", named],
        &["router", "check", named],
        &["policy", "check", named],
        &["admissions", "check", named],
        &["admit", "sign", named],
        &["compare", "--contract", named, "--engines", "fake"],
    ];
    for stand in STANDS {
        stand.put(&file);
        for command in commands {
            let ended = herma.run(command);
            assert_ne!(ended.code, Some(0), "{stand:?}: {command:?}: {ended:#?}");
            assert_names(&ended, &file, &format!("{stand:?}: {command:?}"));
        }
        restore(&file, None);
    }
}
