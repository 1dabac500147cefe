//! Reads the assignment and plays its script.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use herma_engines::fake::{ResultWord, Script, Speaker, Step, perform};
use herma_engines::protocol::ProtocolLine;
use herma_engines::stub::{MAX_BYTES, NAME, StubAssignment};

use crate::{BAD_INPUT, VERSION};

/// Plays the assignment in `workspace` and says everything on `output`; gives the exit code.
pub(crate) fn play(input: impl Read, workspace: &Path, mut output: File) -> u8 {
    match read(input) {
        Ok((assignment, script)) => {
            let contract = Some(assignment.contract_digest);
            perform(
                &script,
                Speaker { engine: NAME, version: VERSION, contract, router: None, proxy: None },
                workspace,
                output,
            )
        }
        Err(text) => {
            // If this cannot be said either, the exit code still says it.
            let _ = ProtocolLine::Message { text }.write_to(&mut output);
            BAD_INPUT
        }
    }
}

fn read(input: impl Read) -> Result<(StubAssignment, Script), String> {
    let mut bytes = Vec::new();
    // One byte more than the largest: then it is seen to be too large.
    let read = input.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|why| format!("the assignment could not be read: {why}"))?;
    let assignment =
        StubAssignment::parse(&bytes).map_err(|why| format!("the assignment cannot be read: {why}"))?;
    let script = match &assignment.script {
        Some(yaml) => Script::parse(yaml.as_bytes())
            .map_err(|why| format!("the assignment's script cannot be played: {why}"))?,
        None => nothing_to_play(),
    };
    Ok((assignment, script))
}

/// The script without an assignment: a message that there is none.
fn nothing_to_play() -> Script {
    let why = "the assignment has no script, and a stub can do nothing by itself";
    Script { steps: vec![Step::Say(why.to_owned()), Step::Result(ResultWord::Failed), Step::Exit(1)] }
}
