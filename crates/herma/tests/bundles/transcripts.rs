//! Somebody with a trusted key puts another transcript into a bundle, and signs again.

use herma_core::{RunId, Timestamp};
use herma_evidence::layout;
use herma_evidence::verify::CheckName;

use crate::forge::Forge;
use crate::honest;
use crate::tamper::broken;

fn is_refused(what: &str, change: impl FnOnce(&str) -> String) {
    let mut forge = Forge::of(honest());
    let text = forge.text(layout::TRANSCRIPT);
    let changed = change(&text);
    assert_ne!(changed, text, "{what} is as it was");
    forge.put(layout::TRANSCRIPT, changed);
    assert_eq!(broken(&forge.sign()), [CheckName::Artifacts], "{what}");
}

#[test]
fn a_transcript_that_is_none_of_this_run_is_refused() {
    let other = RunId::new(Timestamp::UNIX_EPOCH, [1; 10]).to_string();
    is_refused("another run", |text| {
        let run = Forge::of(honest()).report.run_id.to_string();
        text.replace(&run, &other)
    });
    is_refused("another engine", |text| text.replacen("\"fake\"", "\"claude\"", 1));
    is_refused("another schema", |text| text.replacen("transcript/v1", "transcript/v2", 1));
    is_refused("other words than the agent's", |text| text.replacen("\"agent\"", "\"herma\"", 1));
    is_refused("no first line", |_| String::new());
    is_refused("a line that is no entry", |text| format!("{text}{{\"kind\":\"message\"}}\n"));
    is_refused("a denial", |text| {
        let denial = r#"{"ts":"2999-01-01T00:00:00Z","kind":"denial","tool":"shell","arguments":"curl","reason":"no"}"#;
        format!("{text}{denial}\n")
    });
    is_refused("a torn line", |text| text.trim_end().to_owned());
    is_refused("entries against the order of time", |text| {
        let (head, entries) = text.split_once('\n').unwrap();
        let entries: Vec<&str> = entries.lines().rev().collect();
        format!("{head}\n{}\n", entries.join("\n"))
    });
}
