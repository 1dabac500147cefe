//! A throw-away directory with a home of its own, in which the rows of one job run.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use herma_core::RunId;
use herma_core::approver::Custody;
use herma_core::secret::Secret;
use herma_destination::{Tool, ToolOutput};
use herma_git::{GitDir, ObjectFormat, make_disposable};
use herma_harness::{Installation, SecretSource, Settings, SystemClock};
use herma_home::{HomePlace, remove_tree};
use herma_trust::{Approver, import_fixture};
use tempfile::TempDir;

use super::contract::with_terms;
use crate::proof_site::FIXTURE;

/// The approver of a throw-away home.
const APPROVER: &str = "matrix";
/// The home's name in the directory.
const HOME: &str = "home";

/// A throw-away directory with a home of its own.
pub(super) struct Site {
    dir: TempDir,
    settings: Settings,
    /// The digest cache of herma's program in the installation that runs the matrix.
    own_digest: PathBuf,
    /// The words before the program's own, where something is put around it.
    wrapper: Vec<OsString>,
    token: Option<Secret<String>>,
}

/// Gives an error in words: a row that could not be brought about does not hold, whatever the reason is.
pub(super) fn because<E: ToString>(doing: &str) -> impl Fn(E) -> String {
    move |error| format!("could not {doing}: {}", error.to_string())
}

impl Site {
    /// Makes the directory. Nothing of the user's own settings reaches it, except the search path.
    pub(super) fn make(base: &Settings, own_digest: &Path) -> Result<Self, String> {
        let dir = tempfile::Builder::new().prefix("herma-matrix-").tempdir();
        let dir = dir.map_err(because("make a throw-away directory"))?;
        for name in ["user", "contracts"] {
            fs::create_dir(dir.path().join(name)).map_err(because("make a throw-away directory"))?;
        }
        let settings = Settings {
            home: Some(HomePlace::named(dir.path().join(HOME))),
            user_home: dir.path().join("user"),
            secrets: SecretSource::default(),
            client_variables: std::collections::BTreeMap::new(),
            ..base.clone()
        };
        Ok(Self { dir, settings, own_digest: own_digest.to_owned(), wrapper: Vec::new(), token: None })
    }

    /// A path in the directory.
    pub(super) fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    /// The home.
    pub(super) fn home(&self) -> PathBuf {
        self.settings.home.as_ref().map_or_else(|| self.at(HOME), |place| place.path().to_owned())
    }

    /// Moves the home, which is not made yet.
    pub(super) fn set_home(&mut self, home: PathBuf) {
        self.settings.home = Some(HomePlace::named(home));
    }

    /// The directories in which programs are found.
    pub(super) fn search_path(&self) -> &OsStr {
        &self.settings.search_path
    }

    /// Replaces them.
    pub(super) fn set_search_path(&mut self, path: OsString) {
        self.settings.search_path = path;
    }

    /// Starts herma through these words from now on.
    pub(super) fn wrap(&mut self, words: Vec<OsString>) {
        self.wrapper = words;
    }

    /// Opens the home, and makes it where it is not there yet.
    pub(super) fn open(&self) -> Result<Installation, String> {
        let is_new = !self.home().exists();
        let open = || Installation::open(self.settings.clone(), Arc::new(SystemClock));
        let installation = open().map_err(because("open the throw-away home"))?;
        if is_new {
            // Without the cache the program is read once more.
            let _ = fs::copy(&self.own_digest, installation.home.own_digest());
        }
        Ok(installation)
    }

    /// The approver of the home, who is let in by the first call.
    pub(super) fn approver(&mut self, installation: &Installation) -> Result<Approver, String> {
        let approvers = installation.approvers();
        if self.token.is_none() {
            let name = APPROVER.parse()?;
            let made = approvers.init(&name, Custody::Token, None, None, installation.now());
            self.token = made.map_err(because("make an approver"))?.1;
        }
        let token = self.token.as_ref().ok_or("the approver has no token")?;
        approvers.from_token(token.expose()).map_err(because("open the approver's key"))
    }

    /// Writes a file into the directory.
    pub(super) fn file(&self, path: &str, content: impl AsRef<[u8]>) -> Result<PathBuf, String> {
        let path = self.at(path);
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir).map_err(because("make a directory"))?;
        }
        fs::write(&path, content).map_err(because("write a file"))?;
        Ok(path)
    }

    /// Makes a program of a script. Another process writes it: a file that this process has open for writing while another
    /// thread starts something cannot be run.
    pub(super) fn program(&self, path: &str, script: &str) -> Result<PathBuf, String> {
        let (text, path) = (self.file("program.sh", script)?, self.at(path));
        let install = Tool::find("install", self.search_path()).map_err(because("find `install`"))?;
        let installed = install.call().args(["-D", "-m", "755"]).arg(text).arg(&path).checked();
        installed.map_err(because("install a program"))?;
        Ok(path)
    }

    /// Makes a repository with one commit of the fixture's files.
    pub(super) fn repository(&self, installation: &Installation) -> Result<PathBuf, String> {
        let (dir, scratch) = (self.at("repo"), self.at("git"));
        let fixture = herma_fixtures::find(FIXTURE).ok_or("the fixture is not built in")?;
        let git = installation.git();
        let make = || {
            let git_dir = GitDir::create(git, &scratch, ObjectFormat::Sha1, None)?;
            let baseline = import_fixture(&git_dir, fixture)?;
            make_disposable(git, &dir, &git_dir, &baseline)
        };
        make().map_err(because("make a repository"))?;
        remove_tree(&scratch).map_err(because("make a repository"))?;
        Ok(dir)
    }

    /// Writes the fixture's contract with these keys replaced; gives its path and its text.
    pub(super) fn contract(&self, terms: &[(&str, &str)]) -> Result<(PathBuf, String), String> {
        let fixture = herma_fixtures::find(FIXTURE).ok_or("the fixture is not built in")?;
        let text = with_terms(fixture.contract, terms).ok_or("the fixture's contract has no front matter")?;
        Ok((self.file("contracts/contract.md", &text)?, text))
    }

    /// Writes the script of the engine: the name of one of the fixture's, or a script.
    pub(super) fn script(&self, script: &str) -> Result<(PathBuf, String), String> {
        let fixture = herma_fixtures::find(FIXTURE).ok_or("the fixture is not built in")?;
        let target = self.at("repo").display().to_string();
        let text = fixture.script(script).unwrap_or(script).replace("{target}", &target);
        Ok((self.file("script.yaml", &text)?, text))
    }

    /// Runs the program with these arguments to its end.
    pub(super) fn herma(&self, args: &[OsString], fault: Option<&str>) -> Result<ToolOutput, String> {
        let mut words = self.wrapper.clone();
        words.push(self.settings.herma.clone().into_os_string());
        words.extend(args.iter().cloned());
        let program = PathBuf::from(words.remove(0));
        let tool = Tool::at("herma", program);
        let mut call = tool
            .call()
            .args(words)
            .env("HERMA_HOME", self.home())
            .env("HOME", &self.settings.user_home)
            .env("PATH", self.search_path())
            .cwd(self.dir.path());
        if let Some(fault) = fault {
            call = call.env("HERMA_FAULT", fault);
        }
        call.output().map_err(because("start herma"))
    }

    /// Every run that the home has a directory of.
    pub(super) fn runs(&self) -> BTreeSet<RunId> {
        names(&self.home().join("runs")).iter().filter_map(|name| name.parse().ok()).collect()
    }
}

/// The names in a directory, sorted; none where it is not there.
pub(super) fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
