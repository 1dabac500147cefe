//! `docs/stub.md` shows what the program really takes and prints.

use std::fs;
use std::path::PathBuf;

use herma_core::Contract;
use herma_engines::Assignment;
use herma_engines::stub::StubAssignment;

use crate::program::Place;

const CONTRACT: &str = "---\nid: greet\ntitle: the greeting is not friendly\ntarget: { repo: ../shop }\nstage: 3\n\
                        allowed_paths: [greeting.txt]\nverify: [grep -q friend greeting.txt]\n---\n\
                        greeting.txt must greet a friend.\n";

const SCRIPT: &str = "steps:\n  - plan: [write the greeting]\n  - write: { path: greeting.txt, text: \"hello, friend\\n\" }\n  \
                      - tool: { name: shell, command: cat greeting.txt }\n";

/// The parts between `<!-- made: NAME -->` and `<!-- end -->`, made by the program itself.
fn parts() -> [(&'static str, String); 3] {
    let contract = Contract::parse(CONTRACT.as_bytes()).unwrap();
    let given = StubAssignment::of(&Assignment {
        contract: &contract,
        script: Some(SCRIPT),
        resume: None,
        note: None,
    })
    .unwrap();
    let given = serde_json::to_string_pretty(&given).unwrap();
    let place = Place::new();
    let printed = |args: &[&str], input: &str| {
        let ended = place.start(args, input.as_bytes());
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
        String::from_utf8(ended.stdout).unwrap()
    };
    let (identity, output) = (printed(&["--identity"], ""), printed(&[], &given));
    assert_eq!(fs::read_to_string(place.path("greeting.txt")).unwrap(), "hello, friend\n");
    [
        ("identity", format!("```json\n{identity}```\n")),
        ("assignment", format!("```json\n{given}\n```\n")),
        ("output", format!("```text\n{output}```\n")),
    ]
}

#[allow(clippy::disallowed_methods, reason = "a person says with it that the page is to be written")]
fn updating() -> bool {
    std::env::var_os("UPDATE_DOCS").is_some_and(|value| value == "1")
}

#[test]
fn the_page_shows_what_the_program_takes_and_prints() {
    let file: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../../docs/stub.md"].iter().collect();
    let written = fs::read_to_string(&file).unwrap();
    let mut page = written.clone();
    for (name, part) in parts() {
        let begin = format!("<!-- made: {name} -->\n");
        let (before, rest) = page.split_once(&begin).unwrap();
        let (_, after) = rest.split_once("<!-- end -->").unwrap();
        page = format!("{before}{begin}{part}<!-- end -->{after}");
    }
    if updating() {
        fs::write(&file, &page).unwrap();
    } else {
        assert_eq!(written, page, "run UPDATE_DOCS=1 cargo test -p herma-stub");
    }
}
