//! herma as somebody who is not root: what root may read anyway, a normal user may not.

use std::os::unix::fs::chown;
use std::path::Path;

use super::{HERMA, Herma, run_tool};

/// The normal user where root runs the tests.
const NOBODY: u32 = 65534;

impl Herma {
    /// A herma that a normal user runs, with a home that is this user's own; and the user's number.
    pub(crate) fn of_normal_user() -> (Self, u32) {
        let mut herma = Self::new();
        let user = rustix::process::geteuid();
        if !user.is_root() {
            return (herma, user.as_raw());
        }
        // A place and a binary that this user can reach.
        run_tool("chmod", &["755".as_ref(), herma.at("").as_os_str()], &[]);
        let own = herma.at("own");
        std::fs::create_dir(&own).unwrap();
        let binary = herma.program("own/herma", Path::new(HERMA));
        chown(&own, Some(NOBODY), Some(NOBODY)).unwrap();
        herma.set("HOME", &own);
        herma.set_home(&own.join("home"));
        herma.set("PATH", "/usr/local/bin:/usr/bin:/bin");
        herma.wrap(&["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]);
        herma.set_binary(&binary);
        (herma, NOBODY)
    }
}
