//! Fuzzes what reads the output of the engine `claude`, and the dialogue with it.

use herma_engines::claude::{ClaudeDialogue, ClaudeReader};
use herma_engines::{AgentEvent, Conversation as _};

use super::{agent_output, said_by};

/// Any output is read without harm, what is kept of it is bounded, and only an object that says so is a result. Whatever it
/// asks, herma answers in whole lines of JSON, and gives the prompt once.
pub fn claude_output(input: &[u8]) {
    agent_output(&mut ClaudeReader, input);
    let mut dialogue = ClaudeDialogue::new("Repair it.".to_owned());
    let mut said = said_by(&dialogue.open());
    for line in input.split(|b| *b == b'\n') {
        let (heard, turns) = dialogue.hear(line);
        if let Some(AgentEvent::Malformed(why)) = heard {
            assert!((1..=200).contains(&why.chars().count()));
        }
        for answer in said_by(&turns) {
            if answer["type"] == "control_response" {
                assert!(answer["response"]["request_id"].is_string(), "who asked knows that it is answered");
            }
            said.push(answer);
        }
    }
    assert!(said.iter().filter(|line| line["type"] == "user").count() <= 1, "the prompt is sent once");
}
