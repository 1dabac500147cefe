//! What comes out of a container: two streams, each over a connection of its own so that a reader of one does not
//! have to read the other, and in the first of them the keeper's messages.

use std::fs::File;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use bollard::container::LogOutput;
use bollard::errors::Error;
use futures_util::{Stream, StreamExt as _};
use rustix::pipe::PipeFlags;
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::pipe::Sender;

use super::daemon::Daemon;
use super::state::State;
use super::wire::Scanner;

pub(super) type Output = Pin<Box<dyn Stream<Item = Result<LogOutput, Error>> + Send>>;

/// A pipe whose reading end blocks, as that of a process does; the other end is for the daemon's thread.
pub(super) fn pipe(daemon: &Daemon) -> io::Result<(File, Sender)> {
    let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&writer, true)?;
    Ok((reader.into(), daemon.enter(|| Sender::from_owned_fd(writer))?))
}

/// Passes on what comes, without the messages, until nothing comes any more.
pub(super) async fn pass(mut from: Output, to: Sender, scanner: Option<(Scanner, Arc<State>)>) {
    let (mut to, mut scanner) = (Some(to), scanner);
    while let Some(Ok(piece)) = from.next().await {
        let bytes = piece.into_bytes();
        match &mut scanner {
            None => write(&mut to, &bytes).await,
            Some((scanner, state)) => {
                let (output, messages) = scanner.push(&bytes);
                for message in messages {
                    state.hear(message);
                }
                write(&mut to, &output).await;
            }
        }
    }
    if let Some((mut scanner, state)) = scanner {
        write(&mut to, &scanner.rest()).await;
        state.silent();
    }
}

/// Writes while there is a reader. Without one the rest is thrown away: the command must not stop for that.
async fn write(to: &mut Option<Sender>, bytes: &[u8]) {
    if let Some(pipe) = to
        && pipe.write_all(bytes).await.is_err()
    {
        *to = None;
    }
}
