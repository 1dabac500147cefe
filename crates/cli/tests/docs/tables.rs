//! The tables of the code: exit codes, environment, fixtures, failure matrix, schemas, settings, steps of `fake`.

use herma_cli::environment::VARIABLES;
use herma_cli::schemas::SCHEMAS;
use herma_core::Status;
use herma_fixtures::all as all_fixtures;
use herma_harness::OperatorSettings;
use herma_ladder::failure_matrix::{FAILURE_MATRIX, Row, Setup, Way, World};
use herma_router::dialect;
use herma_router::door::DOORS;

use crate::generated::{NOTICE, head, row};
use crate::schema::{Key, Schema};

/// The keys that requests may have, of `docs/router.md`.
pub(crate) fn request_keys() -> String {
    let listed = |keys: &[&str]| keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
    let mut text = head(&["API", "keys"]);
    for (door, path) in DOORS {
        text += &row(&[&format!("`{path}`"), &listed(dialect::request_keys(*door))]);
    }
    text += &format!("\nNo configuration adds these: {}.\n", listed(dialect::RESERVED));
    text
}

/// `docs/exit-codes.md`.
pub(crate) fn exit_codes() -> String {
    let status = |status: Status| format!("`{}`", status.exit_code());
    let mut text = format!(
        "{NOTICE}# Exit codes\n\n{}",
        head(&["code", "`herma run` and `herma demo`", "other commands"])
    );
    text += &row(&[
        &status(Status::Pass),
        "pass: every gate held and every check passed",
        "it worked; for `verify`: the bundle holds; for `doctor`: nothing that herma cannot do without is missing; \
         for `admissions check`: all that was asked for is admitted; for `prove`: the stage is proven; for `compare`: \
         every lane ran and none falls behind on a criterion that decides; for `watch`: every run passed",
    ]);
    text += &row(&[
        &status(Status::Fail),
        "fail: something was checked and found wrong",
        "`verify`: a check is broken or could not be made; `diff`: the patch is not what was signed; `doctor`: something that herma cannot do without is missing; `admissions check`: \
         something is not admitted; `prove`: a case did not end as it must; `compare`: a lane falls behind, or could not \
         run; `policy test`: a case is decided otherwise than it expects; `watch`: a run failed",
    ]);
    text += &row(&[
        "`2`",
        "usage or input is wrong; there is no run",
        "usage or input is wrong; nothing was done",
    ]);
    text += &row(&[
        &status(Status::Blocked),
        "blocked: something could not be started or could not be checked, or herma was told to end",
        "`prove`: the stage could not be tried; `compare`: no lane could run; both: herma was told to end; `probe`: something was not denied, or the \
         destination is not ready; `approvals`, `accept` and `reject`: what \
         it is about does not stand as it must for that, and nothing was done; `watch`: a run was blocked",
    ]);
    text += &row(&[
        "`4`",
        "something inside herma or around it does not work; if there is a run, it is never a pass, \
         unless only herma's output could not be written",
        "something inside herma or around it does not work, such as writing the output",
    ]);
    text += "\nCtrl-C (SIGINT), SIGTERM and SIGHUP tell herma to end. It ends what it started, closes the run as `blocked:\n\
             interrupted` with the name of the signal, and goes on with no other run. A second signal, more than half a second\n\
             after the first, ends herma at once, as `kill -9` does. One that was ignored when herma was started does not\n\
             count: `nohup herma run ...` outlives its terminal.\n\n\
             A run that herma did not live to end has no exit code of herma's own: the shell shows 137 after `kill -9`. The next\n\
             herma command that opens the installation closes it as `blocked: interrupted`; `herma runs` does.\n\n\
             [The failure matrix](failure-matrix.md) says which blocker leads to which code.\n";
    text
}

/// `docs/environment.md`.
pub(crate) fn environment() -> String {
    let mut text = format!(
        "{NOTICE}# Environment\n\nherma reads its environment once, in `crates/cli/src/environment.rs`. Nothing of it reaches an engine or a\n\
         verification command: those see only what herma sets for them. A variable that is set and empty counts as not set.\n\n{}",
        head(&["variable", "what it does"])
    );
    for variable in VARIABLES {
        text += &row(&[&format!("`{}`", variable.name), variable.what]);
    }
    text += "\n## herma's home\n\n\
             The home holds the keys that decide whom herma trusts, so it must be the user's own: a directory, or a link to one, that\n\
             belongs to the user who runs herma and that nobody else can read or write. herma refuses any other with exit code 2, changes\n\
             nothing, and says which command mends it. A file system without owners and\n\
             permissions, as some that are shared with containers, is no place for it.\n";
    text
}

