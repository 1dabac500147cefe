//! The program of the engine `stub`: an agent that does what its assignment's script says, well or badly.
//!
//! `herma-stub --identity` says who it is. Without an argument it reads its assignment on standard input, works in the
//! current directory, and says what it does on standard output.

mod play;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::ExitCode;

use herma_engines::stub::{IDENTITY_FLAG, NAME, StubIdentity};

/// The program's own version.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The exit code where the arguments or the assignment mean nothing.
const BAD_INPUT: u8 = 2;

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    match &args[..] {
        [] => match io::stdout().as_fd().try_clone_to_owned() {
            Ok(output) => ExitCode::from(play::play(io::stdin().lock(), Path::new("."), File::from(output))),
            Err(_) => ExitCode::FAILURE,
        },
        [flag] if flag == IDENTITY_FLAG => identify().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS),
        _ => {
            let usage =
                format!("usage: herma-stub {IDENTITY_FLAG}, or herma-stub with an assignment on stdin\n");
            let _ = io::stderr().write_all(usage.as_bytes());
            ExitCode::from(BAD_INPUT)
        }
    }
}

fn identify() -> io::Result<()> {
    let engine = NAME.parse().map_err(io::Error::other)?;
    let mut line = serde_json::to_vec(&StubIdentity { engine, version: VERSION.to_owned() })?;
    line.push(b'\n');
    io::stdout().write_all(&line)
}
