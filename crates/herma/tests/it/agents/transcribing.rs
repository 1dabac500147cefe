//! The transcripts of real agents, as `herma logs` shows them.

use crate::kit::Herma;

/// The transcript of the last run, which shows these texts in this order, no JSON and nothing that a terminal would take for a
/// command.
pub(super) fn it_reads(herma: &Herma, texts: &[&str]) {
    let shown = herma.run(&["logs", "--full"]);
    assert_eq!((shown.code, shown.stderr.as_str()), (Some(0), ""), "{shown:#?}");
    let mut rest = shown.stdout.as_str();
    for text in texts {
        let Some((_, after)) = rest.split_once(text) else {
            panic!("{text:?} is not where it should be:\n{}", shown.stdout)
        };
        rest = after;
    }
    for line in shown.stdout.lines() {
        assert!(!line.contains("{\"") && !line.contains("\\\""), "{line}");
        assert!(!line.chars().any(char::is_control), "{line:?}");
    }
}
