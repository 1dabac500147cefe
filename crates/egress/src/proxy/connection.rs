//! One client connection, from its request to its end.

use std::sync::Arc;

use herma_net::head;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use super::dial::{self, Open};
use super::limits::HEAD_LIMITS;
use super::request::{BadRequest, Request};
use super::shared::{Denial, Shared};
use super::{answer, plain, request, tunnel};
use crate::decision::{EgressVerdict, ProxyDecision};
use crate::reason::Reason;
use crate::rules::{EgressRequest, shown};

/// A connection of either kind.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send + 'static> Stream for T {}

/// The subject of a decision.
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

    fn of(number: u64, asked: &EgressRequest) -> Self {
        Self { number, method: asked.kind.method(), host: asked.host.to_string(), port: asked.port }
    }

    fn decided(&self, denial: Denial) -> ProxyDecision {
        ProxyDecision {
            request: self.number,
            method: self.method.to_owned(),
            host: self.host.clone(),
            port: self.port,
            verdict: denial.verdict,
            rule: None,
            address: denial.address,
            detail: denial.detail,
        }
    }

    /// Records a denial. Gives the decision that the client is told.
    pub(super) fn refuse(&self, shared: &Shared, denial: Denial) -> ProxyDecision {
        let decided = self.decided(denial);
        match shared.record(&decided) {
            Ok(()) => decided,
            Err(denial) => self.decided(denial),
        }
    }

    /// Records that it passes. No byte passes before.
    pub(super) fn allow(
        &self,
        shared: &Shared,
        asked: &EgressRequest,
        open: &Open,
    ) -> Result<(), Box<ProxyDecision>> {
        let decided = ProxyDecision {
            request: self.number,
            method: self.method.to_owned(),
            host: self.host.clone(),
            port: self.port,
            verdict: EgressVerdict::Allowed,
            rule: open.rule.clone(),
            address: Some(open.address),
            detail: String::new(),
        };
        shared.record(&decided).map_err(|denial| Box::new(self.decided(denial)))?;
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
        // A client that sends no request gets no response.
        Ok(Ok(None)) => return,
        Err(_) if came.is_empty() => return,
        Err(_) => return refuse_unread(&shared, client, Denial::denied(Reason::SlowRequest)).await,
        Ok(Err(bad)) => {
            return refuse_unread(
                &shared,
                client,
                Denial::denied(Reason::BadRequest).because(bad.to_string()),
            )
            .await;
        }
    };
    let number = shared.number();
    let request =
        match head::parse(&head, HEAD_LIMITS).map_err(BadRequest::from).and_then(|head| request::read(&head))
        {
            Ok(request) => request,
            Err(BadRequest::Head(bad)) => {
                let denial = Denial::denied(Reason::BadRequest).because(bad.to_string());
                return refuse(&shared, client, &Subject::unknown(number), denial).await;
            }
            Err(BadRequest::Unsupported(why)) => {
                let denial = Denial::denied(Reason::BadRequest).because(why);
                return refuse(&shared, client, &Subject::unknown(number), denial).await;
            }
            Err(BadRequest::Host { method, host, why }) => {
                let subject = Subject { number, method, host: shown(&host), port: 0 };
                return refuse(
                    &shared,
                    client,
                    &subject,
                    Denial::denied(Reason::BadHost).because(why.to_string()),
                )
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
        return refuse(shared, client, &subject, Denial::denied(Reason::RequestQuota)).await;
    }
    match (dial::open(shared, &asked).await, plain) {
        (Ok(open), None) => tunnel::run(shared, client, &subject, &asked, open, rest).await,
        (Ok(open), Some(plain)) => plain::run(shared, client, &subject, &asked, open, plain, rest).await,
        (Err(denial), _) => refuse(shared, client, &subject, denial).await,
    }
}

async fn refuse_unread<S: Stream>(shared: &Shared, client: S, denial: Denial) {
    let subject = Subject::unknown(shared.number());
    refuse(shared, client, &subject, denial).await;
}

async fn refuse<S: Stream>(shared: &Shared, mut client: S, subject: &Subject, denial: Denial) {
    let decided = subject.refuse(shared, denial);
    answer::finish(&mut client, &answer::refusal(&decided)).await;
}
