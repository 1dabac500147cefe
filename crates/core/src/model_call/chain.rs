//! The chain of calls: each line of `model-calls.jsonl` names the digest of the line before it.

use std::collections::BTreeSet;

use super::{ModelCall, Sums, Unchained};
use crate::Digest;

/// The longest line that a call can have.
pub const LONGEST_LINE: usize = 256 << 10;

/// How far a chain has come.
#[derive(Clone, Debug)]
pub struct Chain {
    run: String,
    seq: u64,
    prev: Digest,
    numbers: Numbers,
}

/// A line does not continue the chain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {}: {problem}", seq + 1)]
pub struct Broken {
    /// The place in the chain, from 0.
    pub seq: u64,
    /// The problem of the line.
    pub problem: String,
}

impl Chain {
    /// A chain without a link, of this run.
    #[must_use]
    pub fn new(run: &str) -> Self {
        Self { run: run.to_owned(), seq: 0, prev: Digest::of(b""), numbers: Numbers::default() }
    }

    /// The run that made these calls.
    #[must_use]
    pub fn run(&self) -> &str {
        &self.run
    }

    /// The place of the next call.
    #[must_use]
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// The first number that is above that of every call so far.
    #[must_use]
    pub fn next_number(&self) -> u64 {
        self.numbers.above.last().map_or(self.numbers.below, |last| last + 1)
    }

    /// Checks that a line (without its newline) continues the chain, and goes on from it.
    pub fn follow(&mut self, line: &[u8]) -> Result<ModelCall, Broken> {
        let call = self.check(line).map_err(|problem| Broken { seq: self.seq, problem })?;
        self.go_on(&call, line);
        Ok(call)
    }

    /// Gives a call the next place and appends its line to `line`, without a newline. The chain goes on with
    /// [`Chain::go_on`] when the line is written.
    pub fn place(
        &self,
        number: Option<u64>,
        call: Unchained,
        line: &mut Vec<u8>,
    ) -> Result<ModelCall, Broken> {
        let broken = |problem| Broken { seq: self.seq, problem };
        let call = call.at(self.seq, self.prev, &self.run, number);
        let start = line.len();
        serde_json::to_writer(&mut *line, &call).map_err(|e| broken(e.to_string()))?;
        bounded(line.len() - start).map_err(broken)?;
        Ok(call)
    }

    /// The chain has one link more: `call`, written as `line`.
    pub fn go_on(&mut self, call: &ModelCall, line: &[u8]) {
        self.seq += 1;
        self.prev = Digest::of(line);
        if let Some(number) = call.call {
            self.numbers.add(number);
        }
    }

    fn check(&self, line: &[u8]) -> Result<ModelCall, String> {
        let call = parse_line(line)?;
        if call.seq != self.seq {
            return Err(format!("seq is {}, expected {}", call.seq, self.seq));
        }
        if call.prev != self.prev {
            return Err("prev is not the digest of the line before".to_owned());
        }
        if call.run != self.run {
            return Err("it belongs to another run".to_owned());
        }
        if let Some(number) = call.call.filter(|number| self.numbers.has(*number)) {
            return Err(format!("call {number} has a record already"));
        }
        Ok(call)
    }
}

/// Reads one line of `model-calls.jsonl` without its newline. Only the canonical spelling is taken.
pub fn parse_line(line: &[u8]) -> Result<ModelCall, String> {
    bounded(line.len())?;
    let call: ModelCall = serde_json::from_slice(line).map_err(|e| format!("not a call: {e}"))?;
    match serde_json_canonicalizer::to_vec(&call) {
        Ok(canonical) if canonical == line => Ok(call),
        _ => Err("it is not the canonical form of its call".to_owned()),
    }
}

/// Checks a whole `model-calls.jsonl` and adds it up. `take` sees each call.
pub fn read(bytes: &[u8], run: &str, mut take: impl FnMut(&ModelCall)) -> Result<Sums, Broken> {
    let (mut chain, mut sums) = (Chain::new(run), Sums::default());
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let torn = || Broken { seq: chain.seq, problem: "its end is missing".to_owned() };
        let line = line.strip_suffix(b"\n").ok_or_else(torn)?;
        let call = chain.follow(line)?;
        sums.add(&call);
        take(&call);
    }
    Ok(sums)
}

fn bounded(bytes: usize) -> Result<(), String> {
    if bytes > LONGEST_LINE {
        return Err(format!("it has {bytes} bytes, expected at most {LONGEST_LINE}"));
    }
    Ok(())
}

/// The numbers that calls had. Calls begin in order and end nearly so: what is kept is small.
#[derive(Clone, Debug, Default)]
struct Numbers {
    /// Every number below this one is there.
    below: u64,
    /// Those above it.
    above: BTreeSet<u64>,
}

impl Numbers {
    fn has(&self, number: u64) -> bool {
        number < self.below || self.above.contains(&number)
    }

    fn add(&mut self, number: u64) {
        if number != self.below {
            self.above.insert(number);
            return;
        }
        self.below += 1;
        while self.above.remove(&self.below) {
            self.below += 1;
        }
    }
}
