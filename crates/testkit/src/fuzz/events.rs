//! Fuzzes the reader of events and their chain.

use herma_core::Event;
use herma_evidence::chain::{Chain, LONGEST_LINE, parse_line};

/// Any line is an event in its one spelling, or an error. The chain takes a line once, and any event whose links are
/// right.
pub fn events(input: &[u8]) {
    let (mut given, mut mended) = (Chain::new(None), Chain::new(None));
    let mut run_id = None;
    for line in input.split(|b| *b == b'\n') {
        let parsed = parse_line(line);
        let before = (given.seq(), given.prev());
        if let Ok(event) = given.follow(line) {
            assert_eq!(parsed.as_ref().ok(), Some(&event));
            assert_eq!(given.seq(), before.0 + 1);
            assert!(given.clone().follow(line).is_err(), "a line is no link to itself");
        } else {
            assert_eq!((given.seq(), given.prev()), before, "a broken line leaves the chain as it was");
        }
        let Ok(event) = parsed else { continue };
        assert_eq!(spell(&event), line, "an event has one spelling");
        let run_id = *run_id.get_or_insert(event.run_id);
        let event = Event { seq: mended.seq(), prev: mended.prev(), run_id, ..event };
        let line = spell(&event);
        if line.len() <= LONGEST_LINE {
            assert_eq!(mended.follow(&line), Ok(event));
        }
    }
}

fn spell(event: &Event) -> Vec<u8> {
    serde_json_canonicalizer::to_vec(event).expect("an event can be written")
}
