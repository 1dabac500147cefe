//! Output for people and programs: the only place that writes to the terminal.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, IsTerminal as _, Write};
use std::process::ExitCode;
use std::sync::{Mutex, OnceLock, PoisonError};

use herma_core::Status;
/// Text that an agent may have written, made safe for a terminal. It may have several lines.
pub(crate) use herma_core::visible::visible as safe;
/// The same within one line of output: the text cannot forge another line.
pub(crate) use herma_core::visible::visible_line as safe_line;
use herma_destination::Pager;
use serde::Serialize;

use crate::failure::Failure;
use crate::output::error_output;

/// Output for people and programs.
pub(crate) struct Screen {
    json: bool,
    color: bool,
    /// Whether log records are written to standard error too.
    logs: bool,
    /// The columns of the terminal on standard output; none where it is none or has no size.
    columns: Option<usize>,
    /// The error that lost a part of the output.
    lost: OnceLock<io::Error>,
    /// The pager, and where it is found.
    pager: Option<(Pager, OsString)>,
    /// The output so far, if it is for the pager.
    paged: Mutex<Option<Vec<u8>>>,
}

/// How a text is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Good,
    Bad,
    Warn,
    Dim,
    Bold,
    Note,
}

impl Screen {
    pub(crate) fn new(json: bool, color: bool) -> Self {
        let size =
            io::stdout().is_terminal().then(|| rustix::termios::tcgetwinsize(io::stdout()).ok()).flatten();
        let columns = size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0);
        let (lost, paged) = (OnceLock::new(), Mutex::new(None));
        Self { json, color, logs: false, columns, lost, pager: None, paged }
    }

    /// The same with a pager for long output.
    pub(crate) fn with_pager(self, pager: Option<Pager>, search_path: OsString) -> Self {
        Self { pager: pager.map(|pager| (pager, search_path)), ..self }
    }

    /// From now on output is for the pager, if it is longer than the terminal.
    pub(crate) fn page(&self) {
        if self.pager.is_some() {
            self.paged.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default();
        }
    }

    /// Shows the output that was kept for the pager. Without one that starts it goes to the terminal.
    fn end_paging(&self) {
        let Some(text) = self.paged.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
        let rows = rustix::termios::tcgetwinsize(io::stdout()).map_or(24, |size| usize::from(size.ws_row));
        let is_long = text.split(|byte| *byte == b'\n').count() > rows.max(2);
        if let Some((pager, search_path)) = self.pager.as_ref().filter(|_| is_long) {
            match pager.show(&text, search_path) {
                Ok(()) => return,
                Err(error) => {
                    self.note(format_args!("the pager failed: {error}; `--no-pager` does without it"));
                }
            }
        }
        self.keep(io::stdout().lock().write_all(&text));
    }

    /// The same where log records are written: a line that moves would be torn by them.
    pub(crate) fn beside_logs(self) -> Self {
        Self { logs: true, ..self }
    }

    /// The columns of the terminal; none where output is no terminal.
    pub(crate) fn columns(&self) -> Option<usize> {
        self.columns
    }

    /// The same on a terminal of this size.
    #[cfg(test)]
    pub(crate) fn with_columns(self, columns: Option<usize>) -> Self {
        Self { columns, ..self }
    }

    /// Whether standard output is a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        !self.json && io::stdout().is_terminal()
    }

    /// Whether the output is for a program.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Whether a terminal shows progress.
    pub(crate) fn is_live(&self) -> bool {
        !self.json && !self.logs && io::stderr().is_terminal()
    }

    /// A line on standard output.
    pub(crate) fn line(&self, text: impl fmt::Display) {
        if let Some(paged) = &mut *self.paged.lock().unwrap_or_else(PoisonError::into_inner) {
            // Writing to a vector cannot fail.
            _ = writeln!(paged, "{text}");
            return;
        }
        self.keep(writeln!(io::stdout().lock(), "{text}"));
    }

    /// Bytes on standard output, as they are.
    pub(crate) fn bytes(&self, bytes: &[u8]) {
        self.keep(io::stdout().lock().write_all(bytes));
    }

    /// clap's own text, on the stream where it belongs.
    pub(crate) fn usage(&self, text: &clap::Error) {
        let printed = text.print();
        if !text.use_stderr() {
            self.keep(printed);
        }
    }

    fn keep(&self, written: io::Result<()>) {
        match written {
            // A reader that went away, like `head`, has read what it wanted.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => _ = self.lost.set(error),
            _ => {}
        }
    }

    /// The exit code of a command that has written everything. A reader of partial output must not mistake it for
    /// the whole.
    pub(crate) fn end(&self, code: ExitCode) -> ExitCode {
        self.end_paging();
        self.keep(io::stdout().lock().flush());
        let Some(error) = self.lost.get() else { return code };
        self.note(format_args!(
            "{} the output could not be written: {error}",
            self.paint(Tone::Bad, "error:")
        ));
        Failure::INTERNAL.into()
    }

    /// A line on standard error.
    #[allow(clippy::unused_self, reason = "a Screen is what lets a command write at all")]
    pub(crate) fn note(&self, text: impl fmt::Display) {
        let _ = writeln!(io::stderr().lock(), "{text}");
    }

    /// Writes a line on standard error from any thread. A progress line is overwritten.
    pub(crate) fn interjection(&self) -> impl Fn(&str) + Send + use<> {
        let start = if self.is_live() { "\r\u{1b}[K" } else { "" };
        move |text| drop(writeln!(io::stderr().lock(), "{start}{text}"))
    }

    /// Prints a value for a program. People read it too, so invisible characters are escaped; the value is the same.
    pub(crate) fn value(&self, value: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(value).map_err(Failure::internal)?;
        self.line(escaped(&text));
        Ok(())
    }

    /// The same on one line, for readers of a stream.
    pub(crate) fn value_line(&self, value: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string(value).map_err(Failure::internal)?;
        self.line(escaped(&text));
        Ok(())
    }

    /// Shows a failure and gives its exit code.
    pub(crate) fn fail(&self, failure: &Failure) -> ExitCode {
        if self.json {
            let _ = self.value(&error_output(failure));
        } else {
            self.note(format_args!("{} {}", self.paint(Tone::Bad, "error:"), safe(&failure.what)));
            if let Some(next) = &failure.next_step {
                self.note(format_args!("{} {}", self.paint(Tone::Bold, "next:"), safe(next)));
            }
        }
        failure.code.into()
    }

    /// The text in this tone, where there is colour.
    pub(crate) fn paint(&self, tone: Tone, text: impl fmt::Display) -> String {
        if !self.color {
            return text.to_string();
        }
        let code = match tone {
            Tone::Good => "32",
            Tone::Bad => "31",
            Tone::Warn => "33",
            Tone::Dim => "2",
            Tone::Bold => "1",
            Tone::Note => "36",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }

    /// A status in its tone.
    pub(crate) fn status(&self, status: Status) -> String {
        let tone = match status {
            Status::Pass => Tone::Good,
            Status::Fail => Tone::Bad,
            Status::Blocked => Tone::Warn,
        };
        self.paint(tone, status.as_str())
    }
}

