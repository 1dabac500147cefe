//! The reply of a turn to one request, independent of the dialect: blocks, stop reason and usage.

use crate::ids::Ids;
use crate::tools::{Chosen, Input, ToolCall, choose};
use crate::turn::{Fault, Forever, Stop, Turn, Used};
use herma_dialect::ModelRequest;

/// Bytes that count as one token.
const BYTES_PER_TOKEN: u64 = 4;

/// An answer.
#[derive(Clone, Debug)]
pub(super) struct Reply {
    /// The source of its ids.
    pub(super) ids: Ids,
    /// The model that was asked for.
    pub(super) model: String,
    /// Its blocks, in order.
    pub(super) blocks: Vec<Block>,
    /// Why it ends.
    pub(super) stop: Stop,
    /// Its usage.
    pub(super) used: Used,
}

/// A part of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Block {
    /// Reasoning.
    Think(String),
    /// Text.
    Say(String),
    /// A refusal.
    Refuse(String),
    /// A tool call.
    Call(ToolCall),
}

/// The tokens of a request: a quarter of the bytes of its conversation.
#[must_use]
pub fn count_tokens(request: &ModelRequest) -> u64 {
    tokens(request.turns.text.len() as u64).max(1)
}

fn tokens(bytes: u64) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN)
}

impl Reply {
    /// The reply of `turn`.
    pub(super) fn of(turn: &Turn, fault: Option<&Fault>, request: &ModelRequest, ids: Ids) -> Self {
        let mut blocks = blocks(turn, request);
        if matches!(fault, Some(Fault::Forever(Forever::Text)))
            && !matches!(blocks.last(), Some(Block::Say(_)))
        {
            blocks.push(Block::Say(String::new()));
        }
        // A script that says what was used means it, also where it is more than the client allows.
        let most = request.max_output.filter(|_| turn.usage.is_none());
        let cut_short = most.is_some_and(|most| shorten(&mut blocks, most.saturating_mul(BYTES_PER_TOKEN)));
        let used = turn.usage.unwrap_or_else(|| used(&blocks, request));
        let has = |wanted: fn(&Block) -> bool| blocks.iter().any(wanted);
        let usual = if has(|block| matches!(block, Block::Call(_))) {
            Stop::Tools
        } else if has(|block| matches!(block, Block::Refuse(_))) {
            Stop::Refusal
        } else {
            Stop::End
        };
        let stop = if cut_short { Stop::Length } else { turn.stop.unwrap_or(usual) };
        Self { ids, model: request.model.clone(), blocks, stop, used }
    }
}

fn blocks(turn: &Turn, request: &ModelRequest) -> Vec<Block> {
    let content = &turn.content;
    let mut said = content.say.clone();
    let mut calls = Vec::new();
    for call in &content.calls {
        match choose(call, request) {
            Chosen::Calls(chosen) => calls.extend(chosen.into_iter().map(Block::Call)),
            Chosen::Unable(why) => {
                said = Some(said.map_or_else(|| why.clone(), |said| format!("{said}\n{why}")));
            }
        }
    }
    let texts = [
        content.think.clone().map(Block::Think),
        said.map(Block::Say),
        content.refuse.clone().map(Block::Refuse),
    ];
    texts.into_iter().flatten().chain(calls).collect()
}

/// Takes away what is more than `bytes`, as an output maximum does. A call that does not fit is left out.
fn shorten(blocks: &mut Vec<Block>, bytes: u64) -> bool {
    let mut left = usize::try_from(bytes).unwrap_or(usize::MAX);
    for at in 0..blocks.len() {
        let size = blocks[at].bytes();
        if size <= left {
            left -= size;
            continue;
        }
        let keep = match &mut blocks[at] {
            Block::Think(text) | Block::Say(text) | Block::Refuse(text) => {
                text.truncate(text.floor_char_boundary(left));
                !text.is_empty()
            }
            Block::Call(_) => false,
        };
        blocks.truncate(at + usize::from(keep));
        return true;
    }
    false
}

fn used(blocks: &[Block], request: &ModelRequest) -> Used {
    let bytes =
        |blocks: &mut dyn Iterator<Item = &Block>| blocks.map(|block| block.bytes() as u64).sum::<u64>();
    let output = tokens(bytes(&mut blocks.iter()));
    let reasoning = bytes(&mut blocks.iter().filter(|block| matches!(block, Block::Think(_))));
    Used { input: count_tokens(request), output, reasoning: tokens(reasoning).min(output), ..Used::default() }
}

impl Block {
    fn bytes(&self) -> usize {
        match self {
            Self::Think(text) | Self::Say(text) | Self::Refuse(text) => text.len(),
            Self::Call(call) => call.name.len() + call.input.bytes(),
        }
    }
}

impl Input {
    fn bytes(&self) -> usize {
        match self {
            Self::Arguments(text) | Self::Freeform(text) | Self::LocalShell(text) | Self::Shell(text) => {
                text.len()
            }
            Self::ApplyPatch(operation) => {
                operation.path.len() + operation.diff.as_ref().map_or(0, String::len)
            }
        }
    }
}
