//! The transcript of Case: the lines of its pipeline, and the results of its agents.

use herma_core::transcript::{MAX_TEXT_BYTES, TranscriptEntry};
use serde::Deserialize;

use super::{TranscriptReader, message, output};

/// The prefix of its pipeline's lines in unattended mode.
const UNATTENDED: &str = "[unattended] ";
/// The delimiters of an agent's result.
const START: &str = "<<<AGENT_RESULT";
const END: &str = "AGENT_RESULT>>>";

/// Reads the output of `ca run --mode unattended`.
#[derive(Debug, Default)]
pub(crate) struct CaseTranscript {
    /// The result of an agent, up to now.
    result: Option<String>,
}

#[derive(Deserialize)]
struct AgentResult {
    status: String,
    summary: Option<String>,
}

/// The line that herma's own start script adds.
#[derive(Deserialize)]
struct PipelineEnd {
    outcome: String,
}

impl TranscriptReader for CaseTranscript {
    fn line(&mut self, line: &[u8]) -> Vec<TranscriptEntry> {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end();
        let text = text.strip_prefix(UNATTENDED).unwrap_or(text);
        if let Some((before, begun)) = text.split_once(START) {
            self.result = Some(String::new());
            return output(before).into_iter().chain(self.add(begun)).collect();
        }
        if self.result.is_some() {
            return self.add(text).into_iter().collect();
        }
        if text.starts_with('{') {
            let end = serde_json::from_str::<PipelineEnd>(text).ok();
            let shown = end.and_then(|end| output(&format!("the pipeline ended: {}", end.outcome)));
            return shown.into_iter().collect();
        }
        output(text).into_iter().collect()
    }
}

impl CaseTranscript {
    /// Adds to the result, and shows it at its end.
    fn add(&mut self, text: &str) -> Option<TranscriptEntry> {
        let result = self.result.as_mut()?;
        let ended = text.split_once(END);
        if result.len() < MAX_TEXT_BYTES {
            result.push_str(ended.map_or(text, |(before, _)| before));
        }
        ended?;
        let whole = self.result.take()?;
        let AgentResult { status, summary } = serde_json::from_str(&whole).ok()?;
        let summary = summary.map(|summary| format!(": {summary}")).unwrap_or_default();
        message(&format!("agent result {status}{summary}"))
    }
}
