//! Servers that tunnels lead to.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

/// A server on threads of its own.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) connections: Arc<AtomicUsize>,
    /// All bytes that ever came.
    pub(crate) came: Arc<Mutex<Vec<u8>>>,
    _runtime: Runtime,
}

impl Server {
    /// Serves each connection with `serve`.
    pub(crate) fn new<F>(serve: impl Fn(TcpStream, Arc<Mutex<Vec<u8>>>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let came = Arc::new(Mutex::default());
        let (counted, noted) = (connections.clone(), came.clone());
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(stream, noted.clone()));
            }
        });
        Self { address, connections, came, _runtime: runtime }
    }

    pub(crate) fn came(&self) -> Vec<u8> {
        self.came.lock().unwrap().clone()
    }

    pub(crate) fn came_as_text(&self) -> String {
        String::from_utf8_lossy(&self.came()).into_owned()
    }
}

/// Sends everything back, and ends its half when the client has ended its own.
pub(crate) fn echo() -> Server {
    Server::new(|mut stream, came| async move {
        let mut part = vec![0; 16 << 10];
        while let Ok(count) = stream.read(&mut part).await {
            came.lock().unwrap().extend_from_slice(&part[..count]);
            if count == 0 || stream.write_all(&part[..count]).await.is_err() {
                break;
            }
        }
        let _ = stream.shutdown().await;
    })
}

/// Reads everything until the client ends its half, and only then answers with this.
pub(crate) fn after_the_end(answer: &'static str) -> Server {
    Server::new(move |mut stream, came| async move {
        let mut all = Vec::new();
        if stream.read_to_end(&mut all).await.is_ok() {
            came.lock().unwrap().extend_from_slice(&all);
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    })
}

/// Ends its half at once, and reads on.
pub(crate) fn ends_first() -> Server {
    Server::new(|mut stream, came| async move {
        let _ = stream.write_all(b"bye").await;
        let _ = stream.shutdown().await;
        let mut all = Vec::new();
        if stream.read_to_end(&mut all).await.is_ok() {
            came.lock().unwrap().extend_from_slice(&all);
        }
    })
}

/// Reads, and never says anything.
pub(crate) fn silent() -> Server {
    Server::new(|mut stream, _| async move {
        let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
        std::future::pending::<()>().await;
    })
}

/// A web server: reads a head and as much of a body as it says, answers with this, and closes.
pub(crate) fn web(answer: &'static str) -> Server {
    Server::new(move |mut stream, came| async move {
        let mut all = Vec::new();
        let mut part = vec![0; 4 << 10];
        loop {
            let text = String::from_utf8_lossy(&all).into_owned();
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                let length = head.lines().find_map(|line| {
                    line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok()
                });
                if body.len() >= length.unwrap_or(0) {
                    break;
                }
            }
            match stream.read(&mut part).await {
                Ok(count) if count > 0 => all.extend_from_slice(&part[..count]),
                _ => break,
            }
        }
        came.lock().unwrap().extend_from_slice(&all);
        let _ = stream.write_all(answer.as_bytes()).await;
        let _ = stream.shutdown().await;
        let _ = stream.read_to_end(&mut all).await;
    })
}