/// `docs/fixtures.md`.
pub(crate) fn fixtures() -> String {
    let mut text = format!(
        "{NOTICE}# Fixtures\n\nSmall repositories with a bug and a test, built into the binary. `herma demo --fixture NAME` runs one with its\n\
         script `fix`; `herma run fixture:NAME --script SCRIPT` runs its contract with any of its scripts. [`fake`](fake.md)\n\
         says what a script is.\n\n{}",
        head(&["fixture", "what is special", "needs", "scripts"])
    );
    for fixture in all_fixtures() {
        let written = |chain| format!("`{}`", serde_json::to_value(chain).unwrap().as_str().unwrap());
        let needs: Vec<String> = fixture.toolchains.iter().map(written).collect();
        let needs = if needs.is_empty() { "`sh`".to_owned() } else { needs.join(" ") };
        let scripts: Vec<String> = fixture.scripts.iter().map(|(name, _)| format!("`{name}`")).collect();
        text += &row(&[&format!("`{}`", fixture.name), fixture.summary, &needs, &scripts.join(" ")]);
    }
    text +=
        "\nWhat each script is for stands in its first line, in `crates/fixtures/data/<fixture>/scripts/`.\n";
    text
}

/// `docs/failure-matrix.md`.
pub(crate) fn failure_matrix() -> String {
    let mut text = format!(
        "{NOTICE}# The failure matrix\n\nEvery way in which a run is not a pass. The table stands in `crates/ladder/src/failure_matrix.rs`; tests run each\n\
         row on the real binary, unless it needs something that this version does not have.\n\n{}",
        head(&["blocker", "status", "exit code", "comes about when", "event", "brought about by"])
    );
    for Row { blocker, trigger, event, way } in FAILURE_MATRIX {
        let status = blocker.status();
        text += &row(&[
            &format!("[`{blocker}`](blockers/{blocker}.md)"),
            status.as_str(),
            &status.exit_code().to_string(),
            trigger,
            &format!("`{event}`"),
            &brought_about(way),
        ]);
    }
    text
}

/// How the tests bring a row about, in words.
pub(crate) fn brought_about(way: &Way) -> String {
    let Setup { script, terms, engine, fault, world } = match way {
        Way::NotYet(what) => return format!("not yet: needs {what}"),
        Way::Run(setup) => setup,
    };
    let mut ways = Vec::new();
    if *script != "fix" {
        let is_name = !script.contains(' ');
        ways.push(if is_name { format!("script `{script}`") } else { "a script that does it".to_owned() });
    }
    ways.extend(terms.iter().map(|(key, value)| format!("`{key}: {value}`")));
    if *engine != "fake" {
        ways.push(format!("`--engine {engine}`"));
    }
    ways.extend(fault.iter().map(|fault| format!("`HERMA_FAULT={fault}`")));
    let around = match world {
        World::Sound => None,
        World::Repository => Some("a repository as target, on the host"),
        World::DirtyRepository => Some("a dirty repository as target"),
        World::ForeignRepository => Some("a repository of another user as target"),
        World::NoBubblewrap => Some("a PATH without bubblewrap"),
        World::HomeInToolchain => Some("a home inside a mounted toolchain"),
        World::InsideRun => Some("a herma inside a sandbox"),
        World::Denied => Some("a person who says no"),
        World::ExpiredApproval => Some("an approval that was granted and is over"),
        World::UsedApproval => Some("an approval that another run used"),
        World::OtherProgram => Some("a program that was changed after its admission"),
        World::OtherIdentity => Some("an admission that names another identity"),
        World::Model => Some("a scripted upstream in `router.toml`, and its model admitted"),
        World::ReasoningModel => Some("a scripted upstream that answers with reasoning only"),
        World::NoOutcome => Some("`outcome_within: 1ms` in `settings.yaml`"),
    };
    ways.extend(around.map(str::to_owned));
    ways.join(", ")
}

/// `docs/schemas/README.md`.
pub(crate) fn schemas() -> String {
    let mut text = format!(
        "{NOTICE}# Schemas\n\nJSON Schemas of everything that herma writes. `herma schema NAME` prints the same. Every value names its\n\
         version in `schema`; a line of `events.jsonl` and `trace.jsonl` is versioned by the report beside it.\n\n{}",
        head(&["schema", "what it describes"])
    );
    for schema in SCHEMAS {
        text += &row(&[&format!("[{0}]({0}.json)", schema.name), schema.what]);
    }
    text
}

/// The keys of `settings.yaml`.
pub(crate) fn settings() -> String {
    let mut text = head(&["key", "type", "default", "meaning"]);
    for Key { name, kind, default, what } in Schema::of(&schemars::schema_for!(OperatorSettings)).keys() {
        text += &row(&[&format!("`{name}`"), &kind, &default.unwrap(), &what]);
    }
    text
}

/// The steps of a script, from the comments of the type itself.
pub(crate) fn fake_steps() -> String {
    let source =
        std::fs::read_to_string(crate::pages::top().join("crates/engines/src/fake/script.rs")).unwrap();
    let body = source.split_once("pub enum Step {").unwrap().1.split_once("\n}").unwrap().0;
    let mut text = head(&["step", "what it does"]);
    let mut comment = String::new();
    for line in body.lines().map(str::trim) {
        match line.strip_prefix("///") {
            Some(more) => comment += more,
            None if !comment.is_empty() => {
                let comment = std::mem::take(&mut comment);
                // The first code span that is followed by a colon ends the form; what follows is the meaning.
                let (form, what) = comment.trim().split_once("`: ").unwrap();
                text += &row(&[&format!("{form}`"), what]);
            }
            None => {}
        }
    }
    text
}
