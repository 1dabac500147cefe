//! Fuzzes what reads the output of the engine `case`.

use herma_core::engine::EngineResult;
use herma_engines::case::CaseReader;
use herma_engines::{AgentEvent, OutputReader as _};

/// Any output is read without harm, and only the pipeline's own words say that it completed.
pub fn case_output(input: &[u8]) {
    let mut reader = CaseReader::default();
    for line in input.split(|b| *b == b'\n') {
        let all = match reader.line(line) {
            None => continue,
            Some(AgentEvent::All(all)) => all,
            Some(said) => vec![said],
        };
        let text = String::from_utf8_lossy(line);
        let says_so = text.contains("Pipeline completed successfully.") || text.contains("pipeline_end");
        assert!(says_so || !all.contains(&AgentEvent::Result(EngineResult::Completed)), "{text}");
    }
}
