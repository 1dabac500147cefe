//! Fuzzes the reader of reports.

use herma_evidence::{render_markdown, report as reports};

/// Any bytes are a report in its one spelling, or an error; a report can be shown to people.
pub fn report(input: &[u8]) {
    match reports::parse(input) {
        Ok(report) => {
            let mut spelled = serde_json::to_vec_pretty(&report).expect("a report can be written");
            spelled.push(b'\n');
            assert_eq!(spelled, input, "a report has one spelling");
            assert!(!render_markdown(&report).is_empty());
        }
        Err(why) => assert!(!why.to_string().is_empty()),
    }
    // The spelling keeps most inputs away from the renderer; what a report says in any spelling is shown too.
    if let Ok(report) = serde_json::from_slice(input) {
        assert!(!render_markdown(&report).is_empty());
        let mut spelled = serde_json::to_vec_pretty(&report).expect("a report can be written");
        spelled.push(b'\n');
        assert_eq!(reports::parse(&spelled).ok(), Some(report), "what herma spells it reads");
    }
}
