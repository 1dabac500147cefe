//! A tunnel: the SNI must match the host of the CONNECT, then bytes pass both ways.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional_with_sizes};
use tokio::time::timeout;

use super::answer;
use super::connection::{Stream, Subject};
use super::dial::Open;
use super::passage::{Metered, Passage};
use super::shared::{Denial, Shared};
use crate::client_hello::{ClientHelloError, Read, Reader};
use crate::host::Host;
use crate::reason::{Fault, Reason};
use crate::rules::EgressRequest;

/// The copy buffer of each direction.
const BUFFER_BYTES: usize = 64 << 10;
/// TLS alerts, so that clients report more than a closed connection: `unrecognized_name` and `handshake_failure`.
const UNKNOWN_NAME: &[u8] = &[21, 3, 1, 0, 2, 2, 112];
const HANDSHAKE_FAILURE: &[u8] = &[21, 3, 1, 0, 2, 2, 40];

/// A tunnel whose CONNECT was answered, and whose `ClientHello` is not checked yet.
pub(super) struct PendingTunnel {
    pub(super) subject: Subject,
    pub(super) asked: EgressRequest,
    pub(super) open: Open,
}

/// Runs a tunnel. `early` has the bytes that came behind the CONNECT.
pub(super) async fn run<S: Stream>(
    shared: &Arc<Shared>,
    mut client: S,
    early: Vec<u8>,
    tunnel: PendingTunnel,
) {
    let PendingTunnel { subject, asked, open } = tunnel;
    let mut held = early;
    let reading = timeout(shared.limits.hello, hello(&mut client, &mut held, &asked.host)).await;
    let denial = match reading {
        Ok(Ok(())) => None,
        Ok(Err(denial)) => Some(denial),
        Err(_) => Some(Refused { denial: Denial::denied(Reason::SlowHello), alert: b"" }),
    };
    if let Some(Refused { denial, alert }) = denial {
        subject.refuse(shared, denial);
        // Close the outbound connection first: the server never sees a byte.
        drop(open);
        answer::finish(&mut client, alert).await;
        return;
    }
    if subject.allow(shared, &asked, &open).is_err() {
        return answer::finish(&mut client, HANDSHAKE_FAILURE).await;
    }
    let passage = Arc::new(Passage::new(shared.clone(), lifetime(shared, &open)));
    let Open { server, _permit, .. } = open;
    let mut server = Metered::new(server, passage.clone());
    passage
        .run(async {
            server.write_all(&held).await?;
            drop(held);
            // A half-close is passed on, and the other direction goes on.
            copy_bidirectional_with_sizes(&mut client, &mut server, BUFFER_BYTES, BUFFER_BYTES).await
        })
        .await;
}

/// The longest lifetime of a tunnel: not longer than the grant that allows it.
pub(super) fn lifetime(shared: &Shared, open: &Open) -> Duration {
    let limit = shared.limits.lifetime;
    let left = open.until.map(|until| until.duration_since(shared.now()));
    left.map_or(limit, |left| Duration::try_from(left).unwrap_or_default().min(limit))
}

struct Refused {
    denial: Denial,
    alert: &'static [u8],
}

/// Reads the `ClientHello` into `held` and checks its SNI.
async fn hello(client: &mut impl Stream, held: &mut Vec<u8>, host: &Host) -> Result<(), Refused> {
    let mut reader = Reader::default();
    let mut read = reader.push(held);
    let mut part = vec![0; 4 << 10];
    while read == Read::More {
        let count = client.read(&mut part).await.unwrap_or(0);
        if count == 0 {
            return Err(Refused { denial: Denial::failed(Fault::ClientLeft), alert: b"" });
        }
        let came = part.get(..count).unwrap_or_default();
        held.extend_from_slice(came);
        read = reader.push(came);
    }
    let judged = match read {
        Read::ClientHello(hello) => hello.check_sni(host),
        Read::Refused(bad) => Err(bad),
        Read::More => Ok(()),
    };
    judged.map_err(|bad| {
        let alert = match bad {
            ClientHelloError::NotTls => b"".as_slice(),
            ClientHelloError::SniMismatch | ClientHelloError::NoName => UNKNOWN_NAME,
            _ => HANDSHAKE_FAILURE,
        };
        Refused { denial: Denial::denied(bad.reason()).because(bad.to_string()), alert }
    })
}
