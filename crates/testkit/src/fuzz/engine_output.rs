//! Fuzzes what reads an engine's output.

use herma_engines::protocol::ProtocolReader;
use herma_engines::{AgentEvent, LineSplitter, OutputReader as _};

/// Any output is split into the same lines however it arrives, and only a line that says so is a result. The first
/// byte says how large the chunks are.
pub fn engine_output(input: &[u8]) {
    let (size, output) = super::choice(input);
    let mut expected: Vec<&[u8]> = output.split(|b| *b == b'\n').collect();
    if expected.last().is_some_and(|last| last.is_empty()) {
        expected.pop();
    }
    let (mut splitter, mut lines) = (LineSplitter::new(), Vec::new());
    for chunk in output.chunks(size + 1) {
        splitter.feed(chunk, |line| lines.push(line.to_vec()));
    }
    splitter.finish(|line| lines.push(line.to_vec()));
    assert_eq!(lines, expected);
    assert_eq!(splitter.cut(), 0);
    let mut reader = ProtocolReader;
    for line in &lines {
        match reader.line(line) {
            Some(AgentEvent::Malformed(why)) => assert!((1..=200).contains(&why.chars().count())),
            Some(AgentEvent::Result(_)) => {
                let whole: serde_json::Value =
                    serde_json::from_slice(line.trim_ascii()).expect("a result is one JSON object");
                assert_eq!(whole["type"], "result");
                assert_eq!(whole.as_object().map(serde_json::Map::len), Some(2));
            }
            _ => {}
        }
    }
}
