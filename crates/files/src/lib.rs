//! Opens files that another user may have created. A FIFO, a device or a directory in place of a file is an error
//! at once: nothing blocks, and nothing is read without a limit.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

/// The largest report, attestation, proof or other record that is read.
pub const MAX_RECORD_BYTES: u64 = 64 << 20;

const NOT_REGULAR: &str = "it is not a regular file";

/// The bytes of a regular file, up to `limit` of them: no link is followed and no FIFO is waited for. A larger file
/// is an error, because a part of a file does not say what the file says.
pub fn read_regular(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_whole(open_regular(path)?, limit)
}

/// The first `limit` bytes of a regular file, for callers that check its size themselves.
pub fn read_start(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The bytes of a file that a person named, up to `limit` of them. Links are followed.
pub fn read_named(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_whole(open_named(path)?, limit)
}

/// Opens a regular file: no link is followed and no FIFO is waited for.
pub fn open_regular(path: &Path) -> io::Result<File> {
    open(OpenOptions::new().read(true), path, OFlags::NOFOLLOW)
}

/// Opens a regular file that a person named. Links are followed.
pub fn open_named(path: &Path) -> io::Result<File> {
    open(OpenOptions::new().read(true), path, OFlags::empty())
}

/// Opens a regular file with these options: no link is followed and no FIFO is waited for. `truncate` must not be among
/// the options: it takes effect before the check.
pub fn open_with(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    open(options, path, OFlags::NOFOLLOW)
}

/// Opens a directory.
pub fn open_directory(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(bits(OFlags::DIRECTORY)?).open(path)
}

/// An error where something has this name that is not a regular file.
pub fn check_regular_or_absent(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_file() => Ok(()),
        Ok(_) => Err(not_regular()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(e),
    }
}

fn open(options: &mut OpenOptions, path: &Path, follow: OFlags) -> io::Result<File> {
    let flags = bits(OFlags::NONBLOCK | OFlags::NOCTTY | follow)?;
    let file = options.custom_flags(flags).open(path).map_err(|e| match Errno::from_io_error(&e) {
        // A FIFO without a reader, a socket, a device without a driver; a link where none is followed.
        Some(Errno::NXIO | Errno::NODEV | Errno::ISDIR) => not_regular(),
        Some(Errno::LOOP) => io::Error::other("it is a symbolic link, or one of too many in a row"),
        _ => e,
    })?;
    let meta = file.metadata()?;
    if meta.is_file() {
        return Ok(file);
    }
    let kind = if meta.is_dir() { io::ErrorKind::IsADirectory } else { io::ErrorKind::Other };
    Err(io::Error::new(kind, NOT_REGULAR))
}

fn read_whole(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::other(format!("it is larger than {limit} bytes")));
    }
    Ok(bytes)
}

fn bits(flags: OFlags) -> io::Result<i32> {
    i32::try_from(flags.bits()).map_err(io::Error::other)
}

fn not_regular() -> io::Error {
    io::Error::other(NOT_REGULAR)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn only_a_regular_file_of_sensible_size_is_opened() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("file"), "four").unwrap();
        assert_eq!(read_regular(&at("file"), 4).unwrap(), b"four");
        assert!(read_regular(&at("file"), 3).unwrap_err().to_string().contains("larger than 3"));
        assert_eq!(read_regular(&at("none"), 4).unwrap_err().kind(), io::ErrorKind::NotFound);
        check_regular_or_absent(&at("file")).unwrap();
        check_regular_or_absent(&at("none")).unwrap();

        mknodat(CWD, at("fifo"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        symlink(at("file"), at("link")).unwrap();
        symlink("loop", at("loop")).unwrap();
        symlink("/dev/zero", at("zero")).unwrap();
        let _listening = UnixListener::bind(at("socket")).unwrap();
        File::create(at("huge")).unwrap().set_len(1 << 40).unwrap();
        for name in ["fifo", "link", "loop", "zero", "socket", "huge", "."] {
            let error = read_regular(&at(name), 4).unwrap_err();
            assert_ne!(error.kind(), io::ErrorKind::NotFound, "{name}");
        }
        assert_eq!(read_named(&at("link"), 4).unwrap(), b"four");
        for name in ["fifo", "loop", "zero", "socket", "huge", "."] {
            assert!(read_named(&at(name), 4).is_err(), "{name}");
        }
        for name in ["fifo", "link", "loop", "zero", "socket", "."] {
            let opened = open_with(OpenOptions::new().append(true).create(true), &at(name));
            assert!(opened.is_err(), "{name}");
            assert!(check_regular_or_absent(&at(name)).is_err(), "{name}");
        }
        for name in ["fifo", "file", "loop", "zero", "socket"] {
            assert!(open_directory(&at(name)).is_err(), "{name}");
        }
        open_directory(dir.path()).unwrap();
    }
}
