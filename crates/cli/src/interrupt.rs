//! Termination signals: the first cancels the runs under way, a second one ends herma at once.

use std::io;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use herma_core::CancellationToken;
use herma_core::cancellation::{CancelReason, EndSignal};
use herma_destination::tool;
use rustix::process::{Signal, getpid, kill_process};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

use crate::failure::Failure;
use crate::screen::Screen;

/// Signals within this time count as one: a closing terminal and `timeout` send two.
const SAME_SIGNAL: Duration = Duration::from_millis(500);

/// The token that a signal cancels.
static LISTENING: OnceLock<CancellationToken> = OnceLock::new();

/// Whether a signal came that only cancels: who waits at a terminal stops waiting.
pub(crate) fn is_cancelled() -> bool {
    LISTENING.get().is_some_and(CancellationToken::is_cancelled)
}

/// From here on a termination signal cancels the runs instead of ending herma. Programs that are started from now on are
/// not affected: `exec` resets caught signals.
pub(crate) fn listen(cancellation: &CancellationToken, screen: &Screen) -> Result<(), Failure> {
    let cannot = |error: io::Error| Failure::internal(format!("signals cannot be listened to: {error}"));
    let listener = Listener::new().map_err(cannot)?;
    tool::use_own_process_group();
    let _ = LISTENING.set(cancellation.clone());
    let (cancellation, say) = (cancellation.clone(), screen.interjection());
    let listening = move || listener.listen(&cancellation, &say);
    thread::Builder::new().name("signals".to_owned()).spawn(listening).map_err(cannot)?;
    Ok(())
}

struct Listener {
    runtime: Runtime,
    streams: [Stream; 3],
    /// Signals that were ignored when herma started, as `nohup` does.
    ignored: Vec<EndSignal>,
}

impl Listener {
    fn new() -> io::Result<Self> {
        let status = std::fs::read_to_string("/proc/self/status")?;
        let ignored = EndSignal::ALL.into_iter().filter(|signal| is_ignored(*signal, &status)).collect();
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let inside = runtime.enter();
        let [hang_up, interrupt, terminate] = EndSignal::ALL.map(|end| signal(kind(end)));
        let streams = [hang_up?, interrupt?, terminate?];
        drop(inside);
        Ok(Self { runtime, streams, ignored })
    }

    /// Hears every signal, until herma ends.
    fn listen(self, cancellation: &CancellationToken, say: &dyn Fn(&str)) {
        let Self { runtime, streams: [mut hang_up, mut interrupt, mut terminate], ignored } = self;
        let mut first = None;
        runtime.block_on(async {
            loop {
                let signal = tokio::select! {
                    _ = hang_up.recv() => EndSignal::HangUp,
                    _ = interrupt.recv() => EndSignal::Interrupt,
                    _ = terminate.recv() => EndSignal::Terminate,
                };
                if ignored.contains(&signal) {
                    continue;
                }
                let first_at: Instant = *first.get_or_insert_with(Instant::now);
                if cancellation.cancel(CancelReason::Signal(signal)) {
                    say(&format!(
                        "{signal}: ending what runs and closing the run; a second signal ends herma at once"
                    ));
                } else if first_at.elapsed() > SAME_SIGNAL {
                    // The next herma command closes the run, as after every sudden end.
                    let _ = kill_process(getpid(), Signal::KILL);
                }
            }
        });
    }
}

fn kind(signal: EndSignal) -> SignalKind {
    match signal {
        EndSignal::HangUp => SignalKind::hangup(),
        EndSignal::Interrupt => SignalKind::interrupt(),
        EndSignal::Terminate => SignalKind::terminate(),
    }
}

/// Whether the signal was ignored by who started this process, by what the system says of it.
fn is_ignored(signal: EndSignal, status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask & (1 << (kind(signal).as_raw_value() - 1)) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_ignored_at_start_stay_ignored() {
        let status =
            "Name:\therma\nSigBlk:\t0000000000000003\nSigIgn:\t0000000000001001\nSigCgt:\t0000000000000002\n";
        let ignored = EndSignal::ALL.map(|signal| is_ignored(signal, status));
        assert_eq!(ignored, [true, false, false]);
        assert_eq!(EndSignal::ALL.map(|signal| is_ignored(signal, "")), [false; 3]);
    }
}
