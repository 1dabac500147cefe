//! The fenced blocks of a page. Each kind of block is checked in its own way, so that nothing unexecuted hides.

use std::path::Path;

use herma_core::Contract;
use herma_core::defaults::PlacedNarrowing;
use herma_core::environment::DefinitionRules;
use herma_core::policy_case::PolicyCases;
use herma_engines::fake::Script;
use herma_harness::OperatorSettings;
use herma_router::config::Config;
use herma_scripted::Scripted;

use crate::console::Block;
use crate::pages;
use crate::transcripts::check_shell;

#[test]
fn every_block_is_of_a_kind_that_is_checked() {
    let mut wrong = Vec::new();
    for page in pages::all() {
        for block in page.blocks() {
            if let Err(why) = check(&block) {
                wrong.push(format!("{}:{}: {why}", page.path, block.line));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Why the block is not permitted there.
fn check(block: &Block) -> Result<(), String> {
    let shown = |e: &dyn std::fmt::Display| e.to_string();
    match block.language.as_str() {
        // Run by `transcripts.rs`, and compiled by `tests/it/agents/adding.rs`, which follows its page.
        "console" | "rust" => Ok(()),
        "markdown" => Contract::parse(block.text.as_bytes()).map(drop).map_err(|e| shown(&e)),
        // A script of the engine `fake` has steps, one of the router's upstream `scripted` has turns.
        "yaml" if block.text.lines().any(|line| line.starts_with("turns:")) => {
            Scripted::parse(block.text.as_bytes()).map(drop).map_err(|e| shown(&e))
        }
        "yaml" if block.text.starts_with("cases:") => {
            PolicyCases::parse(block.text.as_bytes()).map(drop).map_err(|e| shown(&e))
        }
        // A `console` block of its page says whether it is a policy.
        "cedar" if block.file.is_some() => Ok(()),
        "yaml" if block.text.starts_with("tools:") => {
            herma_environments::definition::parse(block.text.as_bytes(), &[]).map(drop).map_err(|e| shown(&e))
        }
        "yaml" if ["acp:", "do:", "registries:", "store:"].iter().any(|key| block.text.starts_with(key)) => {
            OperatorSettings::parse(&block.text).map(drop).map_err(|e| e.to_string())
        }
        "yaml" if block.text.starts_with("allowed_paths:") => {
            let rules = DefinitionRules { tools: &[], secret_rule: &|_| None };
            PlacedNarrowing::parse(block.text.as_bytes(), rules).map(drop).map_err(|e| shown(&e))
        }
        "yaml" => Script::parse(block.text.as_bytes()).map(drop).map_err(|e| shown(&e)),
        "toml" => Config::parse(&block.text, Path::new("router.toml")).map(drop).map_err(|e| shown(&e)),
        // One that a page tells to write is run by a `console` block of it. Others need an agent and a key:
        // `tests/it/agents/first_page.rs` does what they show.
        "sh" => check_shell(&block.text),
        "json" => serde_json::from_str::<serde_json::Value>(&block.text).map(drop).map_err(|e| shown(&e)),
        "text" => match block.text.lines().find(|line| is_command(line)) {
            Some(line) => Err(format!("`{line}` is a command: put it into a `console` block, which is run")),
            None => Ok(()),
        },
        other => Err(format!("`{other}` is no kind of block that is checked; see tests/docs/blocks.rs")),
    }
}

fn is_command(line: &str) -> bool {
    ["$ ", "herma ", "cargo ", "git ", "scripts/"].iter().any(|start| line.trim_start().starts_with(start))
}
