//! The ends of the verification commands as `test.log` shows them.

use herma_core::Report;
use herma_core::report::{Verification, VerificationStatus};

/// The searched prefix of a command.
const MAX_COMMAND_BYTES: usize = 128;
/// herma's markers for removed text. The searched text may have been part of it.
const GAPS: [&str; 2] = ["[redacted:", "[herma left out "];
/// The longest of these.
const MAX_GAP_BYTES: usize = 16;

/// The texts to find in the log, in order. The commands may print anything in between.
pub(super) struct TestLog {
    /// The texts that were not found yet, the next one last.
    missing: Vec<String>,
    pending: Vec<u8>,
    has_gap: bool,
}

impl TestLog {
    /// Looks for the commands of this report.
    pub(super) fn new(report: Option<&Report>) -> Self {
        let lists = report.map(|report| [&report.verification, &report.verification_with_baseline_tests]);
        let mut missing: Vec<String> = lists.into_iter().flatten().flatten().flat_map(lines).collect();
        missing.reverse();
        Self { missing, pending: Vec::new(), has_gap: false }
    }

    pub(super) fn push(&mut self, chunk: &[u8]) {
        self.pending.extend_from_slice(chunk);
        self.has_gap |= GAPS.iter().any(|gap| find(&self.pending, gap.as_bytes()).is_some());
        let mut from = 0;
        while let Some(wanted) = self.missing.last() {
            let Some(at) = find(&self.pending[from..], wanted.as_bytes()) else { break };
            from += at + wanted.len();
            self.missing.pop();
        }
        // The start of what is looked for may be at the end of this chunk.
        let begun = self.missing.last().map_or(0, |wanted| wanted.len() - 1);
        let kept = begun.max(MAX_GAP_BYTES - 1).min(self.pending.len() - from);
        self.pending.drain(..self.pending.len() - kept);
    }

    /// A text that the report implies and the log lacks.
    pub(super) fn missing(&self) -> Option<&str> {
        if self.has_gap { None } else { self.missing.last().map(String::as_str) }
    }
}

/// The lines of a command in the log: the command and its end.
fn lines(verification: &Verification) -> Vec<String> {
    let command = verification.command.lines().next().unwrap_or_default();
    let command = &command[..command.floor_char_boundary(MAX_COMMAND_BYTES)];
    let ended = match (verification.status, verification.exit_code) {
        (VerificationStatus::TimedOut, _) | (_, None) => "[killed".to_owned(),
        (VerificationStatus::Passed, Some(code)) => format!("[exit {code}]"),
        (_, Some(code)) => format!("[exit {code}"),
    };
    // A secret is taken out of the log and of the report in places of their own.
    let shown = (!verification.command.contains("[redacted:")).then(|| format!("$ {command}"));
    shown.into_iter().chain([ended]).collect()
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    let first = wanted.first()?;
    let mut from = 0;
    loop {
        let at = from + text.get(from..)?.iter().position(|byte| byte == first)?;
        if text[at..].starts_with(wanted) {
            return Some(at);
        }
        from = at + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(wanted: &[&str]) -> TestLog {
        let missing = wanted.iter().rev().map(|line| (*line).to_owned()).collect();
        TestLog { missing, pending: Vec::new(), has_gap: false }
    }

    #[test]
    fn texts_are_found_in_order_for_any_chunking() {
        let text = b"$ a\nmuch[exit 0]\n$ b\n[exit 1: no]\n";
        for at in 0..text.len() {
            let mut found = log(&["$ a", "[exit 0]", "$ b", "[exit 1"]);
            found.push(&text[..at]);
            found.push(&text[at..]);
            assert_eq!(found.missing(), None, "{at}");
        }
        let mut wrong = log(&["$ b", "[exit 0]"]);
        wrong.push(text);
        assert_eq!(wrong.missing(), Some("[exit 0]"));
    }

    #[test]
    fn redacted_log_text_is_not_reported_as_missing() {
        for text in
            ["$ a\n[redacted:unclear]\n", "$ a\nmuch\n[herma left out 7 bytes: this log ends at 9 bytes]\n"]
        {
            for at in 0..text.len() {
                let mut cut = log(&["$ a", "[exit 0]"]);
                cut.push(&text.as_bytes()[..at]);
                cut.push(&text.as_bytes()[at..]);
                assert_eq!(cut.missing(), None, "{text:?} at {at}");
            }
        }
        assert_eq!(GAPS.iter().map(|gap| gap.len()).max(), Some(MAX_GAP_BYTES));
    }
}
