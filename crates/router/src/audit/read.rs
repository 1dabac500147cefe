//! Reading a file of chained calls, with bounded memory.

use std::io::{self, BufRead, Read as _};

use herma_core::model_call::{Broken, Chain, LONGEST_LINE, ModelCall, Sums};

/// The records of a file.
#[derive(Debug)]
pub struct Read {
    /// Their sums.
    pub sums: Sums,
    /// The bytes of all whole lines.
    pub whole: u64,
    /// Whether a line follows them whose end is missing: one that is being written, or was when its writer was killed.
    pub is_torn: bool,
}

/// Reads the calls of a run, checks that they are a chain, and adds them up. `take` sees each.
pub fn read(from: impl BufRead, run: &str, take: impl FnMut(&ModelCall)) -> io::Result<Result<Read, Broken>> {
    Ok(follow(from, &mut Chain::new(run), take)?.map(|(sums, Lines { whole, is_torn })| Read {
        sums,
        whole,
        is_torn,
    }))
}

/// Reads on in a chain.
pub(super) fn follow(
    from: impl BufRead,
    chain: &mut Chain,
    mut take: impl FnMut(&ModelCall),
) -> io::Result<Result<(Sums, Lines), Broken>> {
    let mut sums = Sums::default();
    let read = lines(from, |line| {
        let call = chain.follow(line)?;
        sums.add(&call);
        take(&call);
        Ok(())
    })?;
    Ok(read.map(|lines| (sums, lines)))
}

/// How much of a file is lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lines {
    pub(super) whole: u64,
    pub(super) is_torn: bool,
}

/// Gives every whole line to `take`, without its newline, until it refuses one. A line that is too long is given in
/// part.
pub(super) fn lines<E>(
    mut from: impl BufRead,
    mut take: impl FnMut(&[u8]) -> Result<(), E>,
) -> io::Result<Result<Lines, E>> {
    const LONGEST: u64 = LONGEST_LINE as u64 + 2;
    let (mut line, mut whole) = (Vec::new(), 0);
    loop {
        line.clear();
        let read = from.by_ref().take(LONGEST).read_until(b'\n', &mut line)? as u64;
        match line.strip_suffix(b"\n") {
            None if read < LONGEST => return Ok(Ok(Lines { whole, is_torn: read > 0 })),
            line_without => {
                if let Err(refused) = take(line_without.unwrap_or(&line)) {
                    return Ok(Err(refused));
                }
            }
        }
        whole += read;
    }
}
