//! One row of the matrix, from its conditions to its evidence; and the cases that must pass.

use std::ffi::OsString;
use std::path::Path;

use herma_core::matrix::{MatrixCase, MatrixCaseName, MatrixRow};
use herma_core::{Blocker, Status};

use super::conditions::{RunArguments, act, model, prepare};
use super::evidence::{Expected, Seen, check};
use super::picture::picture;
use super::site::{Site, because};
use crate::failure_matrix::{Row, Setup, Way, World};

/// A run that is quiet for a while and then does the task, well within its limits.
const DELAYED: &str = r#"
steps:
  - say: this takes a while
  - sleep: 1500ms
  - write:
      path: slugify.sh
      text: |
        slugify() {
            printf '%s' "$1" | tr 'A-Z' 'a-z' | tr -cs 'a-z0-9' '-' | sed 's/^-//; s/-$//'
        }
"#;

/// A run that asks its model once and does the task.
const ASKS_ONCE: &str = r#"
steps:
  - ask: { prompt: what do you think }
  - write:
      path: slugify.sh
      text: |
        slugify() {
            printf '%s' "$1" | tr 'A-Z' 'a-z' | tr -cs 'a-z0-9' '-' | sed 's/^-//; s/-$//'
        }
"#;

/// The answers of the bridge.
const ANSWERS: &str = "name: answers\nrepeat: true\nmodels: [m]\nturns:\n  - say: I am ready.\n    usage: { input: 7, output: 5 }\n";

/// The site of a row, or why it could not be made.
pub(super) type MadeSite<'a> = Result<&'a mut Site, &'a mut String>;

/// Brings a row about and judges the evidence that it leaves.
pub(super) fn run_row(row: &Row, site: MadeSite<'_>) -> MatrixRow {
    let (seen, problems) = match row.way {
        Way::NotYet(needs) => (Seen::default(), vec![format!("it needs {needs}")]),
        Way::Run(setup) => site
            .map_err(|why| why.clone())
            .and_then(|site| bring_about(row.blocker, &setup, site, &Expected::Row(row)))
            .unwrap_or_else(|why| (Seen::default(), vec![why])),
    };
    MatrixRow {
        blocker: row.blocker,
        trigger: row.trigger.to_owned(),
        event: row.event,
        expected_status: expected_status(row.blocker),
        status: seen.status,
        exit_code: seen.exit_code,
        held: problems.is_empty(),
        problems,
    }
}

/// The verdict of a row's run. The outcome is missing only after the run, which is a pass.
pub(super) fn expected_status(blocker: Blocker) -> Status {
    if blocker == Blocker::MissingOutcome { Status::Pass } else { blocker.status() }
}

/// Runs a case that must pass.
pub(super) fn run_case(name: MatrixCaseName, site: MadeSite<'_>) -> MatrixCase {
    let sound = Setup { script: "fix", terms: &[], engine: "fake", fault: None, world: World::Sound };
    let tried = site.map_err(|why| why.clone()).and_then(|site| {
        let setup = match name {
            MatrixCaseName::NoFault => sound,
            MatrixCaseName::DelayedContent => Setup { script: DELAYED, ..sound },
            MatrixCaseName::Bridge => {
                model(site, ANSWERS, "openai", Some("scripted"))?;
                Setup { script: ASKS_ONCE, terms: &[("model", "{ provider: openai, model: m }")], ..sound }
            }
        };
        let bridge = (name == MatrixCaseName::Bridge).then_some(("openai", "scripted"));
        // The blocker only names the contract.
        bring_about(Blocker::NoDiff, &setup, site, &Expected::Pass { bridge })
    });
    let problems = tried.map_or_else(|why| vec![why], |(_, problems)| problems);
    MatrixCase { name, held: problems.is_empty(), problems }
}

fn bring_about(
    blocker: Blocker,
    setup: &Setup,
    site: &mut Site,
    expected: &Expected<'_>,
) -> Result<(Seen, Vec<String>), String> {
    let added = prepare(site, setup.world)?;
    let id = format!("matrix-{}", blocker.as_str().replace('_', "-"));
    let mut terms: Vec<(&str, &str)> = vec![("id", &id)];
    terms.extend(setup.terms);
    terms.extend(added.iter().map(|(key, value)| (*key, value.as_str())));
    let (contract, contract_text) = site.contract(&terms)?;
    let (script, script_text) = site.script(setup.script)?;
    let contract_dir = contract.parent().unwrap_or(Path::new("/"));
    act(
        site,
        setup.world,
        &RunArguments { contract_text: &contract_text, contract_dir, script: &script_text },
    )?;
    let args: [OsString; 7] = [
        "run".into(),
        contract.into_os_string(),
        "--script".into(),
        script.into_os_string(),
        "--engine".into(),
        setup.engine.into(),
        "--json".into(),
    ];
    if setup.world == World::UsedApproval {
        let first = site.herma(&args, None)?;
        if !first.status.success() {
            return Err("the run that uses the approval first did not pass".to_owned());
        }
    }
    let (repository, earlier) = (site.at("repo"), site.runs());
    let before = picture(&repository).map_err(because("read the target"))?;
    let ended = site.herma(&args, setup.fault)?;
    let after = picture(&repository).map_err(because("read the target"))?;
    let mut problems = Vec::new();
    let mut seen = check(site, expected, &earlier, &mut problems)?;
    seen.exit_code = ended.status.code();
    let wanted = match blocker {
        // The fault kills herma itself.
        Blocker::Interrupted => None,
        _ => Some(i32::from(expected.status().exit_code())),
    };
    if seen.exit_code != wanted {
        problems.push(format!("the exit code is {}, not {}", code(seen.exit_code), code(wanted)));
    }
    let lands = setup.world == World::NoOutcome;
    let is_changed_by_the_row = matches!(blocker, Blocker::DirtyEndingTree | Blocker::SourceMutated);
    if before != after && !lands && !is_changed_by_the_row {
        problems.push("the target changed".to_owned());
    }
    Ok((seen, problems))
}

fn code(code: Option<i32>) -> String {
    code.map_or_else(|| "none, because a signal ended it".to_owned(), |code| code.to_string())
}
