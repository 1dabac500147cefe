//! The tables of the code: exit codes, environment, fixtures, failure matrix, schemas, settings, steps of `fake`.

use herma_cli::environment::VARIABLES;
use herma_cli::schemas::SCHEMAS;
use herma_core::Status;
use herma_dialect::endpoint::ENDPOINTS;
use herma_fixtures::all as all_fixtures;
use herma_harness::OperatorSettings;
use herma_ladder::failure_matrix::{FAILURE_MATRIX, Row, Setup, Way, World};

use crate::generated::{NOTICE, head, row};
use crate::schema::{Key, Schema};

/// The keys that requests may have, of `docs/router.md`.
pub(crate) fn request_keys() -> String {
    let listed = |keys: &[&str]| keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
    let mut text = head(&["API", "keys"]);
    for (endpoint, path) in ENDPOINTS {
        text += &row(&[&format!("`{path}`"), &listed(herma_dialect::request_keys(*endpoint))]);
    }
    text += &format!("\nNo configuration adds these: {}.\n", listed(herma_dialect::RESERVED));
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
        "success; `verify`: the bundle is valid; `doctor`: nothing required is missing; `admissions check`: everything \
         is admitted; `prove`: the stage is proven; `compare`: every lane ran and none is worse on a criterion that \
         decides; `watch`: every run passed; `matrix`: every row held; `health`: green; `summary check`: the summary holds",
    ]);
    text += &row(&[
        &status(Status::Fail),
        "fail: a check failed",
        "`verify`: a check failed or could not be made; `diff`: the patch differs from what was signed; `doctor`: \
         something required is missing; `admissions check`: something is not admitted; `prove`: a case did not end as \
         required; `compare`: a lane is worse, or could not run; `policy test`: a case is decided differently than expected; \
         `watch`: a run failed; `matrix`: a row did not hold; `health`: red; `summary check`: the summary does not hold",
    ]);
    text += &row(&[
        "`2`",
        "invalid usage or input; no run was created",
        "invalid usage or input; nothing was done",
    ]);
    text += &row(&[
        &status(Status::Blocked),
        "blocked: something could not be started or checked, or the run was cancelled",
        "`prove`: the stage could not be tried; `compare`: no lane could run; both: cancelled; `probe`: a probe was not \
         denied, or the destination is not ready; `approvals`, `accept` and `reject`: not possible in the current state, \
         and nothing was done; `watch`: a run was blocked; `matrix` and `health`: cancelled; `health`: not every check was made",
    ]);
    text += &row(&[
        "`4`",
        "internal or system error; a run with this code is never a pass, unless only herma's output could not be written",
        "internal or system error, such as a failure to write the output",
    ]);
    text += "\nCtrl-C (SIGINT), SIGTERM and SIGHUP cancel: herma ends the processes it started, closes the run as `blocked:\n\
             interrupted` with the name of the signal, and starts no further run. A second signal, more than half a second after\n\
             the first, ends herma at once, like `kill -9`. A signal that was ignored when herma started stays ignored, so\n\
             `nohup herma run ...` outlives its terminal.\n\n\
             After `kill -9` the shell shows 137. The next command that opens the installation, such as `herma runs`, closes the\n\
             run as `blocked: interrupted`.\n\n\
             [The failure matrix](failure-matrix.md) lists the exit code of every blocker.\n";
    text
}

/// `docs/environment.md`.
pub(crate) fn environment() -> String {
    let mut text = format!(
        "{NOTICE}# Environment\n\nherma reads these variables once, at start. Engines and verification commands see none of them, only\n\
         variables that herma sets. An empty variable counts as unset.\n\n{}",
        head(&["variable", "meaning"])
    );
    for variable in VARIABLES {
        text += &row(&[&format!("`{}`", variable.name), variable.what]);
    }
    text += "\n## herma's home\n\n\
             The [home](home.md) holds the keys that decide whom herma trusts. It must be a directory, or a link to one, that belongs\n\
             to the user who runs herma and that nobody else can read or write (mode 0700). herma refuses any other with exit\n\
             code 2 and prints the command that fixes it. A file system without owners and permissions, such as some shares of\n\
             containers, cannot be used.\n";
    text
}

/// `docs/fixtures.md`.
pub(crate) fn fixtures() -> String {
    let mut text = format!(
        "{NOTICE}# Fixtures\n\nSmall repositories with a bug and a test, built into the binary. `herma demo --fixture NAME` runs one with its\n\
         script `fix`; `herma run fixture:NAME --script SCRIPT` runs its contract with another [script](fake.md).\n\n{}",
        head(&["fixture", "property", "needs", "scripts"])
    );
    for fixture in all_fixtures() {
        let written = |chain| format!("`{}`", serde_json::to_value(chain).unwrap().as_str().unwrap());
        let needs: Vec<String> = fixture.toolchains.iter().map(written).collect();
        let needs = if needs.is_empty() { "`sh`".to_owned() } else { needs.join(" ") };
        let scripts: Vec<String> = fixture.scripts.iter().map(|(name, _)| format!("`{name}`")).collect();
        text += &row(&[&format!("`{}`", fixture.name), fixture.summary, &needs, &scripts.join(" ")]);
    }
    text +=
        "\nThe first line of each script in `crates/fixtures/data/<fixture>/scripts/` says what it is for.\n";
    text
}

/// `docs/failure-matrix.md`.
pub(crate) fn failure_matrix() -> String {
    let mut text = format!(
        "{NOTICE}# The failure matrix\n\nEvery reason why a run does not pass, and how the tests bring it about on the real binary. The table is\n\
         `crates/ladder/src/failure_matrix.rs`.\n\n{}",
        head(&["blocker", "status", "exit code", "cause", "event", "test setup"])
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
        World::Denied => Some("a denied approval"),
        World::ExpiredApproval => Some("an expired approval"),
        World::UsedApproval => Some("an approval that another run consumed"),
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
