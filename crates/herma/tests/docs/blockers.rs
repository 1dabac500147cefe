//! `docs/blockers/`: one page for each blocker, from its own words and its row of the failure matrix.

use herma_core::{Blocker, Status};
use herma_ladder::failure_matrix::{FAILURE_MATRIX, Row, Setup, Way, World};

use crate::generated::{NOTICE, head, row};
use crate::tables::brought_about;

fn row_of(blocker: Blocker) -> &'static Row {
    FAILURE_MATRIX.iter().find(|row| row.blocker == blocker).unwrap()
}

/// The list of all of them.
pub(crate) fn list() -> String {
    let mut text = format!(
        "{NOTICE}# Blockers\n\nA blocker is a named reason why a run does not pass. A report lists all of them, each with what happened and what\n\
         to do next. [The failure matrix](../failure-matrix.md) lists the causes.\n"
    );
    for status in [Status::Fail, Status::Blocked] {
        text += &format!("\n## {}\n\n{}", status.as_str(), head(&["blocker", "what happened"]));
        for blocker in Blocker::ALL.iter().filter(|blocker| blocker.status() == status) {
            text += &row(&[&format!("[`{blocker}`]({blocker}.md)"), blocker.summary()]);
        }
    }
    text
}

/// The page of one.
pub(crate) fn page(blocker: Blocker) -> String {
    let Row { trigger, event, way, .. } = row_of(blocker);
    let status = blocker.status();
    // Such a run was a pass; what is refused is its acceptance.
    let command = if blocker == Blocker::MissingOutcome { "herma accept" } else { "herma run" };
    let mut text = format!("{NOTICE}# {blocker}\n\n{}\n\n", blocker.summary());
    text += &format!(
        "{}{}{}{}",
        row(&["", ""]),
        row(&["---", "---"]),
        row(&["status", status.as_str()]),
        row(&[&format!("exit code of `{command}`"), &format!("[{}](../exit-codes.md)", status.exit_code())])
    );
    text += &row(&["event that shows it", &format!("[`{event}`](../evidence.md#events)")]);
    text += &format!("\n## What to do next\n\n{}\n", blocker.next_step());
    text += &format!("\n## Example\n\nCause: {trigger}.\n");
    match way {
        Way::NotYet(what) => {
            text +=
                &format!("\nThis version cannot produce it: it needs {what}, which is not available yet.\n");
        }
        Way::Run(setup) => match example(setup) {
            Some(example) => text += &transcript(blocker, &example),
            None => text += &format!("\nThe tests produce it with {}.\n", brought_about(way)),
        },
    }
    text += "\nAll blockers: [the list](README.md), [the failure matrix](../failure-matrix.md).\n";
    text
}

/// The commands with which a reader sees a blocker.
struct Example {
    /// The contract to write, where no built-in one does.
    contract: Option<String>,
    /// The commands before.
    before: Vec<String>,
    /// The command that shows it.
    command: String,
}

const MAKE_REPOSITORY: &str = "git init --quiet shop && echo hello > shop/greeting.txt && git -C shop add . \
                               && git -C shop commit --quiet -m start";

