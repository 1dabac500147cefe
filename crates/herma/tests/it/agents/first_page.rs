//! The page for newcomers: its commands are run at a terminal and by a shell, with a real agent.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use herma_engines::claude;
use regex::Regex;

use super::home::make_removable;
use super::projects::person;
use crate::console::{run_command, shown};
use crate::filters::Filters;
use crate::kit::{HERMA, Herma};
use crate::pages;

const PAGE: &str = "docs/start.md";
const EXAMPLE: &str = "make-example";

/// The model's script for the task of the page.
const SCRIPT: &str = r#"
name: task
models: [claude-sonnet-4-5]
match: { marker: leaves hyphens at both ends }
turns:
  - say: I look at the function first.
    call: { read: src/slug.js }
  - call:
      write:
        path: src/slug.js
        text: |
          export const slug = (title) => title.trim().toLowerCase().replaceAll(" ", "-");
  - call: { read: test/slug.test.js }
  - call:
      write:
        path: test/slug.test.js
        text: |
          import assert from "node:assert/strict";
          import { test } from "node:test";
          import { slug } from "../src/slug.js";

          test("words are joined by hyphens", () => assert.equal(slug("Hello World"), "hello-world"));

          test("no hyphen is left at an end", () => {
            assert.equal(slug(" Hello "), "hello");
          });
  - say: slug() now trims the title, and a test covers it.
"#;
const PRESENT: &str = "name: present\nmodels: [claude-sonnet-4-5]\nrepeat: true\nturns: [say: I am there.]\n";
const ROUTER: &str =
    "[upstreams.anthropic]\nprovider = \"scripted\"\nscripts = [\"task.yaml\", \"present.yaml\"]\n";

#[test]
fn the_page_for_newcomers_shows_what_happens() {
    let mut herma = Herma::new();
    herma.file("home/task.yaml", SCRIPT);
    herma.file("home/present.yaml", PRESENT);
    herma.file("home/router.toml", ROUTER);
    let root = herma.at("page");
    let you = root.join("home/you");
    fs::create_dir_all(&you).unwrap();
    let mut variables = person(&herma);
    let mut path = OsString::from(Path::new(HERMA).parent().unwrap());
    path.push(":");
    path.push(&variables[std::ffi::OsStr::new("PATH")]);
    variables.insert("PATH".into(), path);
    for (name, value) in &variables {
        herma.set(name.to_str().unwrap(), value);
    }
    herma.set("USER", "you");
    herma.set("NO_COLOR", "1");
    let page = pages::named(PAGE);
    let filters = Filters::new();
    let mut at_terminal = 0;
    for block in page.blocks() {
        if block.file.as_deref() == Some(EXAMPLE) {
            let (output, code) = run_command(&block.text, &you, &variables);
            assert_eq!(code, 0, "{output}");
        }
        for shown in shown(&block) {
            let directory = you.join("slug");
            let ended = match shown.command.strip_prefix("herma quickstart ") {
                Some(engine) => {
                    at_terminal += 1;
                    set_up(&herma, &directory, engine)
                }
                None => run_command(&shown.command, &directory, &variables),
            };
            let checked = shown.check(ended, &root, &filters);
            checked.unwrap_or_else(|why| panic!("{PAGE}:{}: `{}`: {why}", shown.line, shown.command));
        }
    }
    assert_eq!(at_terminal, 1);
    let tree = herma.home().join("installed");
    fs::read_dir(tree).unwrap().for_each(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            make_removable(&path);
        }
    });
}

/// The set-up at a terminal, with every question answered.
fn set_up(herma: &Herma, directory: &Path, engine: &str) -> (String, i32) {
    assert_eq!(engine, claude::NAME);
    let mut args = vec!["quickstart", engine];
    if needs_own_network(herma) {
        args.push("--own-network");
    }
    let mut at = herma.at_terminal(directory, &args);
    at.answer("New passphrase for you", "correct horse");
    at.answer("Repeat passphrase:", "correct horse");
    at.wait_patiently_for("Type the code ");
    let code = at.shown().rsplit("Type the code ").next().unwrap()[..6].to_owned();
    at.answer(" to continue", &code);
    let ended = at.end();
    // A moving line is written over itself.
    let control = Regex::new("\u{1b}\\[[0-9;?]*[A-Za-z]").unwrap();
    let lines = ended.stdout.lines().map(|line| line.rsplit('\r').next().unwrap_or_default());
    let text: String = lines.map(|line| format!("{}\n", control.replace_all(line, ""))).collect();
    (text, ended.code.unwrap())
}

/// Whether the registry of this machine is a mirror in a network of its own.
fn needs_own_network(herma: &Herma) -> bool {
    let mut other = herma.twin();
    other.set_home(&herma.at("other-home"));
    let tried = other.run_patiently(&["engines", "install", claude::NAME, "--json"]);
    if let Ok(trees) = fs::read_dir(herma.at("other-home/installed")) {
        trees.for_each(|tree| make_removable(&tree.unwrap().path()));
    }
    tried.stdout.contains("private_address")
}
