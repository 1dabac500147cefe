//! The events of a stream that was read to its end.

use serde_json::Value;

/// The data of each event that is JSON. Whether all of them are is the tap's to say.
pub(super) fn events(body: &[u8]) -> Vec<Value> {
    let mut events = Vec::new();
    let mut data = Vec::new();
    for line in body.split(|byte| *byte == b'\n').chain([&b""[..]]) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if let Some(more) = line.strip_prefix(b"data:") {
            data.extend_from_slice(more);
            data.push(b'\n');
        } else if line.is_empty() {
            events.extend(serde_json::from_slice::<Value>(&data));
            data.clear();
        }
    }
    events
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_are_found_whatever_ends_their_lines() {
        let stream =
            "event: a\ndata: {\"a\":\ndata: 1}\n\n: ping\r\n\r\ndata:[2]\r\n\r\ndata: [DONE]\n\ndata: 3";
        assert_eq!(events(stream.as_bytes()), [json!({"a": 1}), json!([2]), json!(3)]);
    }
}
