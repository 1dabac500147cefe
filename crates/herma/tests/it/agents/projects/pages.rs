//! The pages below `docs/ecosystems`: their commands are run one after another, with a real agent and the registries.

use std::fs;
use std::time::Instant;

use super::check;
use super::source::person;
use super::table::Project;
use crate::console::{run_command, shown};
use crate::filters::Filters;
use crate::kit::{Ended, HERMA, Herma};
use crate::pages;

/// Runs the commands of a page, which make one run, on this project.
pub(super) fn plays(herma: &Herma, name: &str, project: &Project) {
    let page = pages::named(&format!("docs/ecosystems/{name}.md"));
    let dir = herma.at(&format!("page-{name}"));
    fs::create_dir(&dir).unwrap();
    let mut variables = person(herma);
    let mut path = std::ffi::OsString::from(std::path::Path::new(HERMA).parent().unwrap());
    path.push(":");
    path.push(&variables[std::ffi::OsStr::new("PATH")]);
    variables.insert("PATH".into(), path);
    let filters = Filters::new();
    let began = Instant::now();
    let finished = herma.finished_by(|| {
        for block in page.blocks() {
            if let Some(file) = &block.file {
                fs::write(dir.join(file), &block.text).unwrap();
            }
            for shown in shown(&block) {
                let ended = run_command(&shown.command, &dir, &variables);
                let checked = shown.check(ended, &dir, &filters);
                checked
                    .unwrap_or_else(|why| panic!("{}:{}: `{}`: {why}", page.path, shown.line, shown.command));
            }
        }
        Ended { code: Some(0), signal: None, stdout: String::new(), stderr: String::new() }
    });
    check(project, &finished, &dir.join(project.name), began.elapsed());
    fs::remove_dir_all(dir).unwrap();
}
