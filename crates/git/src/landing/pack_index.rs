//! git's index of a pack, version 2: which objects the pack has.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use crate::error::GitError;
use crate::object::ObjectFormat;

/// Magic number and version.
const HEAD: [u8; 8] = [0xff, b't', b'O', b'c', 0, 0, 0, 2];
/// After the head: how many names start with each first byte or a smaller one.
const FANOUT: u64 = 8;
/// After those: the names, in order.
const NAMES: u64 = FANOUT + 256 * 4;

/// An open index.
pub(super) struct PackIndex {
    file: File,
    id_size: u64,
}

impl PackIndex {
    /// Opens it; none if there is no such file or it is of another version.
    pub(super) fn open(path: &Path, format: ObjectFormat) -> Result<Option<Self>, GitError> {
        let fail = |e| GitError::file("read", path)(e);
        let file = match File::open(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(fail)?,
        };
        let mut head = [0; HEAD.len()];
        let id_size = if format == ObjectFormat::Sha256 { 32 } else { 20 };
        match file.read_exact_at(&mut head, 0) {
            Ok(()) if head == HEAD => Ok(Some(Self { file, id_size })),
            Ok(()) => Ok(None),
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(e) => Err(fail(e)),
        }
    }

    /// Every object of the pack.
    pub(super) fn ids(&self) -> io::Result<Vec<Vec<u8>>> {
        (0..self.up_to(0xff)?).map(|at| self.name(at)).collect()
    }

    /// Whether the pack has the object.
    pub(super) fn has(&self, id: &[u8]) -> io::Result<bool> {
        let Some(first) = id.first() else { return Ok(false) };
        let mut low = if *first == 0 { 0 } else { self.up_to(first - 1)? };
        let mut high = self.up_to(*first)?;
        while low < high {
            let middle = u32::midpoint(low, high);
            match self.name(middle)?.as_slice().cmp(id) {
                std::cmp::Ordering::Equal => return Ok(true),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Ok(false)
    }

    fn up_to(&self, first: u8) -> io::Result<u32> {
        let mut count = [0; 4];
        self.file.read_exact_at(&mut count, FANOUT + u64::from(first) * 4)?;
        Ok(u32::from_be_bytes(count))
    }

    fn name(&self, at: u32) -> io::Result<Vec<u8>> {
        let mut name = vec![0; usize::try_from(self.id_size).unwrap_or(0)];
        self.file.read_exact_at(&mut name, NAMES + u64::from(at) * self.id_size)?;
        Ok(name)
    }
}
