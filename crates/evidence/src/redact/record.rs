//! Takes secrets out of every text of a record that goes into a bundle as JSON.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Redactor, UNCLEAR, mark};

/// The start and the end of a private key's header.
const DASHES: &str = "-----";

/// The bytes with which the next text of a record could begin, for a text that ends like the header of a private
/// key: no other secret continues after a line end.
const BODY: [u8; 41] = {
    let mut body = [b'A'; 41];
    body[0] = b'\n';
    body
};

impl Redactor {
    /// The record without secrets in any of its texts, in any field. The names of fields stay.
    pub fn redact_record<T: Serialize + DeserializeOwned>(&self, record: &T) -> serde_json::Result<T> {
        let mut value = serde_json::to_value(record)?;
        self.clean(&mut value);
        serde_json::from_value(value)
    }

    fn clean(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.redact_text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.clean(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.clean(field)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// The same for a text that will be part of a record.
    pub fn redact_text(&self, text: &mut String) {
        let stays_as_it_is = |byte: u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
        let is_plain = text.bytes().all(stays_as_it_is) && !text.contains(DASHES);
        if is_plain && !self.finds_secret(text.as_bytes()) {
            return;
        }
        *text = self.redact(text);
        // Escaping can bring together what was apart.
        let mut written = serde_json::to_vec(text).unwrap_or_default();
        written.extend(BODY);
        if self.finds_secret(text.as_bytes()) || self.finds_secret(&written) {
            *text = Self::unclear();
        }
    }

    /// Replaces a text in which the secret part cannot be determined.
    #[must_use]
    pub fn unclear() -> String {
        mark(UNCLEAR)
    }
}

#[cfg(test)]
mod tests {
    use herma_core::secret::Secret;
    use proptest::prelude::*;

    use super::*;
    use crate::secrets::scan;

    /// Put together here, so that no scanner trips over this file.
    fn token() -> String {
        format!("gh{}{}", "p_", "aB3dE5fG7hJ9kL2mN4pQ6rS8tU1vW0xYaB3d")
    }

    #[test]
    fn a_secret_is_removed_anywhere_and_the_rest_stays() {
        let known = Redactor::new([Secret::new("correct horse".to_owned())]);
        let record = serde_json::json!({
            "names": [format!("{}.ign", token()), "a/b.rs"],
            "deep": { "detail": format!("`{}` leads out", token()), "n": 3, "said": "correct horse!" },
        });
        let clean = serde_json::json!({
            "names": ["[redacted:github_token].ign", "a/b.rs"],
            "deep": { "detail": "`[redacted:github_token]` leads out", "n": 3, "said": "[redacted:known_secret]!" },
        });
        assert_eq!(known.redact_record(&record).unwrap(), clean);
    }

    proptest! {
        #[test]
        fn redacted_texts_show_no_secret_in_any_order(
            pieces in prop::collection::vec(prop::collection::vec(0usize..9, 0..6), 1..6)
        ) {
            let (token, body) = (token(), "aB3dE5fG7hJ9kL2mN4pQ6rS8tU1vW0xYaB3dE5fG7hJ9".to_owned());
            let header = format!("-----BEGIN {} KEY-----", "RSA PRIVATE");
            let kinds = [&token[..], &body, &header, "\n", "\"", "Proc-Type: 4", "password=", " ", "\\"];
            let texts: Vec<String> =
                pieces.iter().map(|text| text.iter().map(|kind| kinds[*kind]).collect()).collect();
            let clean = Redactor::default().redact_record(&texts).unwrap();
            let written = serde_json::to_vec_pretty(&clean).unwrap();
            prop_assert_eq!(scan(&written), [], "{}", String::from_utf8_lossy(&written));
        }
    }
}
