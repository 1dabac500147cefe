//! Why bytes are not a record of a bundle.

/// Why bytes are not a record as herma writes it.
#[derive(Debug, thiserror::Error)]
pub enum BadRecord {
    /// It is too long.
    #[error("it has {bytes} bytes, expected at most {max_bytes}")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The limit.
        max_bytes: usize,
    },
    /// It is not JSON of this kind.
    #[error("not {kind}: {source}")]
    Json {
        /// The expected kind.
        kind: &'static str,
        /// The error of the parser.
        source: serde_json::Error,
    },
    /// It is the record in another spelling than herma's.
    #[error("it is not the canonical form of {kind}")]
    NotCanonical {
        /// The kind.
        kind: &'static str,
    },
}

/// Reads a record whose bytes must be exactly those that `write` makes of it.
pub(crate) fn read_canonical<T: serde::de::DeserializeOwned>(
    bytes: &[u8],
    kind: &'static str,
    write: impl FnOnce(&T) -> Result<Vec<u8>, serde_json::Error>,
) -> Result<T, BadRecord> {
    let record: T = serde_json::from_slice(bytes).map_err(|source| BadRecord::Json { kind, source })?;
    match write(&record) {
        Ok(canonical) if canonical == bytes => Ok(record),
        _ => Err(BadRecord::NotCanonical { kind }),
    }
}
