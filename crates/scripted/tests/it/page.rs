//! The cookbook says what holds: every script on it is one, and its table is the table of the code.

use std::fmt::Write as _;
use std::path::Path;

use herma_scripted::{KNOWN_TOOLS, PROVIDER_TOOLS, Part, Scripted};

use super::kit::{DIALECTS, Request};

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scripted.md");
    std::fs::read_to_string(path).unwrap()
}

fn scripts(page: &str) -> Vec<String> {
    let blocks = page.split("```yaml").skip(1);
    blocks.map(|block| block.split("```").next().unwrap().split_once('\n').unwrap().1.to_owned()).collect()
}

#[test]
fn every_script_of_the_page_is_one() {
    let page = page();
    let scripts = scripts(&page);
    assert!(scripts.len() > 8, "only {} scripts were found", scripts.len());
    for script in scripts {
        let scripted = Scripted::parse(script.as_bytes()).unwrap_or_else(|e| panic!("{e}\n{script}"));
        for dialect in DIALECTS {
            for answered in 0..=scripted.script().turns.count() {
                let _ = Request::new(dialect).answered(answered).answer(&scripted);
            }
        }
    }
}

#[test]
fn the_table_of_the_page_is_the_table_of_the_code() {
    let mut rows = String::from("| intent | tool | arguments | who |\n| --- | --- | --- | --- |\n");
    for row in KNOWN_TOOLS.iter().chain(PROVIDER_TOOLS) {
        let dated = if row.tool.ends_with('_') { "*" } else { "" };
        let arguments: Vec<String> = row.arguments.iter().map(argument).collect();
        let intent = format!("{:?}", row.intent).to_lowercase();
        let (tool, arguments) = (row.tool, arguments.join(", "));
        writeln!(rows, "| {intent} | `{tool}{dated}` | {arguments} | {} |", row.agents).unwrap();
    }
    assert!(page().contains(&rows), "docs/scripted.md wants this table:\n{rows}");
}

fn argument((name, part): &(&str, Part)) -> String {
    let what = match part {
        Part::Command => "the command".to_owned(),
        Part::Argv => "`bash -lc`, the command".to_owned(),
        Part::Path => "the path".to_owned(),
        Part::Text => "the text".to_owned(),
        Part::Old => "old".to_owned(),
        Part::New => "new".to_owned(),
        Part::Edits(old, new) => format!("one `{old}`, `{new}`"),
        Part::Diff => "the patch".to_owned(),
        Part::Word(word) => format!("`{word}`"),
    };
    format!("`{name}`: {what}")
}

#[test]
fn every_key_of_a_turn_is_on_the_page() {
    let error = Scripted::parse(b"name: a\nturns: [{ zzzzzzzzzz: 1 }]\n").unwrap_err().to_string();
    let keys = error.rsplit_once("expected one of: ").unwrap().1;
    let page = page();
    for key in keys.split(", ") {
        assert!(
            page.contains(&format!("`{key}`")) || page.contains(&format!("`{key}:")),
            "{key} is not on the page"
        );
    }
}
