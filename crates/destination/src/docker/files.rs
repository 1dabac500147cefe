//! Small files that every container sees: a user for git and Python, the marker, an unreadable resolv.conf.
//!
//! They are the same for all containers of a user, so that a killed herma leaves nothing new behind.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::ownership::User;
use crate::job::Mount;
use crate::sandbox::layout;

/// Writes missing files and returns their read-only mounts.
pub(super) fn lay_out(dir: &Path, user: User) -> io::Result<Vec<Mount>> {
    let User { uid, gid } = user;
    let home = layout::HOME;
    let files = [
        ("passwd", format!("agent:x:{uid}:{gid}:agent:{home}:/bin/sh\n"), 0o444, "/etc/passwd"),
        ("group", format!("agent:x:{gid}:\n"), 0o444, "/etc/group"),
        ("inside", "docker\n".to_owned(), 0o444, layout::INSIDE_MARKER),
        // Docker would expose the host's name servers. An unreadable file is as good as none.
        ("resolv.conf", String::new(), 0o000, "/etc/resolv.conf"),
    ];
    let mut mounts = Vec::new();
    for (name, text, mode, inside) in files {
        let host = write(dir, &format!("{uid}-{name}"), &text, mode)?;
        mounts.push(Mount { host, inside: inside.into() });
    }
    Ok(mounts)
}

/// The CA bundle of the host: on Debian, Fedora and SUSE.
const HOST_CA_BUNDLES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem"];

/// The paths where programs in any image look for a CA bundle.
const IMAGE_CA_BUNDLES: [&str; 2] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];

/// The host's CA bundle for containers with egress, as in the sandbox. An image may have none, and lacks
/// certificates that were added to the host. Returns the mounts and one of their paths.
pub(super) fn certificates() -> Option<(Vec<Mount>, PathBuf)> {
    // Resolved, because the link's target differs inside.
    let host = HOST_CA_BUNDLES.into_iter().find_map(|file| fs::canonicalize(file).ok())?;
    let mounts = IMAGE_CA_BUNDLES.map(|inside| Mount { host: host.clone(), inside: inside.into() });
    Some((mounts.into(), IMAGE_CA_BUNDLES[0].into()))
}

/// Atomic, because several processes of herma may write at once.
fn write(dir: &Path, name: &str, text: &str, mode: u32) -> io::Result<PathBuf> {
    let path = dir.join(name);
    let right = |meta: fs::Metadata| {
        meta.is_file() && meta.permissions().mode() & 0o777 == mode && meta.len() == text.len() as u64
    };
    if path.symlink_metadata().is_ok_and(right) {
        return Ok(path);
    }
    // Docker mounts the files one by one; no other user needs access.
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let own =
        format!("{name}.{}-{:?}", rustix::process::getpid().as_raw_nonzero(), std::thread::current().id());
    let temporary = dir.join(own);
    fs::write(&temporary, text)?;
    fs::set_permissions(&temporary, fs::Permissions::from_mode(mode))?;
    fs::rename(&temporary, &path)?;
    Ok(path)
}
