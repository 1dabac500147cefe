//! The environment of a process, built from nothing: no variable comes from herma's caller.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::job::{Job, View};
use crate::variable_names::{ROUTER_URL_VARIABLE, RUN_VARIABLE};

/// The proxy variables: some programs read only upper case, some only lower case.
const PROXIES: [&str; 4] = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"];

/// Hosts that are reached without the proxy: the loopback, where the relay listens.
const DIRECT: &str = "127.0.0.1,localhost,::1";

/// The directories of PATH after those that the job names.
const SYSTEM_PATH: [&str; 6] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// Every variable of the job; a later one replaces an earlier one of the same name.
pub(crate) fn variables(job: &Job, home: &Path, tmp: &Path) -> Vec<(OsString, OsString)> {
    let mut path = OsString::new();
    for dir in job.search_path.iter().map(PathBuf::as_path).chain(SYSTEM_PATH.map(Path::new)) {
        if !path.is_empty() {
            path.push(":");
        }
        path.push(dir);
    }
    let mut all: Vec<(OsString, OsString)> = vec![
        ("PATH".into(), path),
        ("HOME".into(), home.into()),
        ("TMPDIR".into(), tmp.into()),
        ("USER".into(), "agent".into()),
        // Instead of `LANG`, because programs read one locale file for it at startup, not a dozen.
        ("LC_CTYPE".into(), "C.UTF-8".into()),
        ("TERM".into(), "dumb".into()),
        ("GIT_CONFIG_NOSYSTEM".into(), "1".into()),
        ("GIT_CONFIG_GLOBAL".into(), "/dev/null".into()),
        ("GIT_AUTHOR_NAME".into(), "agent".into()),
        ("GIT_AUTHOR_EMAIL".into(), "agent@herma.invalid".into()),
        ("GIT_COMMITTER_NAME".into(), "agent".into()),
        ("GIT_COMMITTER_EMAIL".into(), "agent@herma.invalid".into()),
    ];
    for (name, value) in &job.env {
        all.retain(|(known, _)| known != name.as_str());
        all.push((name.into(), value.into()));
    }
    all.push((RUN_VARIABLE.into(), job.run_id.to_string().into()));
    all
}

/// The variables that point to the loopback relay, where the view has relayed ports. The job's own variables win.
pub(crate) fn relay_variables(view: &View) -> Vec<(OsString, OsString)> {
    let at = |port: u16| OsString::from(format!("http://127.0.0.1:{port}"));
    let router = view.router_port.map(|port| (ROUTER_URL_VARIABLE.into(), at(port)));
    let mut all: Vec<(OsString, OsString)> = router.into_iter().collect();
    if let Some(port) = view.egress_port {
        all.extend(PROXIES.map(|name| (name.into(), at(port))));
        // OpenSSL's variable, which many other libraries honour; an image may have no certificates of its own.
        all.extend(view.certificates.iter().map(|file| ("SSL_CERT_FILE".into(), file.into())));
        all.extend(["NO_PROXY", "no_proxy"].map(|name| (name.into(), DIRECT.into())));
    }
    all
}
