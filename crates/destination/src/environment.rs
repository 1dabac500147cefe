//! The variables that a process finds. They are built here from nothing: not one comes from herma's caller.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::job::Job;

/// The variable that names the run in each of its processes.
pub const RUN_VARIABLE: &str = "HERMA_RUN";

/// Where programs are looked up, after the directories that the job names.
const SYSTEM_PATH: [&str; 6] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// Every variable of the job, later ones winning over earlier ones of the same name.
pub(crate) fn variables(job: &Job, home: &Path, tmp: &Path) -> Vec<(OsString, OsString)> {
    let mut path = OsString::new();
    for dir in job.path.iter().map(PathBuf::as_path).chain(SYSTEM_PATH.map(Path::new)) {
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
        ("LANG".into(), "C.UTF-8".into()),
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
