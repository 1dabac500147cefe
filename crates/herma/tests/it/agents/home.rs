//! Real agents, installed by herma itself from their registry: once for each version, kept beside the build, and linked
//! into the home of each test.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use herma_engines::Package;
use rustix::fs::{FlockOperation, flock};
use serde_json::Value;

use crate::kit::{Herma, environment, run_tool};

/// Where what was installed is kept.
const AGENTS: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/agents");

impl Herma {
    /// A home where the agent of this engine is installed, admitted and switched on, and where an approver's token is in
    /// the environment. It has proven nothing yet.
    pub(crate) fn with_agent(engine: &str, package: &Package) -> Self {
        let mut herma = Self::new();
        herma.let_in_by_token("robin");
        herma.let_agent_in(engine, package);
        herma
    }

    /// Installs the agent of this engine, has it admitted, and switches it on.
    pub(crate) fn let_agent_in(&self, engine: &str, package: &Package) {
        let tree = installed(engine, package);
        let place = self.home().join("installed").join(tree.file_name().unwrap());
        link(&tree, &place);
        let identity = package.source().identity_of(package.version).unwrap();
        let drafted = self.json(&[
            "admit",
            "engine",
            engine,
            "--json",
            "--program",
            place.to_str().unwrap(),
            &format!("--source={} {}", package.origin.name(), package.name),
            &format!("--pin={}", package.version),
            "--retrieval=herma engines install",
            &format!("--license={}", package.license),
            "--license-resolved=true",
            &format!("--identity={identity}"),
            "--review-trigger=digest_change",
        ]);
        assert!(drafted["lacks"].is_null(), "{drafted:#}");
        assert_eq!(self.sign("engine", engine)["status"], "admitted");
        self.json(&["engines", "enable", engine, "--json"]);
    }

    /// Has herma fetch the agent of this engine, and gives what it prints.
    pub(super) fn install(&mut self, engine: &str) -> Value {
        // npm and pip find their registry as they do for the person who runs the tests.
        let own = self.at("user");
        self.set("HOME", environment("HOME"));
        let mut ended = self.run_patiently(&["engines", "install", engine, "--json"]);
        if ended.stdout.contains("private_address") {
            // The registry of this machine is a mirror in a network of its own, which has to be said.
            ended = self.run_patiently(&["engines", "install", engine, "--own-network", "--json"]);
        }
        self.set("HOME", own);
        assert_eq!(ended.code, Some(0), "{ended:#?}");
        ended.json()
    }

    /// Lets the model `rehearsal/m` in, which the script in `case.yaml` answers for; what that one leaves is answered by
    /// another.
    pub(crate) fn with_rehearsal(&self) {
        let router =
            "[upstreams.rehearsal]\nprovider = \"scripted\"\nscripts = [\"case.yaml\", \"present.yaml\"]\n";
        let present = "name: present\nmodels: [m]\nrepeat: true\nturns: [say: I am there.]\n";
        fs::write(self.home().join("router.toml"), router).unwrap();
        fs::write(self.home().join("present.yaml"), present).unwrap();
        self.let_model_in("rehearsal/m", "none");
    }

    /// Lets a model on this machine in, whose credential comes from there.
    pub(super) fn let_model_in(&self, model: &str, credential_source: &str) {
        let args = ["admit", "model", model, "--json", "--network", "loopback"];
        let more = ["--credential-source", credential_source, "--review-trigger", "herma_version=0.1"];
        self.json(&[&args[..], &more].concat());
        assert_eq!(self.sign("model", model)["status"], "admitted");
    }
}

/// The tree of an agent. The first caller installs it; the others wait.
pub(super) fn installed(engine: &str, package: &Package) -> PathBuf {
    let place = Path::new(AGENTS).join(format!("{engine}-{}", package.version));
    fs::create_dir_all(&place).unwrap();
    let lock = File::create(place.join("lock")).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    let note = place.join("tree");
    if let Ok(tree) = fs::read_to_string(&note)
        && Path::new(&tree).is_dir()
    {
        return tree.into();
    }
    let mut herma = Herma::new();
    herma.set_home(&place.join("home"));
    let made = herma.install(engine);
    assert_eq!(made["version"], package.version);
    let tree = made["tree"].as_str().unwrap();
    fs::write(note, tree).unwrap();
    tree.into()
}

/// Links a tree file by file, or copies it from another disk.
pub(super) fn link(tree: &Path, place: &Path) {
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    let [tree, to] = [tree.as_os_str(), place.as_os_str()];
    let same_disk = {
        use std::os::unix::fs::MetadataExt as _;
        fs::metadata(tree).unwrap().dev() == fs::metadata(place.parent().unwrap()).unwrap().dev()
    };
    let how = OsStr::new(if same_disk { "-al" } else { "-a" });
    run_tool("cp", &[how, tree, to], &[]);
    make_removable(place);
}

/// Lets the directories of a tree be removed with the test's own. Its digest is over other things.
pub(super) fn make_removable(tree: &Path) {
    let words = ["-type", "d", "-exec", "chmod", "u+w", "{}", "+"].map(OsStr::new);
    run_tool("find", &[&[tree.as_os_str()], &words[..]].concat(), &[]);
}
