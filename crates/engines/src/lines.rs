//! Splits a stream of bytes into lines, in bounded memory, however the stream arrives.

/// The longest line that is passed on, in bytes. The rest of a longer line is dropped here and kept in the raw log.
pub const MAX_LINE: usize = 1 << 20;

/// The same in a dialogue, where a request contains the whole content of a write, and the agent waits for the
/// reply.
pub const MAX_SAID: usize = 32 << 20;

/// Splits a stream into lines. Line ends are `\n`; they are not part of the line.
#[derive(Debug)]
pub struct LineSplitter {
    /// The start of an incomplete line, at most `cap` bytes.
    begun: Vec<u8>,
    /// Whether the line in `begun` has had more than `cap` bytes.
    overlong: bool,
    /// Whether anything of the current line has arrived.
    pending: bool,
    cap: usize,
    cut: u64,
}

impl Default for LineSplitter {
    fn default() -> Self {
        Self::new()
    }
}

impl LineSplitter {
    /// A splitter for one stream.
    #[must_use]
    pub fn new() -> Self {
        Self::with_cap(MAX_LINE)
    }

    /// A splitter for the stream of an agent with a dialogue.
    #[must_use]
    pub fn of_dialogue() -> Self {
        Self::with_cap(MAX_SAID)
    }

    fn with_cap(cap: usize) -> Self {
        Self { begun: Vec::new(), overlong: false, pending: false, cap, cut: 0 }
    }

    /// Takes the next bytes of the stream and passes each complete line to `each`.
    pub fn feed(&mut self, bytes: &[u8], mut each: impl FnMut(&[u8])) {
        for part in bytes.split_inclusive(|b| *b == b'\n') {
            match part.strip_suffix(b"\n") {
                // A line that is complete in these bytes is not copied.
                Some(line) if !self.pending && line.len() <= self.cap => each(line),
                Some(end) => {
                    self.keep(end);
                    self.hand_on(&mut each);
                }
                None => self.keep(part),
            }
        }
    }

    /// Passes on the last line, if the stream ended without a line end.
    pub fn finish(&mut self, mut each: impl FnMut(&[u8])) {
        if self.pending {
            self.hand_on(&mut each);
        }
    }

    /// The number of lines that were longer than [`MAX_LINE`] and were cut.
    #[must_use]
    pub fn cut(&self) -> u64 {
        self.cut
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = self.cap - self.begun.len();
        self.begun.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.overlong |= bytes.len() > room;
        self.pending = true;
    }

    fn hand_on(&mut self, each: &mut impl FnMut(&[u8])) {
        self.cut += u64::from(self.overlong);
        each(&self.begun);
        self.begun.clear();
        (self.overlong, self.pending) = (false, false);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(cap: usize, chunks: &[&[u8]]) -> (Vec<Vec<u8>>, u64) {
        let (mut splitter, mut lines) = (LineSplitter::with_cap(cap), Vec::new());
        for chunk in chunks {
            splitter.feed(chunk, |line| lines.push(line.to_vec()));
            assert!(splitter.begun.capacity() <= 2 * cap.max(8), "memory is bounded by the cap");
        }
        splitter.finish(|line| lines.push(line.to_vec()));
        (lines, splitter.cut())
    }

    #[test]
    fn a_line_is_cut_only_beyond_the_cap() {
        assert_eq!(split(4, &[b"abcd\nabcde\n"]), (vec![b"abcd".to_vec(), b"abcd".to_vec()], 1));
        assert_eq!(split(4, &[b"abcd", b"", b"\n", b"\n"]), (vec![b"abcd".to_vec(), Vec::new()], 0));
        assert_eq!(split(4, &[b"abcdefgh", b"ij"]), (vec![b"abcd".to_vec()], 1));
        assert_eq!(split(4, &[]), (Vec::new(), 0));
    }

    #[test]
    fn a_line_without_end_stays_within_the_cap() {
        let mut splitter = LineSplitter::new();
        for _ in 0..256 {
            splitter.feed(&[b'x'; 16 * 1024], |_| panic!("no line has ended"));
        }
        assert!(splitter.begun.capacity() <= 2 * MAX_LINE);
        splitter.finish(|line| assert_eq!(line.len(), MAX_LINE));
        assert_eq!(splitter.cut(), 1);
    }

    proptest! {
        #[test]
        fn however_the_stream_arrives_the_lines_are_the_same(
            bytes in prop::collection::vec(prop_oneof![2 => Just(b'\n'), 7 => any::<u8>()], 0..200),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
            cap in 1_usize..12,
        ) {
            let mut expected: Vec<Vec<u8>> = bytes.split(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
            // A line ends with `\n`: after the last one there is no further, empty line.
            if expected.last().is_some_and(Vec::is_empty) {
                expected.pop();
            }
            let overlong = expected.iter().filter(|line| line.len() > cap).count() as u64;
            for line in &mut expected {
                line.truncate(cap);
            }
            let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            at.extend([0, bytes.len()]);
            at.sort_unstable();
            let chunks: Vec<&[u8]> = at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(split(cap, &chunks), (expected, overlong));
        }
    }
}
