//! The page of records that one code signs.

use std::fmt::Write as _;

use herma_api::output::{QuickstartPage, QuickstartRecord};
use herma_core::Digest;
use herma_trust::AdmissionFile;

/// How many digits of the digest are typed.
const CODE_DIGITS: usize = 6;

/// The records to be signed, in order.
#[derive(Clone, Debug)]
pub struct Page {
    records: Vec<AdmissionFile>,
}

impl Page {
    /// None without a record: nothing has to be signed.
    pub(crate) fn of(records: Vec<AdmissionFile>) -> Option<Self> {
        (!records.is_empty()).then_some(Self { records })
    }

    /// The records.
    #[must_use]
    pub fn records(&self) -> &[AdmissionFile] {
        &self.records
    }

    /// The digest over the list: kind, name and digest of each record.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let mut list = String::new();
        for record in &self.records {
            // Writing to a String cannot fail. No name holds a space or a line break.
            let _ = writeln!(list, "{} {} {}", record.id.kind(), record.id.name(), record.digest());
        }
        Digest::of(list.as_bytes())
    }

    /// The code for exactly these records.
    #[must_use]
    pub fn code(&self) -> String {
        self.digest().hex().chars().take(CODE_DIGITS).collect()
    }

    /// The page as output.
    #[must_use]
    pub fn output(&self) -> QuickstartPage {
        let record = |read: &AdmissionFile| QuickstartRecord {
            kind: read.id.kind(),
            name: read.id.name(),
            digest: read.digest(),
            text: String::from_utf8_lossy(&read.bytes).into_owned(),
        };
        QuickstartPage {
            code: self.code(),
            digest: self.digest(),
            records: self.records.iter().map(record).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use herma_core::admission::{AdmissionDraft, AdmissionId, AdmissionKind};

    use super::*;

    fn record(name: &str, more: &str) -> AdmissionFile {
        let id = AdmissionId::parse(AdmissionKind::Engine, name).unwrap();
        let draft = AdmissionDraft::new(id.clone());
        AdmissionFile { id, bytes: format!("{}{more}", draft.to_yaml()).into_bytes(), draft }
    }

    #[test]
    fn another_byte_another_record_or_another_order_is_another_code() {
        let page = |records: Vec<AdmissionFile>| Page::of(records).unwrap();
        let (codex, claude) = (record("codex", ""), record("claude", ""));
        let code = page(vec![codex.clone(), claude.clone()]).code();
        assert_eq!(code.len(), CODE_DIGITS);
        assert_eq!(code, page(vec![codex.clone(), claude.clone()]).code());
        assert_ne!(code, page(vec![claude.clone(), codex.clone()]).code());
        assert_ne!(code, page(vec![codex.clone()]).code());
        assert_ne!(code, page(vec![record("codex", "# read\n"), claude]).code());
        assert!(Page::of(Vec::new()).is_none());
    }
}
