//! Carries bytes between two sides, through fixed buffers and under the limits.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::{Instant, sleep_until};

use super::counts::Cut;
use super::shared::Shared;

/// The buffer of one direction.
pub(super) const BUFFER: usize = 64 << 10;

/// What both directions of a tunnel share.
pub(super) struct Passage<'a> {
    shared: &'a Shared,
    began: Instant,
    ends: Instant,
    /// When a byte last moved, in milliseconds from the beginning.
    last: AtomicU64,
}

/// Which way bytes go.
#[derive(Clone, Copy, Debug)]
pub(super) enum Direction {
    Out,
    In,
}

/// A later time. Where there is no such time, one that nobody lives to see.
fn after(time: Instant, later: Duration) -> Instant {
    time.checked_add(later).unwrap_or(time + Duration::from_hours(24 * 365))
}

impl<'a> Passage<'a> {
    /// A passage that begins now, and lasts at most this long.
    pub(super) fn new(shared: &'a Shared, lifetime: Duration) -> Self {
        let began = Instant::now();
        Self { shared, began, ends: after(began, lifetime), last: AtomicU64::new(0) }
    }

    fn moved(&self) {
        let since = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(since, Ordering::Relaxed);
    }

    /// Writes bytes that were read, if the run may move them.
    pub(super) async fn write(
        &self,
        to: &mut (impl AsyncWrite + Unpin),
        bytes: &[u8],
        direction: Direction,
    ) -> Result<(), Cut> {
        self.shared.take_bytes(bytes.len())?;
        let counter = match direction {
            Direction::Out => &self.shared.bytes_out,
            Direction::In => &self.shared.bytes_in,
        };
        counter.fetch_add(u64::try_from(bytes.len()).unwrap_or(0), Ordering::Relaxed);
        self.moved();
        to.write_all(bytes).await.map_err(|_| Cut::Broken)?;
        self.moved();
        Ok(())
    }

    /// Carries bytes until there are no more, but at most `most`. Gives how many came.
    pub(super) async fn carry(
        &self,
        from: &mut (impl AsyncRead + Unpin),
        to: &mut (impl AsyncWrite + Unpin),
        direction: Direction,
        most: u64,
    ) -> Result<u64, Cut> {
        let mut buffer = vec![0; BUFFER];
        let mut carried = 0;
        while carried < most {
            let room = usize::try_from(most - carried).unwrap_or(BUFFER).min(BUFFER);
            let room = buffer.get_mut(..room).unwrap_or_default();
            let count = from.read(room).await.map_err(|_| Cut::Broken)?;
            if count == 0 {
                break;
            }
            carried += u64::try_from(count).unwrap_or(0);
            self.write(to, room.get(..count).unwrap_or_default(), direction).await?;
        }
        Ok(carried)
    }

    /// Comes back when nothing moved for too long, or when all of it lasts too long.
    pub(super) async fn limit(&self) -> Cut {
        loop {
            let last = self.began + Duration::from_millis(self.last.load(Ordering::Relaxed));
            let idle = after(last, self.shared.limits.idle);
            let now = Instant::now();
            if now >= self.ends {
                return Cut::Lifetime;
            }
            if now >= idle {
                return Cut::Idle;
            }
            sleep_until(idle.min(self.ends)).await;
        }
    }

    /// Runs something until it is over or a limit is reached, and counts how it ended.
    pub(super) async fn run(&self, passing: impl Future<Output = Result<(), Cut>>) {
        let ended = tokio::select! {
            ended = passing => ended,
            cut = self.limit() => Err(cut),
        };
        if let Err(cut) = ended {
            self.shared.count_cut(cut);
        }
    }
}
