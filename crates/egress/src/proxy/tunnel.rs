//! A tunnel: the SNI must match the host of the CONNECT, then bytes pass both ways.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, split};
use tokio::time::timeout;

use super::answer;
use super::connection::{Stream, Subject};
use super::copy::{Direction, Passage};
use super::counts::Cut;
use super::dial::Open;
use super::shared::{Denial, Shared};
use crate::client_hello::{BadHello, Read, Reader};
use crate::host::Host;
use crate::reason::{Fault, Reason};
use crate::rules::EgressRequest;

const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";
/// TLS alerts, so that clients report more than a closed connection: `unrecognized_name` and `handshake_failure`.
const UNKNOWN_NAME: &[u8] = &[21, 3, 1, 0, 2, 2, 112];
const HANDSHAKE_FAILURE: &[u8] = &[21, 3, 1, 0, 2, 2, 40];

pub(super) async fn run<S: Stream>(
    shared: &Shared,
    mut client: S,
    subject: &Subject,
    asked: &EgressRequest,
    open: Open,
    rest: Vec<u8>,
) {
    if client.write_all(ESTABLISHED).await.is_err() {
        subject.refuse(shared, Denial::failed(Fault::ClientLeft));
        return;
    }
    let mut held = rest;
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
    if subject.allow(shared, asked, &open).is_err() {
        return answer::finish(&mut client, HANDSHAKE_FAILURE).await;
    }
    let passage = Passage::new(shared, lifetime(shared, &open));
    passage.run(both_ways(&passage, client, open, held)).await;
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
            BadHello::NotTls => b"".as_slice(),
            BadHello::SniMismatch | BadHello::NoName => UNKNOWN_NAME,
            _ => HANDSHAKE_FAILURE,
        };
        Refused { denial: Denial::denied(bad.reason()).because(bad.to_string()), alert }
    })
}

/// Copies both ways. A half-close is passed on, and the other direction goes on.
async fn both_ways<S: Stream>(
    passage: &Passage<'_>,
    client: S,
    mut open: Open,
    held: Vec<u8>,
) -> Result<(), Cut> {
    let (mut from_server, mut to_server) = open.server.split();
    let (mut from_client, mut to_client) = split(client);
    let out = async {
        passage.write(&mut to_server, &held, Direction::Out).await?;
        drop(held);
        passage.carry(&mut from_client, &mut to_server, Direction::Out, u64::MAX).await?;
        to_server.shutdown().await.map_err(|_| Cut::Broken)
    };
    let back = async {
        passage.carry(&mut from_server, &mut to_client, Direction::In, u64::MAX).await?;
        to_client.shutdown().await.map_err(|_| Cut::Broken)
    };
    tokio::try_join!(out, back).map(drop)
}
