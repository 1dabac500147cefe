//! A person at a real terminal: a pty that is the command's controlling terminal, read while the person types.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::{Ended, Herma, Started, until};

/// A command at a terminal.
pub(crate) struct AtTerminal {
    started: Started,
    keyboard: File,
    screen: Arc<Mutex<Vec<u8>>>,
    /// How much of the screen earlier questions have shown.
    read: usize,
}

impl Herma {
    /// Starts a command at a terminal of 80 columns and 24 rows, in this directory.
    pub(crate) fn at_terminal(&self, directory: &Path, args: &[&str]) -> AtTerminal {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        tcsetwinsize(&terminal, Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
        let inside = File::options().read(true).write(true).open(name).unwrap();
        // The shell gives its own streams to the command: all three are the terminal, which is also the controlling one.
        let script = "cd \"$1\" && shift && exec \"$@\" <&0 >&0 2>&0";
        let wrapper = ["setsid", "--ctty", "--wait", "sh", "-c", script, "sh", directory.to_str().unwrap()];
        let words: Vec<OsString> = wrapper.iter().map(OsString::from).chain(self.words()).collect();
        let started = Started::reading(&words, &self.variables, self.dir.path(), args, inside.into());
        let keyboard = File::from(terminal);
        let screen = Arc::new(Mutex::new(Vec::new()));
        let (mut shown, written) = (keyboard.try_clone().unwrap(), Arc::clone(&screen));
        thread::spawn(move || {
            let mut part = [0; 4096];
            // At the end of the last process at the terminal the read fails.
            while let Ok(length @ 1..) = shown.read(&mut part) {
                written.lock().unwrap().extend_from_slice(&part[..length]);
            }
        });
        AtTerminal { started, keyboard, screen, read: 0 }
    }
}

impl AtTerminal {
    /// The output of the terminal so far.
    pub(crate) fn shown(&self) -> String {
        String::from_utf8_lossy(&self.screen.lock().unwrap()).replace("\r\n", "\n")
    }

    /// Waits until this is asked, and types the answer.
    pub(crate) fn answer(&mut self, question: &str, answer: &str) {
        self.wait_for(question);
        writeln!(self.keyboard, "{answer}").unwrap();
    }

    /// Waits until this is shown, after everything that was waited for before.
    pub(crate) fn wait_for(&mut self, text: &str) {
        let mut at = None;
        until(text, || {
            let is_alive = self.started.is_alive();
            if !is_alive {
                // Its last output may still arrive.
                thread::sleep(Duration::from_millis(200));
            }
            let shown = self.shown();
            at = shown[self.read..].find(text).map(|found| self.read + found + text.len());
            assert!(at.is_some() || is_alive, "it ended without {text:?}: {shown}");
            at.is_some()
        });
        self.read = at.unwrap();
    }

    /// The same for a command that installs something first.
    #[allow(dead_code, reason = "only the tests of the real agents install something at a terminal")]
    pub(crate) fn wait_patiently_for(&mut self, text: &str) {
        while self.started.is_alive() && !self.shown()[self.read..].contains(text) {
            thread::sleep(Duration::from_millis(20));
        }
        self.wait_for(text);
    }

    /// Presses Ctrl-C.
    pub(crate) fn interrupt(&mut self) {
        self.keyboard.write_all(b"\x03").unwrap();
    }

    /// Waits for the end; everything that was shown is its output.
    pub(crate) fn end(self) -> Ended {
        let ended = self.started.end_patiently();
        let stdout = String::from_utf8_lossy(&self.screen.lock().unwrap()).replace("\r\n", "\n");
        Ended { stdout, ..ended }
    }
}
