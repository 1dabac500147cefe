//! That herma was told to end: one word, said once, that everything which waits can hear.

use std::fmt;
use std::sync::{Arc, OnceLock};

/// A signal by which a program is told to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndSignal {
    /// Its terminal is gone.
    HangUp,
    /// Somebody pressed Ctrl-C.
    Interrupt,
    /// Somebody, or the system, asks for it.
    Terminate,
}

impl EndSignal {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::HangUp, Self::Interrupt, Self::Terminate];

    /// Its name, as the system calls it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::HangUp => "SIGHUP",
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
        }
    }
}

impl fmt::Display for EndSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether herma was told to end. Clones are one and the same.
#[derive(Clone, Debug, Default)]
pub struct Interruption(Arc<OnceLock<EndSignal>>);

impl Interruption {
    /// Tells it to all who look; false if it was told before, which stands.
    #[must_use = "whoever tells it twice may want to know"]
    pub fn tell(&self, signal: EndSignal) -> bool {
        self.0.set(signal).is_ok()
    }

    /// The signal that told it, if one has.
    #[must_use]
    pub fn told(&self) -> Option<EndSignal> {
        self.0.get().copied()
    }

    /// Whether it was told.
    #[must_use]
    pub fn is_told(&self) -> bool {
        self.told().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_signal_stands_and_every_clone_hears_it() {
        let (one, other) = (Interruption::default(), Interruption::default());
        let clone = one.clone();
        assert_eq!((one.told(), clone.is_told()), (None, false));
        assert!(one.tell(EndSignal::Terminate));
        assert!(!clone.tell(EndSignal::Interrupt));
        assert_eq!((one.told(), clone.told()), (Some(EndSignal::Terminate), Some(EndSignal::Terminate)));
        assert!(!other.is_told());
    }
}
