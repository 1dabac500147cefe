//! One client connection, from its request to its end.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use herma_net::head::BadHead;
use herma_net::{SingleOptions, SingleRequest};
use http::Response;
use http_body_util::{Either, Full};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::oneshot;

use super::dial::{self, Open};
use super::limits::HEAD_LIMITS;
use super::passage::Passage;
use super::plain::ExchangeBody;
use super::request::{BadRequest, Request};
use super::shared::{Denial, Shared};
use super::tunnel::PendingTunnel;
use super::{answer, plain, request, tunnel};
use crate::decision::{EgressVerdict, ProxyDecision};
use crate::reason::{Fault, Reason};
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

    /// Records a denial. Returns the decision for the response to the client.
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

/// The continuation of a connection after its response.
enum AfterResponse {
    /// The client sent no request, and gets no response.
    NoResponse,
    /// The connection ends.
    Close,
    /// The connection becomes a tunnel.
    Tunnel(Box<PendingTunnel>),
}

/// Serves the one request of a connection.
pub(super) async fn serve<S: Stream>(shared: Arc<Shared>, client: S) {
    let after = Mutex::new(AfterResponse::NoResponse);
    let (begin, passage_begun) = oneshot::channel();
    let options = SingleOptions {
        head: HEAD_LIMITS,
        head_timeout: shared.limits.head,
        write_timeout: shared.limits.idle,
    };
    let responder = Responder { shared: &shared, after: &after, begin };
    let serving =
        herma_net::serve_single(client, options, request::read, |received| responder.respond(received));
    let limit = async {
        match passage_begun.await {
            Ok(passage) => Passage::limit(&passage).await,
            // There is no exchange, and each other step has its own timeout.
            Err(_) => std::future::pending().await,
        }
    };
    let served = tokio::select! {
        served = serving => served,
        () = limit => return,
    };
    let after = after.into_inner().unwrap_or_else(PoisonError::into_inner);
    match (served, after) {
        (Some((client, early)), AfterResponse::Tunnel(tunnel)) => {
            tunnel::run(&shared, client, early.into(), *tunnel).await;
        }
        (None, AfterResponse::Tunnel(tunnel)) => {
            tunnel.subject.refuse(&shared, Denial::failed(Fault::ClientLeft));
        }
        (Some((mut client, _)), AfterResponse::Close) => answer::finish(&mut client, b"").await,
        (_, AfterResponse::Close | AfterResponse::NoResponse) => {}
    }
}

/// Responds to the request of a connection.
struct Responder<'a> {
    shared: &'a Arc<Shared>,
    after: &'a Mutex<AfterResponse>,
    /// Gets the limits of an exchange when it begins.
    begin: oneshot::Sender<Arc<Passage>>,
}

impl Responder<'_> {
    async fn respond(
        self,
        received: Result<SingleRequest<Request>, BadRequest>,
    ) -> Response<Either<Full<Bytes>, ExchangeBody>> {
        self.set_after(AfterResponse::Close);
        let number = self.shared.number();
        let SingleRequest { head: Request { asked, plain }, body, pipelining } = match received {
            Ok(request) => request,
            Err(bad) => return self.refuse_unread(number, bad),
        };
        let subject = Subject::of(number, &asked);
        if number > self.shared.limits.requests {
            return self.refuse(&subject, Denial::denied(Reason::RequestQuota));
        }
        match (dial::open(self.shared, &asked).await, plain) {
            (Err(denial), _) => self.refuse(&subject, denial),
            (Ok(open), None) => {
                self.set_after(AfterResponse::Tunnel(Box::new(PendingTunnel { subject, asked, open })));
                answer::established().map(Either::Left)
            }
            (Ok(open), Some(plain)) => {
                if let Err(decided) = subject.allow(self.shared, &asked, &open) {
                    return answer::refusal(&decided).map(Either::Left);
                }
                let lifetime = tunnel::lifetime(self.shared, &open);
                let passage = Arc::new(Passage::new(self.shared.clone(), lifetime));
                let request = plain.map(|()| body);
                // The receiver is gone only with this connection.
                let _ = self.begin.send(passage.clone());
                let forwarded = plain::forward(self.shared, passage, open, request, pipelining).await;
                match forwarded {
                    Some(response) => response.map(Either::Right),
                    None => answer::no_response().map(Either::Left),
                }
            }
        }
    }

    fn set_after(&self, after: AfterResponse) {
        *self.after.lock().unwrap_or_else(PoisonError::into_inner) = after;
    }

    fn refuse_unread(&self, number: u64, bad: BadRequest) -> Response<Either<Full<Bytes>, ExchangeBody>> {
        let unknown = Subject::unknown(number);
        let bad_request = Denial::denied(Reason::BadRequest);
        match bad {
            BadRequest::Head(BadHead::TimedOut) => self.refuse(&unknown, Denial::denied(Reason::SlowRequest)),
            BadRequest::Head(bad) => self.refuse(&unknown, bad_request.because(bad.to_string())),
            BadRequest::Unsupported(why) => self.refuse(&unknown, bad_request.because(why)),
            BadRequest::Host { method, host, why } => {
                let subject = Subject { number, method, host: shown(&host), port: 0 };
                self.refuse(&subject, Denial::denied(Reason::BadHost).because(why.to_string()))
            }
        }
    }

    fn refuse(&self, subject: &Subject, denial: Denial) -> Response<Either<Full<Bytes>, ExchangeBody>> {
        answer::refusal(&subject.refuse(self.shared, denial)).map(Either::Left)
    }
}
