//! The variables that a process finds. They are built here from nothing: not one comes from herma's caller.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::job::{Job, View};

/// The variable that names the run in each of its processes.
pub const RUN_VARIABLE: &str = "HERMA_RUN";

/// The variable that says where the run's router answers, for programs that speak HTTP over TCP only.
pub const ROUTER_URL_VARIABLE: &str = "HERMA_ROUTER_URL";

/// What programs look at to find a proxy: some read only capitals, some only small letters.
const PROXIES: [&str; 4] = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"];

/// What is reached without the proxy: its own loopback, where also the ways out begin.
const DIRECT: &str = "127.0.0.1,localhost,::1";

/// Where programs are looked up, after the directories that the job names.
const SYSTEM_PATH: [&str; 6] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// Every variable of the job, later ones winning over earlier ones of the same name.
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
        // What `LANG` would say too, but programs read one file for it when they start, not a dozen.
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

/// The variables of the ways out, where the view has any. The job's own ones win over them.
pub(crate) fn ways_out(view: &View) -> Vec<(OsString, OsString)> {
    let at = |port: u16| OsString::from(format!("http://127.0.0.1:{port}"));
    let router = view.router_port.map(|port| (ROUTER_URL_VARIABLE.into(), at(port)));
    let mut all: Vec<(OsString, OsString)> = router.into_iter().collect();
    if let Some(port) = view.egress_port {
        all.extend(PROXIES.map(|name| (name.into(), at(port))));
        // OpenSSL's variable, which many others know; an image may have no file of its own.
        all.extend(view.certificates.iter().map(|file| ("SSL_CERT_FILE".into(), file.into())));
        all.extend(["NO_PROXY", "no_proxy"].map(|name| (name.into(), DIRECT.into())));
    }
    all
}
