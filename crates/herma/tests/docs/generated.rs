//! The pages, and parts of pages, that are made from the code. The test fails where one is not what it would be now.

use std::fmt::Write as _;

use herma_cli::schemas::SCHEMAS;
use herma_core::Blocker;

use crate::{blockers, cli, contract, engines, escape, evidence, pages, tables};

/// Says at the top of a page that nobody edits it.
pub(crate) const NOTICE: &str = "<!-- Made from the code by crates/herma/tests/docs. Do not edit: UPDATE_DOCS=1 cargo test -p herma --test docs -->\n\n";

/// The advice for a page that is not up to date.
const MEND: &str = "run UPDATE_DOCS=1 cargo test -p herma --test docs";

/// Every whole file that is made from the code.
fn files() -> Vec<(String, String)> {
    let mut files = vec![
        ("docs/cli.md".to_owned(), cli::page()),
        ("docs/exit-codes.md".to_owned(), tables::exit_codes()),
        ("docs/environment.md".to_owned(), tables::environment()),
        ("docs/fixtures.md".to_owned(), tables::fixtures()),
        ("docs/failure-matrix.md".to_owned(), tables::failure_matrix()),
        ("docs/schemas/README.md".to_owned(), tables::schemas()),
        ("docs/blockers/README.md".to_owned(), blockers::list()),
    ];
    for blocker in Blocker::ALL {
        files.push((format!("docs/blockers/{blocker}.md"), blockers::page(*blocker)));
    }
    for schema in SCHEMAS {
        let text = serde_json::to_string_pretty(&schema.schema()).unwrap();
        files.push((format!("docs/schemas/{}.json", schema.name), text + "\n"));
    }
    files
}

/// Every part of a page that is made from the code, between `<!-- made: NAME -->` and `<!-- end -->`.
fn parts() -> Vec<(&'static str, &'static str, String)> {
    vec![
        ("docs/agents.md", "capabilities", engines::capabilities()),
        ("docs/confinement.md", "attempts", escape::attempts()),
        ("docs/confinement.md", "bombs", escape::bombs()),
        ("docs/confinement.md", "poisons", escape::poisons()),
        ("docs/contract.md", "keys", contract::keys()),
        ("docs/contract.md", "values", contract::values()),
        ("docs/contract.md", "actions", contract::actions()),
        ("docs/contract.md", "forbidden-paths", contract::forbidden_paths()),
        ("docs/contract.md", "name-characters", contract::name_characters()),
        ("docs/contract.md", "verification-files", contract::verification_files()),
        ("docs/contract.md", "runner-modules", contract::runner_modules()),
        ("docs/evidence.md", "files", evidence::files()),
        ("docs/evidence.md", "report", evidence::report()),
        ("docs/evidence.md", "fields", evidence::fields()),
        ("docs/evidence.md", "events", evidence::events()),
        ("docs/evidence.md", "gates", evidence::gates()),
        ("docs/evidence.md", "checks", evidence::checks()),
        ("docs/fake.md", "steps", tables::fake_steps()),
        ("docs/router.md", "request-keys", tables::request_keys()),
        ("docs/settings.md", "keys", tables::settings()),
    ]
}

#[allow(clippy::disallowed_methods, reason = "a person says with it that the pages are to be written")]
fn updating() -> bool {
    std::env::var_os("UPDATE_DOCS").is_some_and(|value| value == "1")
}

#[test]
fn every_generated_file_is_what_the_code_says() {
    let mut stale = String::new();
    for (path, text) in files() {
        settle(&path, &text, &mut stale);
    }
    assert!(stale.is_empty(), "{MEND}: these are not what the code says:\n{stale}");
}

#[test]
fn every_generated_part_is_what_the_code_says() {
    let mut stale = String::new();
    for (path, name, part) in parts() {
        let page = pages::named(path).text;
        let begin = format!("<!-- made: {name} -->\n");
        let (before, rest) = page.split_once(&begin).unwrap_or_else(|| panic!("{path} has no {begin}"));
        let (_, after) =
            rest.split_once("<!-- end -->").unwrap_or_else(|| panic!("{path}: {name} has no end"));
        settle(path, &format!("{before}{begin}{part}<!-- end -->{after}"), &mut stale);
    }
    assert!(stale.is_empty(), "{MEND}: these are not what the code says:\n{stale}");
}

#[test]
fn no_generated_file_is_left_over() {
    let made: Vec<String> = files().into_iter().map(|(path, _)| path).collect();
    for dir in ["docs/blockers", "docs/schemas"] {
        for entry in std::fs::read_dir(pages::top().join(dir)).unwrap() {
            let path = format!("{dir}/{}", entry.unwrap().file_name().to_str().unwrap());
            assert!(made.contains(&path), "nothing makes {path} any more: remove it");
        }
    }
}

/// Writes the file where someone asked for it; else notes it if it is not as it should be.
fn settle(path: &str, text: &str, stale: &mut String) {
    let file = pages::top().join(path);
    if std::fs::read_to_string(&file).is_ok_and(|there| there == text) {
        return;
    }
    if updating() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, text).unwrap();
    } else {
        writeln!(stale, "  {path}").unwrap();
    }
}

/// A row of a Markdown table.
pub(crate) fn row(cells: &[&str]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|").replace('\n', " ")).collect();
    format!("| {} |\n", cells.join(" | "))
}

/// The head of a Markdown table.
pub(crate) fn head(cells: &[&str]) -> String {
    let rule: Vec<&str> = cells.iter().map(|_| "---").collect();
    format!("{}{}", row(cells), row(&rule))
}
