//! Small files that every container sees: a user for git and python, the marker of a run, an end of all names.
//!
//! They are the same for all containers of a user, so that nothing is left of one that was killed.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::owner::User;
use crate::job::Mount;
use crate::sandbox::layout;

/// Writes the files that are not there yet, and says where each appears. They are mounted for reading only.
pub(super) fn lay_out(dir: &Path, user: User) -> io::Result<Vec<Mount>> {
    let User { uid, gid } = user;
    let home = layout::HOME;
    let files = [
        ("passwd", format!("agent:x:{uid}:{gid}:agent:{home}:/bin/sh\n"), 0o444, "/etc/passwd"),
        ("group", format!("agent:x:{gid}:\n"), 0o444, "/etc/group"),
        ("inside", "docker\n".to_owned(), 0o444, layout::INSIDE_MARKER),
        // Docker would show the host's name servers. One that cannot be opened is one that is not there.
        ("resolv.conf", String::new(), 0o000, "/etc/resolv.conf"),
    ];
    let mut mounts = Vec::new();
    for (name, text, mode, inside) in files {
        let host = write(dir, &format!("{uid}-{name}"), &text, mode)?;
        mounts.push(Mount { host, inside: inside.into() });
    }
    Ok(mounts)
}

/// Where this machine has, in one file, whom programs trust that speak TLS: on Debian and its kin, Fedora and its kin, SUSE.
const OF_THIS_MACHINE: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem"];

/// Where programs of an image look for such a file, whatever the image is made of.
const OF_AN_IMAGE: [&str; 2] = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];

/// Whom programs trust that have a way out: whom this machine trusts, as in the sandbox. An image may have nobody, and a
/// certificate that a person added to the machine is not in it. Gives the mounts, and one of their places.
pub(super) fn certificates() -> Option<(Vec<Mount>, PathBuf)> {
    // Not the link to it, which leads to another place inside.
    let host = OF_THIS_MACHINE.into_iter().find_map(|file| fs::canonicalize(file).ok())?;
    let mounts = OF_AN_IMAGE.map(|inside| Mount { host: host.clone(), inside: inside.into() });
    Some((mounts.into(), OF_AN_IMAGE[0].into()))
}

/// Whole or not at all, as several of herma may do so at once.
fn write(dir: &Path, name: &str, text: &str, mode: u32) -> io::Result<PathBuf> {
    let path = dir.join(name);
    let right = |meta: fs::Metadata| {
        meta.is_file() && meta.permissions().mode() & 0o777 == mode && meta.len() == text.len() as u64
    };
    if path.symlink_metadata().is_ok_and(right) {
        return Ok(path);
    }
    // Docker mounts the files one by one; nobody else has to find them.
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let own =
        format!("{name}.{}-{:?}", rustix::process::getpid().as_raw_nonzero(), std::thread::current().id());
    let temporary = dir.join(own);
    fs::write(&temporary, text)?;
    fs::set_permissions(&temporary, fs::Permissions::from_mode(mode))?;
    fs::rename(&temporary, &path)?;
    Ok(path)
}
