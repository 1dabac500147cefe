//! `herma init`: a first contract for a repository, filled in with what the repository says about its tests.

use herma_api::make_last_component;
use herma_core::contract::{FirstContract, ModelChoice, Target, first_contract};
use herma_core::environment::EnvironmentDefinition;
use herma_environments::detect::{RepositoryFiles, detect};

use crate::args;
use crate::commands::Ended;
use crate::commands::contract::{write_new, written};
use crate::failure::Failure;
use crate::screen::{Screen, safe_line};

pub(crate) fn init(args: &args::Init, screen: &Screen) -> Ended {
    if !args.directory.join(".git").exists() {
        return Err(Failure::bad_input(format!("{} is not a git repository", args.directory.display()))
            .hint("run `herma init` at the top of a repository, or `git init` first"));
    }
    // `./` in front of a path only makes it longer.
    let below = |name: &str| args.directory.strip_prefix(".").unwrap_or(&args.directory).join(name);
    let contracts = below(".herma/contracts");
    for dir in [".herma", ".herma/contracts"].map(below) {
        if dir.is_symlink() {
            return Err(Failure::bad_input(format!("{} is a symbolic link", dir.display()))
                .hint("remove it: herma writes contracts inside the repository only"));
        }
        make_last_component("the directory", &dir, 0o777)?;
    }
    let file = contracts.join(format!("{}.md", args.id));
    let repo = "../..".parse().map_err(Failure::internal)?;
    let otherwise =
        format!("edit it, or write another with `herma init {} --id NAME`", args.directory.display());
    let files = RepositoryFiles::list(&args.directory).map_err(|e| {
        Failure::bad_input(format!("the files of {} cannot be listed: {e}", args.directory.display()))
    })?;
    let proposal = detect(&files);
    let is_empty = proposal.definition == EnvironmentDefinition::default();
    let model = args.model.as_ref().map(|model| ModelChoice {
        provider: model.provider.to_string(),
        model: model.model.to_string(),
        fallback: Vec::new(),
        auxiliary: Vec::new(),
    });
    let found = FirstContract {
        title: args.title.as_deref(),
        brief: args.brief.as_deref(),
        model: model.as_ref(),
        allowed_paths: &proposal.allowed_paths,
        verify: &proposal.verify,
        environment: (!is_empty).then_some(&proposal.definition),
    };
    let target = Target::Repo { repo, base: None };
    write_new(&file, &first_contract(&args.id, &target, &found), &otherwise)?;
    if !screen.is_json() {
        for reason in &proposal.reasons {
            screen.line(format_args!("found: {}", safe_line(reason)));
        }
        for question in &proposal.questions {
            screen.line(format_args!("look at: {}", safe_line(question)));
        }
    }
    let shown = file.display();
    let fill_in = match (&args.title, &args.brief) {
        (Some(_), Some(_)) => "read it",
        _ => "write the title and the task into it",
    };
    let next_step = format!(
        "{fill_in}. `herma run {shown} --dry-run` then builds the environment and runs the tests on the base; `herma run {shown} \
         --engine NAME` starts an agent, which needs `model` in the contract"
    );
    written(&file, next_step, screen)
}