/// Writes one log record to standard error. Hosts in it are named by agents.
pub(crate) struct LogLine {
    pub(crate) is_json: bool,
}

impl LogLine {
    fn visible(&self, record: &[u8]) -> String {
        let record = String::from_utf8_lossy(record);
        let line = record.strip_suffix('\n').unwrap_or(&record);
        if self.is_json { escaped(line) } else { safe_line(line) }
    }
}

impl Write for LogLine {
    fn write(&mut self, record: &[u8]) -> io::Result<usize> {
        writeln!(io::stderr().lock(), "{}", self.visible(record))?;
        Ok(record.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().lock().flush()
    }
}

/// JSON in which every character that [`safe`] would spell out is a `\uXXXX`. `serde_json` escapes those below a space
/// itself, and what it puts around strings is plain ASCII, so each of the others stands inside a string.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        let (mut bytes, mut units) = ([0; 4], [0; 2]);
        let spelled: &str = c.encode_utf8(&mut bytes);
        if c < '\u{7f}' || safe(spelled) == spelled {
            text.push(c);
        } else {
            text.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        }
    }
    text
}

/// A number of bytes as a person reads it.
#[allow(clippy::cast_precision_loss, reason = "one digit after the point for a person")]
pub(crate) fn readable_bytes(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["B", "KiB", "MiB", "GiB"];
    let (mut value, mut unit) = (bytes as f64, 0);
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        (value, unit) = (value / 1024.0, unit + 1);
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_reader_that_went_away_has_lost_nothing() {
        let screen = Screen::new(false, false);
        screen.keep(Ok(()));
        screen.keep(Err(io::ErrorKind::BrokenPipe.into()));
        assert!(screen.lost.get().is_none());
        screen.keep(Err(io::ErrorKind::StorageFull.into()));
        screen.keep(Err(io::ErrorKind::Other.into()));
        assert_eq!(screen.lost.get().unwrap().kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn a_log_record_is_one_visible_line() {
        let text = LogLine { is_json: false }.visible("host=\u{1b}[2Ja\nb\u{202e}\n".as_bytes());
        assert_eq!(text, "host=\\u{1b}[2Ja\\nb\\u{202e}");
        let json = LogLine { is_json: true }.visible("{\"host\":\"a\u{202e}\u{9b}\"}\n".as_bytes());
        assert_eq!(json, r#"{"host":"a\u202e\u009b"}"#);
    }

    #[test]
    fn invisible_characters_are_escaped_in_json() {
        let json = serde_json::to_string("a\u{202e}b\u{9b}31m\u{7f}\u{e0041}\u{1b}[1m").unwrap();
        assert_eq!(escaped(&json), r#""a\u202eb\u009b31m\u007f\udb40\udc41\u001b[1m""#);
        let plain = serde_json::to_string_pretty(&["zwölf \"Boxkämpfer\"\n", "日本語 🙂"]).unwrap();
        assert_eq!(escaped(&plain), plain);
    }

    proptest! {
        #[test]
        fn the_value_stays_the_same_and_nothing_unseen_is_left(key: String, value: String) {
            let value = serde_json::json!({ key: [value] });
            let text = escaped(&serde_json::to_string_pretty(&value).unwrap());
            prop_assert_eq!(safe(&text), text.as_str());
            prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
        }
    }
}
