//! Fuzzes the tap of streams.

use herma_dialect::Dialect;
use herma_dialect::tap::{Passed, StreamSummary, Tap};

/// Any stream passes as it is and is seen alike, however it arrives. With the usage chunk hidden the client gets the same
/// bytes however it arrives, and no other ones. The first byte says which dialect, the second how large the chunks are.
pub fn sse(input: &[u8]) {
    let (dialect, rest) = super::dialect(input);
    let (size, stream) = super::choice(rest);
    let plain = run(Tap::new(dialect), stream, stream.len());
    assert_eq!(plain.0, stream, "everything passes");
    assert_eq!(run(Tap::new(dialect), stream, size), plain);

    let hiding = || Tap::new(dialect).hide_usage_chunk();
    let hidden = run(hiding(), stream, stream.len());
    assert_eq!(hidden.1, plain.1, "what is hidden is seen all the same");
    assert_eq!(run(hiding(), stream, size), hidden);
    assert_eq!(run(hiding(), stream, 1), hidden);
    assert!(dialect == Dialect::Chat || hidden.0 == stream, "only chat has something to hide");
    let mut rest = stream.iter();
    assert!(hidden.0.iter().all(|byte| rest.any(|other| other == byte)), "nothing is added or moved");
}

/// The bytes that the client gets of a stream in chunks of a size, and the observed values.
fn run(mut tap: Tap, stream: &[u8], size: usize) -> (Vec<u8>, StreamSummary) {
    let mut client = Vec::new();
    for chunk in stream.chunks(size.max(1)) {
        match tap.feed(chunk) {
            Passed::All => client.extend_from_slice(chunk),
            Passed::Parts { earlier, of_chunk } => {
                client.extend(earlier);
                for part in of_chunk {
                    client.extend_from_slice(&chunk[part]);
                }
            }
        }
    }
    let (rest, seen) = tap.finish();
    client.extend(rest);
    (client, seen)
}
