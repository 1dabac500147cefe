//! `herma init`: a first contract for a repository.

use herma_api::make_last_component;
use herma_core::contract::{Target, template};

use crate::args;
use crate::commands::Ended;
use crate::commands::contract::{write_new, written};
use crate::failure::Failure;
use crate::screen::Screen;

pub(crate) fn init(args: &args::Init, screen: &Screen) -> Ended {
    if !args.directory.join(".git").exists() {
        return Err(Failure::bad_input(format!("{} is not a git repository", args.directory.display()))
            .hint("run `herma init` at the top of a repository, or `git init` first"));
    }
    let contracts = args.directory.join(".herma/contracts");
    for dir in [".herma", ".herma/contracts"].map(|name| args.directory.join(name)) {
        if dir.is_symlink() {
            return Err(Failure::bad_input(format!("{} is a symbolic link", dir.display()))
                .hint("remove it: herma writes contracts inside the repository only"));
        }
        make_last_component("the directory", &dir, 0o777)?;
    }
    let file = contracts.join("first.md");
    let id = "first".parse().map_err(Failure::internal)?;
    let repo = "../..".parse().map_err(Failure::internal)?;
    let otherwise = format!(
        "edit it, or write another with `herma contract new ID --repo ../.. --output {}/ID.md`",
        contracts.display()
    );
    write_new(&file, &template(&id, &Target::Repo { repo, base: None }), &otherwise)?;
    written(&file, "commit it, since a run needs a clean tree, ", screen)
}
