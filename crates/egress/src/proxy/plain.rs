//! Plain HTTP: one request is forwarded, its response comes back, and the connection ends.
//!
//! The response passes unchanged. A redirect is the client's to follow, with a new request and a new decision.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, split};

use super::answer;
use super::connection::{Stream, Subject};
use super::copy::{Direction, Passage};
use super::counts::Cut;
use super::dial::Open;
use super::request::Plain;
use super::shared::Shared;
use super::tunnel::lifetime;
use crate::rules::EgressRequest;

pub(super) async fn run<S: Stream>(
    shared: &Shared,
    mut client: S,
    subject: &Subject,
    asked: &EgressRequest,
    open: Open,
    plain: Plain,
    rest: Vec<u8>,
) {
    if let Err(decided) = subject.allow(shared, asked, &open) {
        return answer::finish(&mut client, &answer::refusal(&decided)).await;
    }
    let passage = Passage::new(shared, lifetime(shared, &open));
    passage.run(exchange(&passage, client, open, plain, rest)).await;
}

async fn exchange<S: Stream>(
    passage: &Passage<'_>,
    client: S,
    mut open: Open,
    plain: Plain,
    rest: Vec<u8>,
) -> Result<(), Cut> {
    let (mut from_server, mut to_server) = open.server.split();
    let (mut from_client, mut to_client) = split(client);
    let ask = async {
        passage.write(&mut to_server, &plain.head, Direction::Out).await?;
        let here = usize::try_from(plain.body).unwrap_or(usize::MAX).min(rest.len());
        let (body, more) = rest.split_at_checked(here).unwrap_or_default();
        passage.write(&mut to_server, body, Direction::Out).await?;
        let left = plain.body - u64::try_from(here).unwrap_or(0);
        let came = passage.carry(&mut from_client, &mut to_server, Direction::Out, left).await?;
        if came < left {
            return Err(Cut::Broken);
        }
        // No decision was made on a second request.
        if !more.is_empty() || from_client.read(&mut [0]).await.is_ok_and(|count| count > 0) {
            return Err(Cut::Ahead);
        }
        // The request is complete; the response may still come.
        std::future::pending().await
    };
    let answer = async {
        passage.carry(&mut from_server, &mut to_client, Direction::In, u64::MAX).await?;
        to_client.shutdown().await.map_err(|_| Cut::Broken)
    };
    tokio::select! {
        biased;
        answered = answer => answered,
        asked = ask => asked,
    }
}
