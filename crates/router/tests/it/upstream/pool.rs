//! Connections are used again, and a request is never sent twice.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use herma_dialect::endpoint::Endpoint;
use herma_router::upstream::{Ambiguous, SendError};
use tokio::io::AsyncWriteExt;
use tokio::sync::{Barrier, watch};

use super::kit::{FINE, ask, asking, body, http, request, server, up};

#[tokio::test]
async fn a_connection_is_used_again() {
    let connections = Arc::new(AtomicUsize::new(0));
    let counts = connections.clone();
    let address = server(move |_, mut stream| {
        counts.fetch_add(1, Ordering::Relaxed);
        async move {
            while request(&mut stream).await.is_some() {
                stream.write_all(FINE.as_bytes()).await.unwrap();
            }
        }
    })
    .await;
    let upstream = up("openai", &http(address));
    for _ in 0..5 {
        ask(&upstream, Endpoint::Chat).await.unwrap();
        // The connection goes back to the others a moment later.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(connections.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_connection_that_was_closed_meanwhile_is_not_noticed() {
    let requests = Arc::new(AtomicUsize::new(0));
    let counts = requests.clone();
    let address = server(move |_, mut stream| {
        let counts = counts.clone();
        async move {
            // One request each, and closed without a word.
            request(&mut stream).await.unwrap();
            counts.fetch_add(1, Ordering::Relaxed);
            stream.write_all(FINE.as_bytes()).await.unwrap();
        }
    })
    .await;
    let upstream = up("openai", &http(address));
    for _ in 0..5 {
        ask(&upstream, Endpoint::Chat).await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(requests.load(Ordering::Relaxed), 5);
}

/// Here the server closes in the very moment of the next request. Whatever comes of it, no request is seen twice, and
/// one that is said not to have left was not seen.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_race_with_a_closing_server_sends_twice() {
    let seen = Arc::new(Mutex::new(BTreeMap::<String, usize>::new()));
    let counts = seen.clone();
    let address = server(move |_, mut stream| {
        let counts = counts.clone();
        async move {
            let Some(got) = request(&mut stream).await else { return };
            let id = got.rsplit("\r\n").next().unwrap().to_owned();
            *counts.lock().unwrap().entry(id).or_default() += 1;
            stream.write_all(FINE.as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
            // A request that arrives now was sent to a closing connection: count it too.
            if let Some(got) = request(&mut stream).await {
                *counts.lock().unwrap().entry(got.rsplit("\r\n").next().unwrap().to_owned()).or_default() +=
                    1;
            }
        }
    })
    .await;
    let upstream = up("openai", &http(address));
    let mut not_reached = Vec::new();
    for number in 0..300 {
        let id = format!("{{\"n\":{number}}}");
        let mut outgoing = asking(Endpoint::Chat);
        outgoing.body = Bytes::from(id.clone());
        match upstream.send(outgoing).await {
            Ok(response) => assert_eq!(body(response).await.unwrap(), b"{}"),
            Err(SendError::NotReached(_)) => not_reached.push(id),
            Err(SendError::Ambiguous(Ambiguous::FirstByteTimeout)) => panic!("it hangs"),
            Err(SendError::Ambiguous(_)) => {}
        }
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    let seen = seen.lock().unwrap();
    assert!(seen.len() > 100, "most of them come through: {}", seen.len());
    assert!(seen.values().all(|times| *times == 1), "{seen:?}");
    assert!(not_reached.iter().all(|id| !seen.contains_key(id)));
}

/// More connections than a task may poll before it has to yield, each with an unsolicited byte.
#[tokio::test]
async fn unsolicited_bytes_are_no_answer_on_any_number_of_connections() {
    const MANY: usize = 300;
    let (connections, all) = (Arc::new(AtomicUsize::new(0)), Arc::new(Barrier::new(MANY)));
    let (say, said) = watch::channel(false);
    let address = server(move |_, mut stream| {
        let number = connections.fetch_add(1, Ordering::Relaxed);
        let (all, mut said) = (all.clone(), said.clone());
        async move {
            request(&mut stream).await.unwrap();
            if number < MANY {
                all.wait().await;
            }
            stream.write_all(FINE.as_bytes()).await.unwrap();
            if number < MANY {
                said.changed().await.unwrap();
                let stray = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nstray";
                stream.write_all(stray.as_bytes()).await.unwrap();
            }
            let _ = request(&mut stream).await;
        }
    })
    .await;
    let upstream = Arc::new(up("openai", &http(address)));
    let asked: Vec<_> = (0..MANY)
        .map(|_| {
            let upstream = upstream.clone();
            tokio::spawn(
                async move { body(upstream.send(asking(Endpoint::Chat)).await.unwrap()).await.unwrap() },
            )
        })
        .collect();
    for answer in asked {
        assert_eq!(answer.await.unwrap(), b"{}");
    }
    say.send(true).unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    let answer = body(upstream.send(asking(Endpoint::Chat)).await.unwrap()).await.unwrap();
    assert_eq!(String::from_utf8(answer).unwrap(), "{}");
}
