//! `herma hook SOCKET`: the command that an agent runs before it calls a tool. It reads the call, asks the run's
//! policy service, and answers by its exit code. Anything but a clear yes denies the call.
//!
//! It runs once per tool call, so it does nothing else: no configuration, no runtime, one socket.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use herma_core::tool::{ToolAction, ToolAnswer, ToolCall};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use serde::Deserialize;
use serde_json::Value;

use crate::subject::subject;

/// The subcommand of herma.
pub const SUBCOMMAND: &str = "hook";

/// The exit code that denies a call, for every agent here.
pub const DENIED: u8 = 2;

/// The largest call that is read, including the content that a tool writes.
const MAX_CALL_BYTES: u64 = 32 << 20;
/// The largest answer that is read.
const MAX_ANSWER_BYTES: u64 = 64 << 10;
/// The timeout for each of sending and receiving.
const IO_TIMEOUT: Duration = Duration::from_secs(5);

/// The agent's own timeout for the hook: longer than the sum of its timeouts.
pub(crate) const HOOK_SECONDS: u64 = 30;

/// A call in the formats of the agents, which use different keys.
#[derive(Deserialize)]
pub(crate) struct HookInput {
    #[serde(alias = "tool", alias = "toolName")]
    tool_name: String,
    #[serde(alias = "args", alias = "input")]
    tool_input: Value,
}

impl HookInput {
    /// The call and its subject.
    pub(crate) fn call(self) -> ToolCall {
        let action = ToolAction::of_tool(&self.tool_name);
        ToolCall { action, subject: subject(action, &self.tool_input), tool: self.tool_name }
    }
}

/// Reads the call from `input` and asks at `socket`.
#[must_use]
pub fn ask(input: impl Read, socket: &Path) -> ToolAnswer {
    match read(input) {
        Ok(call) => asked(&call, socket)
            .unwrap_or_else(|why| ToolAnswer::no(format!("herma could not be asked: {why}"))),
        Err(why) => ToolAnswer::no(format!("herma does not understand the call: {why}")),
    }
}

/// The message of a denial, for the agent's model.
#[must_use]
pub fn in_words(reason: &str) -> String {
    format!("herma denied this tool call: {reason}. Do not try it in another way.")
}

/// The hook command for an agent's configuration. A hook that is killed also denies.
#[must_use]
pub fn command(herma: &Path, socket: &Path) -> String {
    let quoted = |path: &Path| format!("'{}'", path.display().to_string().replace('\'', r"'\''"));
    format!("{} {SUBCOMMAND} {} || exit {DENIED}", quoted(herma), quoted(socket))
}

fn read(input: impl Read) -> io::Result<ToolCall> {
    let mut text = Vec::new();
    input.take(MAX_CALL_BYTES + 1).read_to_end(&mut text)?;
    if text.len() as u64 > MAX_CALL_BYTES {
        return Err(io::Error::other(format!("it is longer than {MAX_CALL_BYTES} bytes")));
    }
    // An array would deserialize too, by position.
    if !text.trim_ascii_start().starts_with(b"{") {
        return Err(io::Error::other("it is no JSON object"));
    }
    let told: HookInput = serde_json::from_slice(&text)?;
    Ok(told.call())
}

fn asked(call: &ToolCall, socket: &Path) -> io::Result<ToolAnswer> {
    let mut herma = connected(socket)?;
    herma.set_read_timeout(Some(IO_TIMEOUT))?;
    herma.set_write_timeout(Some(IO_TIMEOUT))?;
    herma.write_all(&serde_json::to_vec(call)?)?;
    herma.shutdown(Shutdown::Write)?;
    let mut answer = Vec::new();
    herma.take(MAX_ANSWER_BYTES).read_to_end(&mut answer)?;
    Ok(serde_json::from_slice(&answer)?)
}

/// Connects without blocking: it would block for ever on a full backlog, and an agent continues without the answer
/// of a hook that times out.
fn connected(socket: &Path) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let herma = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&herma, &SocketAddrUnix::new(socket)?).map_err(|error| match error {
        Errno::AGAIN => io::Error::other("too many others are asking"),
        other => other.into(),
    })?;
    let herma = UnixStream::from(herma);
    herma.set_nonblocking(false)?;
    Ok(herma)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<(String, ToolAction, String)> {
        read(text.as_bytes()).ok().map(|call| (call.tool, call.action, call.subject))
    }

    #[test]
    fn a_call_is_parsed_in_the_format_of_every_agent() {
        let shell = Some(("bash".to_owned(), ToolAction::Shell, "git push".to_owned()));
        for text in [
            r#"{"hook_event_name":"PreToolUse","tool_name":"bash","tool_input":{"command":"git push"},"cwd":"/"}"#,
            r#"{"tool":"bash","args":{"command":"git push"}}"#,
            r#"{"toolName":"bash","input":{"command":"git push"}}"#,
        ] {
            assert_eq!(of(text), shell, "{text}");
        }
    }

    #[test]
    fn a_patch_is_about_its_files_and_not_about_what_it_writes() {
        let patch =
            "*** Begin Patch\n*** Update File: a.sh\n@@\n+git push\n*** Add File: b\n+x\n*** End Patch";
        let text = serde_json::json!({ "tool_name": "apply_patch", "tool_input": { "command": patch } });
        let found = of(&text.to_string());
        assert_eq!(found, Some(("apply_patch".to_owned(), ToolAction::Write, "a.sh\nb".to_owned())));
        let run = serde_json::json!({ "tool_name": "Bash", "tool_input": { "command": patch } });
        assert_eq!(of(&run.to_string()), Some(("Bash".to_owned(), ToolAction::Shell, patch.to_owned())));
    }

    #[test]
    fn malformed_calls_are_rejected() {
        for text in [
            "",
            "{",
            "[\"bash\",{}]",
            "\"bash\"",
            "{}",
            r#"{"tool_name":"bash"}"#,
            r#"{"tool_name":1,"tool_input":{}}"#,
            r#"{"tool_name":"read","tool":"bash","tool_input":{}}"#,
            "\u{0}",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
    }

    #[test]
    fn a_dead_socket_and_a_malformed_answer_deny() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("s");
        let call = br#"{"tool_name":"bash","tool_input":{"command":"ls"}}"#;
        assert!(!ask(&call[..], &socket).allowed);
        let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        for said in ["", "yes", "{\"allowed\":true}", "{\"allowed\":1,\"reason\":\"\"}", "\0\0"] {
            std::thread::scope(|scope| {
                scope.spawn(|| listener.accept().unwrap().0.write_all(said.as_bytes()).unwrap());
                let answer = ask(&call[..], &socket);
                assert!(!answer.allowed, "{said}");
                assert!(answer.reason.starts_with("herma could not be asked"), "{}", answer.reason);
            });
        }
    }

    #[test]
    fn a_queue_that_is_full_is_a_no_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("s");
        let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let waiting: Vec<UnixStream> = std::iter::from_fn(|| connected(&socket).ok()).take(1000).collect();
        assert!((1..1000).contains(&waiting.len()));
        let (said, answered) = std::sync::mpsc::channel();
        let asking = socket.clone();
        std::thread::spawn(move || {
            let call = br#"{"tool_name":"bash","tool_input":{"command":"ls"}}"#;
            said.send(ask(&call[..], &asking)).unwrap();
        });
        let answer = answered.recv_timeout(Duration::from_mins(1)).unwrap();
        assert_eq!(answer, ToolAnswer::no("herma could not be asked: too many others are asking"));
    }
}
