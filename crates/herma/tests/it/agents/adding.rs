//! Follows the page on adding an engine to the letter, in a copy of the sources.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use crate::kit::run_tool;

const TOP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// Where the compiler has put what it made of everything that does not change.
const TARGET: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/..");

#[test]
fn the_engine_of_the_page_on_adding_one_compiles() {
    let copy = tempfile::tempdir().unwrap();
    let sources = ["Cargo.toml", "Cargo.lock", "crates", "xtask"].map(|name| format!("{TOP}/{name}"));
    let mut words: Vec<&OsStr> = vec![OsStr::new("-R")];
    words.extend(sources.iter().map(OsStr::new));
    words.push(copy.path().as_os_str());
    run_tool("cp", &words, &[]);

    let page = fs::read_to_string(format!("{TOP}/docs/add-an-engine.md")).unwrap();
    let (mut files, mut lines) = (0, 0);
    for (info, text) in blocks(&page) {
        if let Some(name) = info.strip_prefix("rust file=") {
            assert!(!copy.path().join(name).exists(), "{name} is there already");
            fs::write(copy.path().join(name), text).unwrap();
            files += 1;
        } else if let Some(name) = info.strip_prefix("rust into=") {
            insert(&copy.path().join(name), &text);
            lines += 1;
        }
    }
    assert_eq!((files, lines), (1, 2));
    let manifest = copy.path().join("Cargo.toml");
    let words = ["check", "--quiet", "--offline", "--locked", "-p", "herma-engines", "--manifest-path"];
    let words: Vec<&OsStr> = words.map(OsStr::new).into_iter().chain([manifest.as_os_str()]).collect();
    run_tool("cargo", &words, &[("CARGO_TARGET_DIR", TARGET)]);
}

/// The fenced blocks of a page: the text behind the fence, and the content.
fn blocks(page: &str) -> Vec<(String, String)> {
    let parts = page.split("\n```").skip(1).step_by(2);
    let split = |part: &str| part.split_once('\n').map(|(info, text)| (info.to_owned(), format!("{text}\n")));
    parts.filter_map(split).collect()
}

/// Puts all lines but the first behind the line of the file that is like the first.
fn insert(file: &Path, text: &str) {
    let (known, new) = text.split_once('\n').unwrap();
    let old = fs::read_to_string(file).unwrap();
    assert_eq!(old.matches(known).count(), 1, "`{known}` stands once in {}", file.display());
    fs::write(file, old.replace(known, &format!("{known}\n{}", new.trim_end()))).unwrap();
}
