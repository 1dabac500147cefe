//! Splits a stream into lines with bounded memory.

/// One line without its newline.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BoundedLine<'a> {
    /// Its bytes, or the first of them if it is too long.
    pub(crate) bytes: &'a [u8],
    /// Whether bytes are missing at its end because it is too long.
    pub(crate) cut: bool,
    /// Whether a newline ended it; only the last line of a stream can lack one.
    pub(crate) ended: bool,
}

impl BoundedLine<'_> {
    /// Whether all of it is here.
    pub(crate) fn is_whole(&self) -> bool {
        self.ended && !self.cut
    }
}

/// Collects chunks and gives out lines.
#[derive(Debug)]
pub(crate) struct LineBuffer {
    longest: usize,
    pending: Vec<u8>,
    cut: bool,
    open: bool,
}

impl LineBuffer {
    /// Keeps at most `longest` bytes of each line.
    pub(crate) fn new(longest: usize) -> Self {
        Self { longest, pending: Vec::new(), cut: false, open: false }
    }

    pub(crate) fn push(&mut self, mut chunk: &[u8], out: &mut impl FnMut(BoundedLine<'_>)) {
        while !chunk.is_empty() {
            let end = chunk.iter().position(|b| *b == b'\n');
            let part = &chunk[..end.unwrap_or(chunk.len())];
            chunk = end.map_or(&[][..], |end| &chunk[end + 1..]);
            if end.is_some() && !self.open {
                let kept = &part[..part.len().min(self.longest)];
                out(BoundedLine { bytes: kept, cut: kept.len() < part.len(), ended: true });
                continue;
            }
            let room = self.longest - self.pending.len();
            self.cut |= part.len() > room;
            self.pending.extend_from_slice(&part[..part.len().min(room)]);
            self.open = true;
            if end.is_some() {
                self.give(true, out);
            }
        }
    }

    /// Gives out what follows the last newline, if anything does.
    pub(crate) fn finish(&mut self, out: &mut impl FnMut(BoundedLine<'_>)) {
        if self.open {
            self.give(false, out);
        }
    }

    fn give(&mut self, ended: bool, out: &mut impl FnMut(BoundedLine<'_>)) {
        out(BoundedLine { bytes: &self.pending, cut: self.cut, ended });
        self.pending.clear();
        (self.cut, self.open) = (false, false);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(chunks: &[&[u8]], longest: usize) -> Vec<(Vec<u8>, bool, bool)> {
        let mut found = Vec::new();
        let mut take = |line: BoundedLine<'_>| found.push((line.bytes.to_vec(), line.cut, line.ended));
        let mut lines = LineBuffer::new(longest);
        for chunk in chunks {
            lines.push(chunk, &mut take);
        }
        lines.finish(&mut take);
        found
    }

    #[test]
    fn a_long_line_is_cut_and_the_next_is_not() {
        let expected = vec![(b"abc".to_vec(), true, true), (b"x".to_vec(), false, false)];
        assert_eq!(split(&[b"ab", b"cdef\nx"], 3), expected);
    }

    proptest! {
        #[test]
        fn where_the_chunks_end_does_not_matter(text in "[ab\n]{0,40}", at in 0usize..40) {
            let bytes = text.as_bytes();
            let at = at.min(bytes.len());
            prop_assert_eq!(split(&[bytes], 5), split(&[&bytes[..at], &bytes[at..]], 5));
        }
    }
}
