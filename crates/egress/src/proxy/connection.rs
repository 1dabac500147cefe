//! One connection of a client, from its request to its end.

use std::sync::Arc;

use herma_net::head;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use super::limits::HEAD_LIMITS;
use super::request::{BadRequest, Request};
use super::shared::{No, Shared};
use super::way_out::{self, Open};
use super::{answer, plain, request, tunnel};
use crate::decided::{Decided, Verdict};
use crate::reason::Reason;
use crate::rules::{Asked, shown};

/// A connection of either kind.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send + 'static> Stream for T {}

/// What a decision is about.
pub(super) struct Subject {
    number: u64,
    method: &'static str,
    host: String,
    port: u16,
}

impl Subject {
    fn unknown(number: u64) -> Self {
        Self { number, method: "", host: String::new(), port: 0 }
    }

    fn of(number: u64, asked: &Asked) -> Self {
        Self { number, method: asked.asking.method(), host: asked.host.to_string(), port: asked.port }
    }

    fn decided(&self, no: No) -> Decided {
        Decided {
            request: self.number,
            method: self.method.to_owned(),
            host: self.host.clone(),
            port: self.port,
            verdict: no.verdict,
            rule: None,
            address: no.address,
            detail: no.detail,
        }
    }

    /// Records that it does not pass. Gives what the client is to be told.
    pub(super) fn refuse(&self, shared: &Shared, no: No) -> Decided {
        let decided = self.decided(no);
        match shared.record(&decided) {
            Ok(()) => decided,
            Err(no) => self.decided(no),
        }
    }

    /// Records that it passes. Until then nothing may.
    pub(super) fn allow(&self, shared: &Shared, asked: &Asked, open: &Open) -> Result<(), Box<Decided>> {
        let decided = Decided {
            request: self.number,
            method: self.method.to_owned(),
            host: self.host.clone(),
            port: self.port,
            verdict: Verdict::Allowed,
            rule: open.rule.clone(),
            address: Some(open.address),
            detail: String::new(),
        };
        shared.record(&decided).map_err(|no| Box::new(self.decided(no)))?;
        if open.rule.is_none() {
            shared.learn(asked);
        }
        Ok(())
    }
}

/// Serves the one request of a connection.
pub(super) async fn serve<S: Stream>(shared: Arc<Shared>, mut client: S) {
    let mut came = Vec::new();
    let read = timeout(shared.limits.head, head::read(&mut client, &mut came, HEAD_LIMITS)).await;
    let (head, rest) = match read {
        Ok(Ok(Some(length))) => {
            let rest = came.split_off((length + 4).min(came.len()));
            came.truncate(length);
            (came, rest)
        }
        // Whoever asks nothing is told nothing.
        Ok(Ok(None)) => return,
        Err(_) if came.is_empty() => return,
        Err(_) => return refuse_unread(&shared, client, No::denied(Reason::SlowRequest)).await,
        Ok(Err(bad)) => {
            return refuse_unread(&shared, client, No::denied(Reason::BadRequest).because(bad.to_string()))
                .await;
        }
    };
    let number = shared.number();
    let request = match head::parse(&head, HEAD_LIMITS)
        .map_err(BadRequest::from)
        .and_then(|head| request::read(&head))
    {
        Ok(request) => request,
        Err(BadRequest::Head(bad)) => {
            let no = No::denied(Reason::BadRequest).because(bad.to_string());
            return refuse(&shared, client, &Subject::unknown(number), no).await;
        }
        Err(BadRequest::Unsupported(why)) => {
            let no = No::denied(Reason::BadRequest).because(why);
            return refuse(&shared, client, &Subject::unknown(number), no).await;
        }
        Err(BadRequest::Host { method, host, why }) => {
            let subject = Subject { number, method, host: shown(&host), port: 0 };
            return refuse(&shared, client, &subject, No::denied(Reason::BadHost).because(why.to_string()))
                .await;
        }
    };
    drop(head);
    pass(&shared, client, number, request, rest).await;
}

async fn pass<S: Stream>(shared: &Shared, client: S, number: u64, request: Request, rest: Vec<u8>) {
    let Request { asked, plain } = request;
    let subject = Subject::of(number, &asked);
    if number > shared.limits.requests {
        return refuse(shared, client, &subject, No::denied(Reason::RequestQuota)).await;
    }
    match (way_out::open(shared, &asked).await, plain) {
        (Ok(open), None) => tunnel::run(shared, client, &subject, &asked, open, rest).await,
        (Ok(open), Some(plain)) => plain::run(shared, client, &subject, &asked, open, plain, rest).await,
        (Err(no), _) => refuse(shared, client, &subject, no).await,
    }
}

async fn refuse_unread<S: Stream>(shared: &Shared, client: S, no: No) {
    let subject = Subject::unknown(shared.number());
    refuse(shared, client, &subject, no).await;
}

async fn refuse<S: Stream>(shared: &Shared, mut client: S, subject: &Subject, no: No) {
    let decided = subject.refuse(shared, no);
    answer::finish(&mut client, &answer::refusal(&decided)).await;
}
