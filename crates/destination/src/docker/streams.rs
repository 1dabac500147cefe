//! The output of a container: two streams, each over its own connection so that reading one does not require
//! reading the other. The first also carries the keeper's messages.

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
use super::state::ContainerState;
use super::wire::MessageScanner;

pub(super) type LogStream = Pin<Box<dyn Stream<Item = Result<LogOutput, Error>> + Send>>;

/// A pipe with a blocking read end, as a process has; the client thread writes to it.
pub(super) fn pipe(daemon: &Daemon) -> io::Result<(File, Sender)> {
    let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&writer, true)?;
    Ok((reader.into(), daemon.enter(|| Sender::from_owned_fd(writer))?))
}

/// Forwards the output without the messages until the stream ends.
pub(super) async fn pass(
    mut from: LogStream,
    to: Sender,
    scanner: Option<(MessageScanner, Arc<ContainerState>)>,
) {
    let (mut to, mut scanner) = (Some(to), scanner);
    while let Some(Ok(chunk)) = from.next().await {
        let bytes = chunk.into_bytes();
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

/// Writes while there is a reader. Without one the rest is dropped: the command must not block.
async fn write(to: &mut Option<Sender>, bytes: &[u8]) {
    if let Some(pipe) = to
        && pipe.write_all(bytes).await.is_err()
    {
        *to = None;
    }
}
