//! Fuzzes the dialogue of the engine `acp`.

use herma_engines::acp::AcpConversation;
use herma_engines::{AgentEvent, Conversation as _};

use super::said_by;

/// Whatever the agent says, herma answers in whole lines of JSON, and nobody has a result before he was asked.
pub fn acp_output(input: &[u8]) {
    let mut dialogue = AcpConversation::new("Repair it.".to_owned(), "/workspace".to_owned());
    let (mut asked, mut results) = (said_by(&dialogue.open()), 0);
    for line in input.split(|b| *b == b'\n') {
        let (said, turns) = dialogue.hear(line);
        let all = match said {
            None => {
                assert!(turns.is_empty(), "what is not understood is not answered");
                continue;
            }
            Some(AgentEvent::Malformed(why)) => {
                assert!((1..=200).contains(&why.chars().count()));
                Vec::new()
            }
            Some(AgentEvent::All(all)) => all,
            Some(said) => vec![said],
        };
        results += all.iter().filter(|said| matches!(said, AgentEvent::Result(_))).count();
        asked.extend(said_by(&turns));
        let completed = AgentEvent::Result(herma_core::engine::EngineResult::Completed);
        let prompted = asked.iter().any(|line| line["method"] == "session/prompt");
        assert!(prompted || !all.contains(&completed), "nobody is done before he was asked");
        assert!(results <= 1, "there is one turn");
    }
}
