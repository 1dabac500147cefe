//! Writes an answer: its head, and its body as it comes.

use std::io::Write as _;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::{Response, StatusCode};
use http_body::Body as _;

use super::answer::Answer;
use super::talk::{Left, Talk};

/// So much is gathered before it is written.
const AT_ONCE: usize = 64 << 10;

/// An answer that is being written.
pub(super) struct Responding {
    /// None once all of it was given.
    body: Option<Answer>,
    framing: Framing,
    /// Whether the body broke off: then the connection does, too.
    is_broken: bool,
}

/// How the client learns where the body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    /// After this many bytes more.
    Length(u64),
    /// In chunks.
    Chunked,
    /// With the connection.
    Close,
    /// It gets none.
    Without,
}

/// What a client is that gets an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asker {
    /// It knows no chunks.
    pub(super) is_old: bool,
    /// It asked only for the head.
    pub(super) wants_head: bool,
    /// No other request follows.
    pub(super) is_last: bool,
}

impl Responding {
    /// Puts the head of an answer before what is written.
    pub(super) fn new(response: Response<Answer>, asker: Asker, date: &str, talk: &mut Talk) -> Self {
        let (head, body) = response.into_parts();
        let length = body.size_hint().exact();
        let is_without = matches!(head.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        let framing = match length {
            _ if asker.wants_head || is_without => Framing::Without,
            Some(length) => Framing::Length(length),
            None if asker.is_old => Framing::Close,
            None => Framing::Chunked,
        };
        let out = &mut talk.out;
        out.extend_from_slice(b"HTTP/1.1 ");
        status(head.status, out);
        for (name, value) in &head.headers {
            for part in [b"\r\n", name.as_str().as_bytes(), b": ", value.as_bytes()] {
                out.extend_from_slice(part);
            }
        }
        match length {
            _ if is_without => {}
            // A Vec takes everything.
            Some(length) => drop(write!(out, "\r\ncontent-length: {length}")),
            None if framing == Framing::Chunked => out.extend_from_slice(b"\r\ntransfer-encoding: chunked"),
            None => {}
        }
        if asker.is_last || framing == Framing::Close {
            out.extend_from_slice(b"\r\nconnection: close");
        }
        for part in [b"\r\ndate: ", date.as_bytes(), b"\r\n\r\n"] {
            out.extend_from_slice(part);
        }
        let is_over = framing == Framing::Without || body.is_end_stream();
        Self { body: (!is_over).then_some(body), framing, is_broken: false }
    }

    /// Writes the answer as it comes. What is there is written together; what comes while the client does not read waits.
    pub(super) fn poll(&mut self, talk: &mut Talk, cx: &mut Context<'_>) -> Poll<Result<(), Left>> {
        loop {
            let mut waits = false;
            talk.forget_written();
            while talk.unwritten() < AT_ONCE
                && let Some(body) = &mut self.body
            {
                match Pin::new(body).poll_frame(cx) {
                    Poll::Pending => {
                        waits = true;
                        break;
                    }
                    Poll::Ready(Some(Ok(frame))) => {
                        if let Ok(data) = frame.into_data() {
                            self.data(&data, &mut talk.out);
                        }
                    }
                    Poll::Ready(Some(Err(_))) => self.end(true),
                    Poll::Ready(None) => {
                        if self.framing == Framing::Chunked {
                            talk.out.extend_from_slice(b"0\r\n\r\n");
                        }
                        // Less came than was announced.
                        self.end(matches!(self.framing, Framing::Length(1..)));
                    }
                }
            }
            // What was not written stays unwritten: who has no head yet knows that there is no answer.
            if self.is_broken {
                return Poll::Ready(Err(Left));
            }
            ready!(talk.poll_write(cx))?;
            match self.body {
                None => return Poll::Ready(Ok(())),
                Some(_) if waits => return Poll::Pending,
                Some(_) => {}
            }
        }
    }

    fn data(&mut self, data: &[u8], out: &mut Vec<u8>) {
        match &mut self.framing {
            Framing::Length(left) => match left.checked_sub(data.len() as u64) {
                Some(rest) => {
                    *left = rest;
                    out.extend_from_slice(data);
                    if rest == 0 {
                        self.end(false);
                    }
                }
                // More came than was announced.
                None => self.end(true),
            },
            Framing::Chunked if !data.is_empty() => {
                let _ = write!(out, "{:x}\r\n", data.len());
                out.extend_from_slice(data);
                out.extend_from_slice(b"\r\n");
            }
            Framing::Close => out.extend_from_slice(data),
            Framing::Chunked | Framing::Without => {}
        }
    }

    fn end(&mut self, is_broken: bool) {
        self.body = None;
        self.is_broken |= is_broken;
    }
}

fn status(status: StatusCode, out: &mut Vec<u8>) {
    if status == StatusCode::OK {
        out.extend_from_slice(b"200 OK");
    } else {
        let _ = write!(out, "{} {}", status.as_str(), status.canonical_reason().unwrap_or(""));
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use bytes::Bytes;
    use tokio::io::{AsyncReadExt as _, duplex};

    use super::*;

    const PATIENCE: Duration = Duration::from_mins(1);
    const ONE: Asker = Asker { is_old: false, wants_head: false, is_last: false };

    /// What a client gets, and whether the answer was whole.
    async fn written(response: Response<Answer>, asker: Asker) -> (String, bool) {
        let (mut client, server) = duplex(1 << 10);
        let mut talk = Talk::new(Box::new(server), PATIENCE);
        let mut responding = Responding::new(response, asker, "now", &mut talk);
        let is_whole = poll_fn(|cx| responding.poll(&mut talk, cx)).await.is_ok();
        drop(talk);
        let mut text = String::new();
        client.read_to_string(&mut text).await.unwrap();
        (text, is_whole)
    }

    fn answer(status: u16) -> Response<Answer> {
        Response::builder().status(status).header("a", "b").body(Answer::Whole(Bytes::from("text"))).unwrap()
    }

    #[tokio::test]
    async fn a_client_learns_where_its_answer_ends() {
        let rows = [
            (200, ONE, "200 OK\r\na: b\r\ncontent-length: 4\r\ndate: now\r\n\r\ntext"),
            (
                404,
                Asker { is_last: true, ..ONE },
                "404 Not Found\r\na: b\r\ncontent-length: 4\r\nconnection: close\r\ndate: now\r\n\r\ntext",
            ),
            (
                405,
                Asker { wants_head: true, ..ONE },
                "405 Method Not Allowed\r\na: b\r\ncontent-length: 4\r\ndate: now\r\n\r\n",
            ),
            (204, ONE, "204 No Content\r\na: b\r\ndate: now\r\n\r\n"),
        ];
        for (status, asker, text) in rows {
            assert_eq!(written(answer(status), asker).await, (format!("HTTP/1.1 {text}"), true));
        }
    }

    #[test]
    fn no_other_number_of_bytes_than_was_announced_counts_as_whole() {
        let responding =
            |framing| Responding { body: Some(Answer::Whole(Bytes::new())), framing, is_broken: false };
        let mut out = Vec::new();
        let mut exact = responding(Framing::Length(4));
        exact.data(b"te", &mut out);
        assert!(exact.body.is_some());
        exact.data(b"xt", &mut out);
        assert!(exact.body.is_none() && !exact.is_broken);
        let mut more = responding(Framing::Length(3));
        more.data(b"text", &mut out);
        assert!(more.body.is_none() && more.is_broken);
        assert_eq!(out, b"text");
        let mut chunked = responding(Framing::Chunked);
        chunked.data(b"", &mut out);
        chunked.data(&[b'x'; 17], &mut out);
        assert_eq!(
            out,
            [b"text11\r\n", &[b'x'; 17][..], b"\r\n"].concat(),
            "an empty chunk would be the end"
        );
    }

    #[tokio::test]
    async fn of_an_answer_that_breaks_off_before_it_is_written_nothing_is_written() {
        let (mut client, server) = duplex(1 << 10);
        let mut talk = Talk::new(Box::new(server), PATIENCE);
        let mut short = Responding::new(answer(200), ONE, "now", &mut talk);
        short.framing = Framing::Length(5);
        assert_eq!(poll_fn(|cx| short.poll(&mut talk, cx)).await, Err(Left));
        drop(talk);
        assert_eq!(client.read(&mut [0; 8]).await.unwrap(), 0);
    }
}
