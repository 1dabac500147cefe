//! An agent that wants out: every attempt of one table, made as the agent of a real run in each destination. None gets out,
//! and the bundle holds a record of each.

mod attempts;
mod bombs;
mod docker;
mod poisonings;
mod world;

use std::collections::BTreeMap;
use std::path::Path;

use herma_core::contract::Action;
use herma_core::{Blocker, RunId};
use herma_destination::Confinement;
use herma_evidence::layout;
use serde_json::{Value, json};

use self::attempts::{Attempt, OnHost, Record, program, table};
use self::world::{User, World};
use crate::egress::decisions;
use crate::kit::{Finished, processes_of, until};

/// The file that the fixture's own script writes.
const FIXED: &str =
    "slugify() {\n    printf '%s' \"$1\" | tr 'A-Z' 'a-z' | tr -cs 'a-z0-9' '-' | sed 's/^-//; s/-$//'\n}\n";

/// A script that does its work and then runs this.
fn fix_and_run(program: &str, command: &str) -> Value {
    json!({ "steps": [
        { "write": { "path": "slugify.sh", "text": FIXED } },
        { "write": { "path": "escape.py", "text": program } },
        { "shell": { "command": command, "must": true } },
        { "delete": "escape.py" },
    ] })
}

/// Makes the attempts; gives what each said.
fn make(world: &World, attempts: &[&Attempt], place: &str, docker: Option<&Path>) -> (RunId, Finished, Said) {
    let script = fix_and_run(&program(attempts, &world.described(docker)), "python3 escape.py");
    let (run, finished) = world.play(place, &script);
    let said = finished.engine_said();
    let told = said.lines().filter_map(|line| line.strip_prefix("attempt ")?.split_once(' '));
    let told = told.map(|(name, said)| (name.to_owned(), said.to_owned())).collect();
    (run, finished, told)
}

type Said = BTreeMap<String, String>;

/// Makes all attempts; none gets out, each is recorded, nothing outside was touched, nothing is left.
fn nothing_gets_out(mut world: World, place: &str, docker: Option<&Path>) {
    let table = table();
    let attempts: Vec<&Attempt> = table.attempts.iter().filter(|attempt| attempt.is_for(place)).collect();
    let (run, finished, said) = make(&world, &attempts, place, docker);
    let mut wrong = Vec::new();
    for attempt in attempts {
        let said = said.get(&attempt.name).map_or("nothing at all", String::as_str);
        if !attempt.is_refusal(said) {
            wrong.push(format!("{} said `{said}`, expected {:?}", attempt.name, attempt.refused));
        }
        if !is_recorded(&attempt.record, &finished, &world) {
            wrong.push(format!("{} is not recorded: {}", attempt.name, attempt.record));
        }
    }
    assert!(wrong.is_empty(), "{place}:\n{}\n{:#?}", wrong.join("\n"), finished.report.blockers);
    // It did its work besides. Of what it tried only the push is an action that every contract forbids.
    finished.assert_only(Blocker::ForbiddenAction);
    assert_eq!(finished.report.forbidden_actions_attempted, [Action::Push]);
    assert_eq!(finished.changed(), ["slugify.sh"]);
    assert_eq!(world.touched(run), [""; 0]);
    assert_nothing_is_left(run);
}

fn is_recorded(record: &Record, run: &Finished, world: &World) -> bool {
    let confinement: Confinement = serde_json::from_slice(&run.bundle.read(layout::CONFINEMENT)).unwrap();
    match record {
        Record::Probe(name) => confinement.probes.iter().any(|probe| probe.name == *name && probe.denied),
        Record::Limit(name) => confinement.limits.iter().any(|held| held.name.as_str() == name),
        Record::Egress(host, port) => {
            // The port of the listener is another one in every run.
            let port = port.parse().unwrap_or_else(|_| u64::from(world.port()));
            decisions(&run.bundle)
                .iter()
                .any(|(to, at, reason)| to == host && *at == port && !reason.is_empty())
        }
        Record::Freshness => run.report.freshness.passed,
        Record::Log => run.bundle.dir.join(layout::ENGINE_STDOUT).is_file(),
    }
}

/// No process and no group of the run is there any more.
fn assert_nothing_is_left(run: RunId) {
    until("every process of the run is gone", || processes_of(run).is_empty());
    assert_eq!(groups_of(run, Path::new("/sys/fs/cgroup"), 0), 0);
}

/// How many cgroups carry the run's name.
fn groups_of(run: RunId, place: &Path, depth: usize) -> usize {
    let Ok(entries) = std::fs::read_dir(place) else { return 0 };
    let dirs = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    dirs.map(|dir| {
        let named = dir.file_name().to_string_lossy().contains(&run.to_string());
        usize::from(named) + if depth < 8 { groups_of(run, &dir.path(), depth + 1) } else { 0 }
    })
    .sum()
}

#[test]
fn nothing_gets_out_of_the_sandbox() {
    nothing_gets_out(World::new(User::Own, |_| {}), "sandbox", None);
}

#[test]
fn nothing_gets_out_of_the_sandbox_of_a_normal_user() {
    nothing_gets_out(World::new(User::Nobody, |_| {}), "sandbox", None);
}

#[test]
fn without_confinement_the_same_attempts_get_out() {
    let mut world = World::new(User::Own, |_| {});
    let root = rustix::process::geteuid().is_root();
    let table = table();
    let gets_out = |attempt: &&Attempt| attempt.host == OnHost::Any || (root && attempt.host == OnHost::Root);
    let attempts: Vec<&Attempt> = table.attempts.iter().filter(gets_out).collect();
    assert!(attempts.len() >= if root { 60 } else { 30 }, "{}", attempts.len());
    let (run, _, said) = make(&world, &attempts, "host", None);
    let kept_in: Vec<_> = attempts
        .iter()
        .map(|attempt| (&attempt.name, said.get(&attempt.name).cloned().unwrap_or_default()))
        .filter(|(_, said)| !said.starts_with("got-out "))
        .collect();
    assert!(kept_in.is_empty(), "these attempts are none: {kept_in:#?}");
    // And what looks for traces finds them.
    let expected = [
        "the secret left",
        "the user's home",
        "the repository",
        "herma's home",
        "the shared place",
        "the port",
        "the port by IPv6",
        "the port for datagrams",
        "the socket",
        "the admin socket",
        "the abstract socket",
        "the process, by a signal",
    ];
    assert_eq!(world.touched(run), expected);
}

#[test]
fn the_table_has_many_attempts_each_with_a_name_of_its_own() {
    let table = table();
    let names = table.attempts.iter().map(|attempt| &attempt.name);
    let names = names.chain(table.bombs.iter().map(|bomb| &bomb.name));
    let mut names: Vec<&String> = names.chain(table.poisons.iter().map(|poison| &poison.name)).collect();
    let all = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all);
    assert!(all >= 60, "{all}");
}
