//! Shared by the tests.

use std::fs;
use std::path::Path;

use herma_dialect::Dialect;
use herma_dialect::tap::{Passed, StreamSummary, Tap};

pub(crate) const DIALECTS: [Dialect; 3] = [Dialect::Chat, Dialect::Responses, Dialect::Messages];

/// A golden file, by its path under `tests/golden`.
pub(crate) fn golden(path: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(path)).unwrap()
}

/// All golden files of a dialect that end like this, by their paths.
pub(crate) fn all_golden(dialect: Dialect, extension: &str) -> Vec<String> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(dialect.to_string());
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(extension))
        .map(|name| format!("{dialect}/{name}"))
        .collect();
    names.sort();
    names
}

/// The bytes for the client and the summary, for a stream in these chunks.
pub(crate) fn run<'a>(mut tap: Tap, chunks: impl IntoIterator<Item = &'a [u8]>) -> (Vec<u8>, StreamSummary) {
    let mut client = Vec::new();
    for chunk in chunks {
        pass(&mut client, chunk, tap.feed(chunk));
    }
    let (rest, seen) = tap.finish();
    client.extend(rest);
    (client, seen)
}

/// Appends what passes of a chunk.
pub(crate) fn pass(client: &mut Vec<u8>, chunk: &[u8], passed: Passed) {
    match passed {
        Passed::All => client.extend_from_slice(chunk),
        Passed::Parts { earlier, of_chunk } => {
            client.extend(earlier);
            for part in of_chunk {
                client.extend_from_slice(&chunk[part]);
            }
        }
    }
}
