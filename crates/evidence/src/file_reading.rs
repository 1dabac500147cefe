//! Reading what somebody else may have put in place: never through a link, never waiting, never without a limit.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

/// The largest report, attestation, proof or other record that is read.
pub const MAX_RECORD_BYTES: u64 = 64 << 20;

/// The bytes of a regular file, up to `limit` of them: no link is followed and no FIFO is waited for. What is larger
/// is an error, because a part of a file does not say what the file says.
pub fn read_regular(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let bytes = read_start(path, limit.saturating_add(1))?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::other(format!("it is larger than {limit} bytes")));
    }
    Ok(bytes)
}

/// The first `limit` bytes of a regular file, for who judges its size by itself.
pub fn read_start(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Opens a regular file: no link is followed and no FIFO is waited for.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a regular file")) }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn only_a_regular_file_of_sensible_size_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("file"), "four").unwrap();
        assert_eq!(read_regular(&at("file"), 4).unwrap(), b"four");
        assert!(read_regular(&at("file"), 3).unwrap_err().to_string().contains("larger than 3"));
        assert_eq!(read_regular(&at("none"), 4).unwrap_err().kind(), io::ErrorKind::NotFound);

        mknodat(CWD, at("fifo"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        symlink(at("file"), at("link")).unwrap();
        let _listening = UnixListener::bind(at("socket")).unwrap();
        File::create(at("huge")).unwrap().set_len(1 << 40).unwrap();
        for name in ["fifo", "link", "socket", "huge", "."] {
            let error = read_regular(&at(name), 4).unwrap_err();
            assert_ne!(error.kind(), io::ErrorKind::NotFound, "{name}");
        }
    }
}
