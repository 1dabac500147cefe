//! How much is measured.

use std::time::Duration;

/// How much is measured of each contender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// How often each contender gets its turn; medians over the rounds count.
    pub rounds: u32,
    /// Connections that ask at the same time.
    pub connections: usize,
    /// How long they ask.
    pub asking: Duration,
    /// How long the machine is left alone after that.
    pub settling: Duration,
    /// Requests on one connection of each, in turns.
    pub turns: usize,
    /// Streams on one connection of each of which the first byte is timed, in turns.
    pub first_bytes: usize,
    /// No more time than this is spent for each of them on requests, or on first bytes, however few there are by then.
    pub taking_turns: Duration,
    /// Streams at the same time of which the chunks are counted.
    pub streams: usize,
    /// Chunks of each of them.
    pub chunks: u32,
    /// Between two of its chunks.
    pub pace: Duration,
    /// Streams that are open while memory is read.
    pub open_streams: usize,
    /// Whether gateways that take long to start are left out.
    pub only_what_starts_at_once: bool,
}

impl Plan {
    /// The plan that targets are judged by: some seconds of each contender in each round.
    #[must_use]
    pub(crate) fn full(rounds: u32) -> Self {
        Self {
            rounds,
            connections: 64,
            asking: Duration::from_secs(2),
            settling: Duration::from_secs(2),
            turns: 2_000,
            first_bytes: 200,
            taking_turns: Duration::from_secs(4),
            streams: 32,
            chunks: 400,
            pace: Duration::from_millis(5),
            open_streams: 1_000,
            only_what_starts_at_once: false,
        }
    }

    /// Shows within seconds that everything can be measured; its figures say little.
    #[must_use]
    pub(crate) fn quick() -> Self {
        Self {
            rounds: 1,
            connections: 8,
            asking: Duration::from_millis(200),
            settling: Duration::ZERO,
            turns: 50,
            first_bytes: 10,
            taking_turns: Duration::from_secs(4),
            streams: 4,
            chunks: 50,
            pace: Duration::from_millis(1),
            open_streams: 20,
            only_what_starts_at_once: true,
        }
    }
}
