//! One connection of a client.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use http::{Method, Response};
use tokio::sync::{Notify, watch};

use super::answer::Answer;
use super::head::{BadHead, Head};
use super::listener::Stream;
use super::respond::{Asker, Responding};
use super::routes;
use super::runs::Run;
use super::shared::Shared;
use super::talk::{Incoming, Left, Talk, lock};
use crate::patience::Patience;

/// One connection of a client.
#[derive(Debug)]
pub(super) struct Connection {
    id: u64,
    /// The runs whose tokens came over it.
    runs: Mutex<Vec<Arc<Run>>>,
    hang_up: Arc<HangUp>,
}

/// Ends a connection, whatever it is at.
#[derive(Debug, Default)]
pub(super) struct HangUp {
    is_told: AtomicBool,
    wake: Notify,
}

impl HangUp {
    pub(super) fn tell(&self) {
        self.is_told.store(true, Ordering::Release);
        self.wake.notify_one();
    }
}

impl Connection {
    /// The run ends this connection when it ends.
    pub(super) fn belongs_to(&self, run: &Arc<Run>) {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        if !runs.iter().any(|known| Arc::ptr_eq(known, run)) {
            run.connected(self.id, &self.hang_up);
            runs.push(run.clone());
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        for run in self.runs.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            run.disconnected(self.id);
        }
    }
}

/// Serves a connection until the client leaves, its run ends, or the router drains.
pub(super) async fn serve(shared: Arc<Shared>, stream: Box<dyn Stream>, draining: watch::Receiver<bool>) {
    let hang_up = Arc::new(HangUp::default());
    let connection =
        Connection { id: shared.runs.connection_id(), runs: Mutex::default(), hang_up: hang_up.clone() };
    let mut drains = draining.clone();
    let (mut ends, mut changes) = (pin!(hang_up.wake.notified()), pin!(drains.changed()));
    let mut serving = pin!(requests(&shared, &connection, stream, &draining));
    let mut is_listening = false;
    poll_fn(|cx| {
        // Once is enough for this task to be woken: what it is woken for is looked at by itself.
        if !std::mem::replace(&mut is_listening, true) {
            let _ = (ends.as_mut().poll(cx), changes.as_mut().poll(cx));
        }
        if hang_up.is_told.load(Ordering::Acquire) { Poll::Ready(()) } else { serving.as_mut().poll(cx) }
    })
    .await;
}

/// Answers one request after the other.
async fn requests(
    shared: &Arc<Shared>,
    connection: &Connection,
    stream: Box<dyn Stream>,
    draining: &watch::Receiver<bool>,
) {
    // An error says that the router is gone.
    let drains = || draining.has_changed().unwrap_or(true);
    let mut talk = Mutex::new(Talk::new(stream, shared.settings().limits.idle));
    let mut patience = Patience::new(shared.settings().limits.head);
    loop {
        patience.rewarded();
        let head = poll_fn(|cx| {
            let talk = get(&mut talk);
            if let Poll::Ready(head) = talk.poll_head(cx) {
                return Poll::Ready(head);
            }
            if talk.is_idle() && drains() {
                return Poll::Ready(None);
            }
            patience.poll_over(cx).map(|()| None)
        });
        // One that does not come, in time or in order, ends the connection.
        let refused = match head.await {
            Some(Ok(head)) => match one(shared, connection, &mut talk, &head, &drains).await {
                Ok(Next::Request) => continue,
                Ok(Next::End(refused)) => refused,
                Err(Left) => return,
            },
            Some(Err(bad)) => Some(bad),
            None => None,
        };
        get(&mut talk).end(refused).await;
        return;
    }
}

/// What follows an answer.
enum Next {
    Request,
    End(Option<BadHead>),
}

/// Answers one request.
async fn one(
    shared: &Arc<Shared>,
    connection: &Connection,
    talk: &mut Mutex<Talk>,
    head: &Head,
    drains: &impl Fn() -> bool,
) -> Result<Next, Left> {
    let response = answered(shared, connection, talk, head).await?;
    let talk = get(talk);
    let asker = Asker {
        is_old: head.is_old,
        wants_head: head.method == Method::HEAD,
        is_last: head.is_last || !talk.is_read() || drains(),
    };
    let mut responding = Responding::new(response, asker, &shared.date.text(&*shared.clock), talk);
    poll_fn(|cx| match responding.poll(talk, cx) {
        Poll::Pending => talk.poll_left(cx).map(Err),
        written @ Poll::Ready(_) => written,
    })
    .await?;
    Ok(match talk.go_on() {
        Err(bad) => Next::End(Some(bad)),
        Ok(()) if asker.is_last || drains() => Next::End(None),
        Ok(()) => Next::Request,
    })
}

/// The answer to a request, unless the client leaves before it.
async fn answered(
    shared: &Arc<Shared>,
    connection: &Connection,
    talk: &Mutex<Talk>,
    head: &Head,
) -> Result<Response<Answer>, Left> {
    let mut answering = pin!(routes::answer(shared, connection, head, Incoming(talk)));
    poll_fn(|cx| match answering.as_mut().poll(cx) {
        Poll::Pending => lock(talk).poll_left(cx).map(Err),
        Poll::Ready(answered) => Poll::Ready(Ok(answered)),
    })
    .await
}

fn get(talk: &mut Mutex<Talk>) -> &mut Talk {
    talk.get_mut().unwrap_or_else(PoisonError::into_inner)
}
