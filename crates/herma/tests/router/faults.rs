//! An upstream that fails in every way that one can, as the request says or at random.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// The upstream's reaction to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    TooMany,
    Overloaded,
    ServerError,
    CloseBeforeHeaders,
    CloseAfterHeaders,
    CutStream,
    Hang,
    Malformed,
}

const AT_RANDOM: [Fault; 8] = [
    Fault::TooMany,
    Fault::Overloaded,
    Fault::ServerError,
    Fault::CloseBeforeHeaders,
    Fault::CloseAfterHeaders,
    Fault::CutStream,
    Fault::Hang,
    Fault::Malformed,
];

/// Serves chat completions. One call in `every` fails, at random; none if it is 0.
pub(crate) async fn serve(every: u64) -> (u16, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let seen = Arc::new(AtomicU64::new(0));
    let counted = seen.clone();
    tokio::spawn(async move {
        loop {
            let Ok((stream, _)) = listener.accept().await else { continue };
            let counted = counted.clone();
            tokio::spawn(async move {
                // A client that leaves is part of the test.
                let _ = connection(stream, every, &counted).await;
            });
        }
    });
    (port, seen)
}

async fn connection(mut stream: TcpStream, every: u64, seen: &AtomicU64) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::new();
    loop {
        let Some(body) = request(&mut stream, &mut buffer).await? else { return Ok(()) };
        seen.fetch_add(1, Ordering::Relaxed);
        let fault = match every {
            0 => Fault::None,
            every => match fastrand(every) {
                0 => AT_RANDOM[usize::try_from(fastrand(8)).unwrap()],
                _ => Fault::None,
            },
        };
        let text = String::from_utf8_lossy(&body);
        let keeps = if text.contains(r#""stream":true"#) {
            answer_stream(&mut stream, fault, text.contains("slowly")).await?
        } else {
            answer_whole(&mut stream, fault).await?
        };
        if !keeps {
            return Ok(());
        }
    }
}

/// A random number below `below`.
pub(crate) fn fastrand(below: u64) -> u64 {
    use std::hash::{BuildHasher as _, Hasher as _};
    std::hash::RandomState::new().build_hasher().finish() % below.max(1)
}

async fn request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> std::io::Result<Option<Vec<u8>>> {
    loop {
        if let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&buffer[..end]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.unwrap().trim().parse().unwrap();
            if buffer.len() >= end + 4 + length {
                let body = buffer[end + 4..end + 4 + length].to_vec();
                buffer.drain(..end + 4 + length);
                return Ok(Some(body));
            }
        }
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
}

const USAGE: &str = r#""usage":{"prompt_tokens":5,"completion_tokens":10,"total_tokens":15}"#;

async fn answer_whole(stream: &mut TcpStream, fault: Fault) -> std::io::Result<bool> {
    let body = format!(
        r#"{{"id":"x","object":"chat.completion","model":"m","choices":[{{"index":0,"message":{{"role":"assistant","content":"yes"}},"finish_reason":"stop"}}],{USAGE}}}"#
    );
    let error = r#"{"error":{"message":"no","type":"x"}}"#;
    let (status, body) = match fault {
        Fault::TooMany => ("429 Too Many Requests", error),
        Fault::Overloaded => ("503 Service Unavailable", error),
        Fault::ServerError => ("500 Internal Server Error", error),
        Fault::Malformed => ("200 OK", "{\"usage\": nothing"),
        Fault::None | Fault::CutStream => ("200 OK", &*body),
        Fault::CloseBeforeHeaders => return Ok(false),
        Fault::CloseAfterHeaders => {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{").await?;
            return Ok(false);
        }
        Fault::Hang => {
            tokio::time::sleep(Duration::from_secs(6)).await;
            return Ok(false);
        }
    };
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    Ok(true)
}

async fn answer_stream(stream: &mut TcpStream, fault: Fault, slowly: bool) -> std::io::Result<bool> {
    if matches!(fault, Fault::TooMany | Fault::Overloaded | Fault::ServerError | Fault::CloseBeforeHeaders) {
        return answer_whole(stream, fault).await;
    }
    stream
        .write_all(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
        )
        .await?;
    if fault == Fault::CloseAfterHeaders {
        return Ok(false);
    }
    for number in 0..10 {
        let event = format!(
            "data: {{\"id\":\"x\",\"model\":\"m\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"word {number} \"}},\"finish_reason\":null}}]}}\n\n"
        );
        chunk(stream, &event).await?;
        if slowly {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        match fault {
            Fault::CutStream if number == 5 => return Ok(false),
            Fault::Hang if number == 5 => {
                tokio::time::sleep(Duration::from_secs(6)).await;
                return Ok(false);
            }
            Fault::Malformed if number == 5 => chunk(stream, "data: {nothing\n\n").await?,
            _ => {}
        }
    }
    chunk(stream, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n").await?;
    chunk(stream, &format!("data: {{\"choices\":[],{USAGE}}}\n\ndata: [DONE]\n\n")).await?;
    stream.write_all(b"0\r\n\r\n").await?;
    Ok(true)
}

async fn chunk(stream: &mut TcpStream, text: &str) -> std::io::Result<()> {
    stream.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes()).await
}