/// The commands that show it, where a few commands do.
fn example(setup: &Setup) -> Option<Example> {
    let mut example = Example { contract: None, before: Vec::new(), command: "herma".to_owned() };
    match setup.world {
        World::Sound => {}
        World::Repository => {
            example.before.push(MAKE_REPOSITORY.to_owned());
            example.contract = Some(contract(REPOSITORY_TERMS, setup.terms));
        }
        World::DirtyRepository => {
            example.before.extend([MAKE_REPOSITORY, "echo changed >> shop/greeting.txt"].map(str::to_owned));
            example.contract = Some(contract(REPOSITORY_TERMS, setup.terms));
        }
        World::NoBubblewrap => {
            example.before.push("mkdir bin && ln -s \"$(command -v git)\" bin/git".to_owned());
            example.command = format!("env PATH=\"$PWD/bin\" \"$(command -v {})\"", example.command);
        }
        // These need another user, people or an engine that was let in: more than a few commands.
        World::ForeignRepository
        | World::HomeInToolchain
        | World::InsideRun
        | World::Denied
        | World::ExpiredApproval
        | World::UsedApproval
        | World::OtherProgram
        | World::OtherIdentity
        | World::Model
        | World::ReasoningModel
        | World::NoOutcome => return None,
    }
    if !setup.terms.is_empty() && example.contract.is_none() {
        example.contract = Some(contract(FIXTURE_TERMS, setup.terms));
    }
    if let Some(fault) = setup.fault {
        example.command = format!("HERMA_FAULT={fault} {}", example.command);
    }
    example.command +=
        if example.contract.is_some() { " run contract.md" } else { " run fixture:string-slugify" };
    // A script that meddles with the target needs to be told where that is.
    if setup.script.contains("{target}") {
        let script = setup.script.replace("{target}", "$PWD/shop").replace('"', "\\\"");
        example.before.push(format!("echo \"{script}\" > meddle.yaml"));
        example.command += " --script meddle.yaml";
    } else if setup.script != "fix" {
        example.command += &format!(" --script {}", setup.script);
    } else if example.contract.as_ref().is_some_and(|contract| contract.contains("target: { repo:")) {
        // A repository has no script of its own; here the engine is not started anyway.
        example.before.push("echo 'steps: []' > nothing.yaml".to_owned());
        example.command += " --script nothing.yaml";
    }
    if setup.engine != "fake" {
        example.command += &format!(" --engine {}", setup.engine);
    }
    Some(example)
}

const FIXTURE_TERMS: &[(&str, &str)] = &[
    ("id", "trim-slug"),
    ("title", "slugify keeps outer and repeated whitespace"),
    ("target", "{ fixture: string-slugify }"),
    ("stage", "2"),
    ("allowed_paths", "[slugify.sh]"),
    ("verify", "[sh tests/slugify_test.sh]"),
];

const REPOSITORY_TERMS: &[(&str, &str)] = &[
    ("id", "trim-slug"),
    ("title", "the greeting is not friendly"),
    ("target", "{ repo: ./shop }"),
    ("stage", "3"),
    ("allowed_paths", "[greeting.txt]"),
    ("verify", "[test -s greeting.txt]"),
    ("destination", "host"),
];

/// A contract of these terms, where `changed` replaces or adds some.
fn contract(terms: &[(&str, &str)], changed: &[(&str, &str)]) -> String {
    let mut text = "---\n".to_owned();
    for (key, value) in terms {
        let value = changed.iter().find(|(other, _)| other == key).map_or(*value, |(_, value)| *value);
        text += &format!("{key}: {value}\n");
    }
    for (key, value) in changed.iter().filter(|(key, _)| !terms.iter().any(|(known, _)| known == key)) {
        text += &format!("{key}: {value}\n");
    }
    text + "---\nMake it right.\n"
}

/// A transcript of it, which `transcripts.rs` runs.
fn transcript(blocker: Blocker, example: &Example) -> String {
    let mut text = String::new();
    if let Some(contract) = &example.contract {
        text += &format!("\n```markdown file=contract.md\n{contract}```\n");
    }
    text += "\n```console\n";
    for command in &example.before {
        text += &format!("$ {command}\n");
    }
    text += &format!("$ {}\n...\n", example.command);
    let status = blocker.status();
    if blocker == Blocker::Interrupted {
        text += "[exit 137]\n$ herma runs --all\n...\n";
        text += "[SHORT]  blocked  trim-slug                fake     [TIME] ...\n```\n";
        return text;
    }
    // The next step can depend on the finding, so only the name is the same each time.
    text += &format!("{}  trim-slug  [RUN]\n...\n  {blocker}  ...\n    next: ...\n...\n", status.as_str());
    text += "  evidence /home/you/.local/state/herma/runs/[RUN]/bundle\n";
    if blocker == Blocker::ApprovalVoid {
        text += "next: ask for an approval with ...\n";
    }
    text + &format!("[exit {}]\n```\n", status.exit_code())
}
