//! The results of a run's steps, in a file of its directory: recovery closes the run with them after a crash.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::file_reading::{MAX_RECORD_BYTES, open_with, read_regular};
use herma_home::sync_dir;

/// A step's result that the journal keeps.
pub(crate) trait StepResult: Serialize {
    /// Its key in the journal.
    const KEY: &'static str;
}

/// The journal of one run: each line holds one result, and the last one of a key counts.
#[derive(Debug)]
pub(crate) struct Journal {
    file: PathBuf,
}

impl Journal {
    pub(crate) fn new(file: PathBuf) -> Self {
        Self { file }
    }

    /// Appends a result. After a power cut it may be lost; then the bundle leaves out what depends on it.
    pub(crate) fn append<T: StepResult>(&self, result: &T) -> io::Result<()> {
        self.write(result).map(drop)
    }

    /// Appends a result where there is one.
    pub(crate) fn append_if_any<T: StepResult>(&self, result: Option<&T>) -> io::Result<()> {
        result.map_or(Ok(()), |result| self.append(result))
    }

    /// Appends a result durably: it must be known after a power cut.
    pub(crate) fn append_durably<T: StepResult>(&self, result: &T) -> io::Result<()> {
        self.write(result)?.sync_all()?;
        self.file.parent().map_or(Ok(()), sync_dir)
    }

    fn write<T: StepResult>(&self, result: &T) -> io::Result<File> {
        let mut file = open_with(File::options().create(true).append(true), &self.file)?;
        // The newline comes first: a line that was cut off before stays on its own.
        let mut line = b"\n".to_vec();
        serde_json::to_writer(&mut line, &BTreeMap::from([(T::KEY, result)]))?;
        file.write_all(&line)?;
        Ok(file)
    }

    /// The last result of each key, as one record. A line that cannot be read counts as never written.
    pub(crate) fn replay<T: for<'de> Deserialize<'de> + Default>(file: &Path) -> T {
        let lines = read_regular(file, MAX_RECORD_BYTES).unwrap_or_default();
        let mut last = serde_json::Map::new();
        for line in lines.split(|byte| *byte == b'\n') {
            if let Ok(Value::Object(entry)) = serde_json::from_slice(line) {
                last.extend(entry);
            }
        }
        serde_json::from_value(Value::Object(last)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct One(u8);

    impl StepResult for One {
        const KEY: &'static str = "one";
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Other(u8);

    impl StepResult for Other {
        const KEY: &'static str = "other";
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct All {
        one: Option<One>,
        other: Option<Other>,
    }

    #[test]
    fn the_last_whole_line_of_each_result_is_replayed() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("facts.jsonl");
        assert_eq!(Journal::replay::<All>(&file), All::default());
        let journal = Journal::new(file.clone());
        journal.append(&One(1)).unwrap();
        journal.append_durably(&Other(1)).unwrap();
        journal.append_if_any(Some(&One(2))).unwrap();
        assert_eq!(Journal::replay::<All>(&file), All { one: Some(One(2)), other: Some(Other(1)) });
        // Cut off in the middle, as when herma is killed while it writes.
        let whole = std::fs::read(&file).unwrap();
        std::fs::write(&file, &whole[..whole.len() - 1]).unwrap();
        assert_eq!(Journal::replay::<All>(&file), All { one: Some(One(1)), other: Some(Other(1)) });
        journal.append(&Other(3)).unwrap();
        assert_eq!(Journal::replay::<All>(&file), All { one: Some(One(1)), other: Some(Other(3)) });
    }
}
