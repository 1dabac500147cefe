//! The limits of bytes that pass: idle timeout, lifetime, and the byte quota of the run.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, sleep_until};

use super::counts::Cut;
use super::shared::Shared;

/// The limits of one tunnel or exchange, and the time of its last byte.
pub(super) struct Passage {
    shared: Arc<Shared>,
    began: Instant,
    ends: Instant,
    /// When a byte last moved, in milliseconds from the beginning.
    last: AtomicU64,
    /// The limit that was reached, if any.
    cut: OnceLock<Cut>,
}

/// A later time. If there is no such time, one that no connection reaches.
fn after(time: Instant, later: Duration) -> Instant {
    time.checked_add(later).unwrap_or(time + Duration::from_hours(24 * 365))
}

impl Passage {
    /// A passage that begins now, and lasts at most this long.
    pub(super) fn new(shared: Arc<Shared>, lifetime: Duration) -> Self {
        let began = Instant::now();
        Self { shared, began, ends: after(began, lifetime), last: AtomicU64::new(0), cut: OnceLock::new() }
    }

    fn moved(&self) {
        let since = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(since, Ordering::Relaxed);
    }

    /// Returns once no byte moved for too long, or the passage lasts too long.
    pub(super) async fn limit(&self) {
        loop {
            let last = self.began + Duration::from_millis(self.last.load(Ordering::Relaxed));
            let idle = after(last, self.shared.limits.idle);
            let now = Instant::now();
            if now >= self.ends || now >= idle {
                let _ = self.cut.set(if now >= self.ends { Cut::Lifetime } else { Cut::Idle });
                return;
            }
            sleep_until(idle.min(self.ends)).await;
        }
    }

    /// Counts a passage that did not end by itself: with the limit that was reached, or else with this cause.
    pub(super) fn count_cut(&self, otherwise: Cut) {
        self.shared.count_cut(*self.cut.get().unwrap_or(&otherwise));
    }

    /// Runs a copy until it is over or a limit is reached, and counts a cut.
    pub(super) async fn run<T>(&self, copying: impl Future<Output = io::Result<T>>) {
        let copied = tokio::select! {
            copied = copying => copied.map(drop),
            () = self.limit() => Err(io::ErrorKind::TimedOut.into()),
        };
        if copied.is_err() {
            self.count_cut(Cut::Broken);
        }
    }

    fn take_bytes(&self, count: usize) -> io::Result<()> {
        self.shared.take_bytes(count).map_err(|cut| {
            let _ = self.cut.set(cut);
            io::ErrorKind::QuotaExceeded.into()
        })
    }
}

/// A connection to a server whose bytes count against the quota of the run, in both directions.
pub(super) struct Metered<S> {
    stream: S,
    passage: Arc<Passage>,
}

impl<S> Metered<S> {
    pub(super) fn new(stream: S, passage: Arc<Passage>) -> Self {
        Self { stream, passage }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(cx, buf))?;
        let count = buf.filled().len() - before;
        if let Err(error) = this.passage.take_bytes(count) {
            // The client gets none of them.
            buf.set_filled(before);
            return Poll::Ready(Err(error));
        }
        this.passage.shared.bytes_in.fetch_add(u64::try_from(count).unwrap_or(0), Ordering::Relaxed);
        this.passage.moved();
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        // Taken before the write, so that no byte leaves beyond the quota; the unwritten rest is given back.
        this.passage.take_bytes(buf.len())?;
        let written = Pin::new(&mut this.stream).poll_write(cx, buf);
        let count = if let Poll::Ready(Ok(count)) = &written { *count } else { 0 };
        this.passage.shared.give_back_bytes(buf.len() - count);
        this.passage.shared.bytes_out.fetch_add(u64::try_from(count).unwrap_or(0), Ordering::Relaxed);
        if written.is_ready() {
            this.passage.moved();
        }
        written
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
