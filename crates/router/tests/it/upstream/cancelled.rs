//! Dropping an answer ends the call.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use herma_dialect::endpoint::Endpoint;
use http::Response;
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::AsyncWriteExt;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::kit::{LONG, asking, closed, http, request, server, up, up_with};

#[tokio::test]
async fn a_dropped_body_closes_the_connection() {
    let (gone, tells) = told();
    let address = server(move |_, mut stream| {
        let tells = tells.clone();
        async move {
            request(&mut stream).await.unwrap();
            let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n";
            stream.write_all(head.as_bytes()).await.unwrap();
            closed(&mut stream).await;
            tells.notify_one();
        }
    })
    .await;
    let mut body = up("openai", &http(address)).send(asking(Endpoint::Chat)).await.unwrap().into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "a");
    drop(body);
    timeout(LONG, gone.notified()).await.expect("the upstream sees it");
}

#[tokio::test]
async fn a_dropped_request_closes_the_connection() {
    let (gone, tells) = told();
    let address = server(move |_, mut stream| {
        let tells = tells.clone();
        async move {
            request(&mut stream).await.unwrap();
            tells.notify_one();
            closed(&mut stream).await;
            tells.notify_one();
        }
    })
    .await;
    let upstream = up("openai", &http(address));
    let mut sending = Box::pin(upstream.send(asking(Endpoint::Chat)));
    tokio::select! {
        _ = &mut sending => panic!("there is no answer"),
        () = gone.notified() => drop(sending),
    }
    timeout(LONG, gone.notified()).await.expect("the upstream sees it");
}

/// A body without end that tells when it is dropped.
struct Endless(Arc<Notify>);

impl Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        cx.waker().wake_by_ref();
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[b'a'; 8192])))))
    }
}

impl Drop for Endless {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[tokio::test]
async fn a_dropped_body_resets_its_stream_and_leaves_the_others() {
    let (gone, tells) = told();
    let address = server(move |_, stream| {
        let tells = tells.clone();
        async move {
            let answer = service_fn(move |_| {
                let endless = Endless(tells.clone());
                async move { Ok::<_, Infallible>(Response::new(endless)) }
            });
            drop(
                http2::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), answer)
                    .await,
            );
        }
    })
    .await;
    let upstream = up_with("openai", &http(address), "http = \"2\"");
    let mut stays = upstream.send(asking(Endpoint::Chat)).await.unwrap().into_body();
    let mut goes = upstream.send(asking(Endpoint::Chat)).await.unwrap().into_body();
    stays.frame().await.unwrap().unwrap();
    goes.frame().await.unwrap().unwrap();
    drop(goes);
    timeout(LONG, gone.notified()).await.expect("the upstream sees it");
    for _ in 0..100 {
        stays.frame().await.unwrap().unwrap();
    }
}

fn told() -> (Arc<Notify>, Arc<Notify>) {
    let notify = Arc::new(Notify::new());
    (notify.clone(), notify)
}
