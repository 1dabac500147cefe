//! Binary patches as git reads them, that expand to much more than their size.

use std::fmt::Write as _;

const ALPHABET: &[u8; 85] =
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";

/// A patch of a file that git knows as `old`, with the content that these hunks give it.
pub(crate) fn patch(path: &str, old: &str, new: &str, forward: &str) -> String {
    let mut text = format!("diff --git a/{path} b/{path}\nindex {old}..{new} 100644\nGIT binary patch\n");
    let _ = write!(text, "{forward}literal 0\nHcmV?d00001\n\n");
    text
}

/// A hunk of zeros, about as many compressed bytes as these.
pub(crate) fn zeros(compressed: usize) -> String {
    // One code of 13 bits repeats the last byte 258 times.
    let repeats = compressed * 8 / 13;
    let mut bits = Bits::default();
    bits.put(1, 1);
    bits.put(1, 2);
    bits.put_reversed(0x30, 8);
    for _ in 0..repeats {
        bits.put_reversed(0b1100_0101, 8);
        bits.put_reversed(0, 5);
    }
    bits.put_reversed(0, 7);
    let size = 1 + 258 * repeats;
    let sum = (u32::try_from(size % 65_521).unwrap() << 16) | 1;
    let stream = [&[0x78, 0x01][..], &bits.done(), &sum.to_be_bytes()].concat();
    format!("literal {size}\n{}", encode(&stream))
}

/// A hunk that copies all of the old content again and again, in about as many bytes as these.
pub(crate) fn copies(old_size: usize, bytes: usize) -> String {
    let count = bytes / 4;
    let mut delta = varint(old_size);
    delta.extend(varint(old_size * count));
    let size = u16::try_from(old_size).unwrap().to_le_bytes();
    for _ in 0..count {
        delta.extend([0x80 | 0x01 | 0x10 | 0x20, 0, size[0], size[1]]);
    }
    format!("delta {}\n{}", delta.len(), encode(&stored(&delta)))
}

fn varint(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = u8::try_from(number & 0x7f).unwrap();
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

/// A zlib stream that holds the bytes as they are.
fn stored(bytes: &[u8]) -> Vec<u8> {
    let mut stream = vec![0x78, 0x01];
    let mut chunks = bytes.chunks(65_535).peekable();
    while let Some(chunk) = chunks.next() {
        let length = u16::try_from(chunk.len()).unwrap();
        stream.push(u8::from(chunks.peek().is_none()));
        stream.extend(length.to_le_bytes());
        stream.extend((!length).to_le_bytes());
        stream.extend(chunk);
    }
    let (mut low, mut high) = (1u32, 0u32);
    for byte in bytes {
        low = (low + u32::from(*byte)) % 65_521;
        high = (high + low) % 65_521;
    }
    stream.extend(((high << 16) | low).to_be_bytes());
    stream
}

/// Lines of base85, each with its length, as git writes them.
fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 4 / 3);
    for line in bytes.chunks(52) {
        let length = u8::try_from(line.len()).unwrap();
        text.push(char::from(if length <= 26 { b'A' + length - 1 } else { b'a' + length - 27 }));
        for word in line.chunks(4) {
            let mut padded = [0; 4];
            padded[..word.len()].copy_from_slice(word);
            let mut number = u32::from_be_bytes(padded);
            let mut digits = [0; 5];
            for digit in digits.iter_mut().rev() {
                *digit = ALPHABET[(number % 85) as usize];
                number /= 85;
            }
            text.extend(digits.map(char::from));
        }
        text.push('\n');
    }
    text.push('\n');
    text
}

/// A stream of bits, lowest first.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    used: u32,
}

impl Bits {
    fn put(&mut self, value: u32, count: u32) {
        for at in 0..count {
            if self.used.is_multiple_of(8) {
                self.bytes.push(0);
            }
            let bit = u8::try_from((value >> at) & 1).unwrap() << (self.used % 8);
            *self.bytes.last_mut().unwrap() |= bit;
            self.used += 1;
        }
    }

    /// A code of the Huffman table goes in with its highest bit first.
    fn put_reversed(&mut self, value: u32, count: u32) {
        self.put(value.reverse_bits() >> (32 - count), count);
    }

    fn done(self) -> Vec<u8> {
        self.bytes
    }
}
