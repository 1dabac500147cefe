//! The hidden `herma-bench __bench-source`: sends zeros to each client that sends something first.

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::thread;

use crate::serve::argument;

/// The name of the hidden subcommand. A port follows it.
pub(crate) const SUBCOMMAND: &str = "__bench-source";

const BLOCK: usize = 256 << 10;

/// Sends until the process is killed; returns only if that fails. `args` is what follows the subcommand.
pub(crate) fn run(mut args: impl Iterator<Item = OsString>) -> io::Error {
    let listening =
        argument(&mut args, "a port").and_then(|port: u16| TcpListener::bind((Ipv4Addr::LOCALHOST, port)));
    let listener = match listening {
        Ok(listener) => listener,
        Err(error) => return error,
    };
    loop {
        let mut stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) => return error,
        };
        thread::spawn(move || {
            let block = vec![0; BLOCK];
            // Ends when the other side has had enough.
            if stream.read(&mut [0; 4096]).is_ok() {
                while stream.write_all(&block).is_ok() {}
            }
        });
    }
}
