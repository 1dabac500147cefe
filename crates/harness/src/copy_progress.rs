//! Tells those who wait how many files of a large target are copied.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Copying fewer files is over before a person could read about it.
const MIN_FILES: usize = 20_000;
/// The time between two sentences.
const INTERVAL: Duration = Duration::from_secs(2);

/// The progress of one copy.
pub(crate) struct CopyProgress<'a> {
    files: usize,
    note: Box<dyn Fn(&str) + Sync + 'a>,
    copied: Mutex<Copied>,
}

struct Copied {
    files: usize,
    told_at: Option<Instant>,
}

impl<'a> CopyProgress<'a> {
    /// A copy of so many files.
    pub(crate) fn new(files: usize, note: impl Fn(&str) + Sync + 'a) -> Self {
        Self { files, note: Box::new(note), copied: Mutex::new(Copied { files: 0, told_at: None }) }
    }

    /// So many more are copied.
    pub(crate) fn add(&self, files: usize) {
        let mut copied = self.copied.lock().unwrap_or_else(PoisonError::into_inner);
        copied.files = self.files.min(copied.files + files);
        if self.files < MIN_FILES || copied.told_at.is_some_and(|at| at.elapsed() < INTERVAL) {
            return;
        }
        copied.told_at = Some(Instant::now());
        let (done, all) = (with_commas(copied.files), with_commas(self.files));
        drop(copied);
        (self.note)(&format!("copying {done} of {all} files"));
    }
}

/// `120,000`
pub(crate) fn with_commas(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_copy_tells_at_once_and_a_small_one_never() {
        for (files, wanted) in [(200_000, &["copying 1,000 of 200,000 files"][..]), (19_999, &[])] {
            let told = Mutex::new(Vec::new());
            let progress = CopyProgress::new(files, |text| told.lock().unwrap().push(text.to_owned()));
            progress.add(1_000);
            // Within the interval nothing is said again.
            progress.add(1_000);
            drop(progress);
            assert_eq!(told.into_inner().unwrap(), wanted);
        }
    }

    #[test]
    fn numbers_have_commas() {
        let shown = [0, 999, 1_000, 120_000, 1_234_567].map(with_commas);
        assert_eq!(shown, ["0", "999", "1,000", "120,000", "1,234,567"]);
    }
}
