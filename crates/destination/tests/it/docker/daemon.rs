//! A Docker daemon of the test's own, and an image made of this machine's files. Both are removed with the test.
//! Tests of other crates include this file, so that it depends on none of them.
#![allow(
    dead_code,
    clippy::disallowed_types,
    reason = "each crate uses a part of it, and starts programs from outside"
)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use herma_core::RunId;
use herma_destination::{Destination as _, Docker, DockerOptions, ReapError};
use rustix::mount::UnmountFlags;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// The programs that the jobs of these tests call.
const PROGRAMS: [&str; 13] =
    ["sh", "cat", "env", "git", "grep", "id", "ls", "python3", "sed", "setsid", "sleep", "touch", "tr"];

pub(crate) struct Daemon {
    dir: TempDir,
    process: Child,
    image: String,
    herma: PathBuf,
}

impl Daemon {
    /// Starts one whose image has the libraries that this binary is linked to.
    pub(crate) fn start(herma: PathBuf) -> Self {
        let dir = TempDir::new().unwrap();
        let process = run(dir.path());
        let mut daemon = Self { dir, process, image: String::new(), herma };
        daemon.wait_until_up();
        daemon.image = daemon.import(&[
            "ENV LEAK=1",
            "ENTRYPOINT [\"/bin/false\"]",
            "HEALTHCHECK CMD touch /tmp/healthy",
        ]);
        daemon
    }

    fn wait_until_up(&mut self) {
        let give_up = Instant::now() + Duration::from_mins(1);
        while !(self.socket().exists() && self.docker(&["version"]).status.success()) {
            let ended = self.process.try_wait().unwrap();
            assert_eq!(ended, None, "{}", fs::read_to_string(self.path("log")).unwrap_or_default());
            assert!(Instant::now() < give_up, "the Docker daemon does not come up (it needs root)");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Kills the daemon, which then cannot end its containers.
    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Starts it again with the same state.
    pub(crate) fn restart(&mut self) {
        // A dying or zombie process would be taken for alive and waited for.
        for name in ["pid", "run/containerd/containerd.pid"] {
            let _ = fs::remove_file(self.path(name));
        }
        self.process = run(self.dir.path());
        self.wait_until_up();
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.dir.path().join("sock")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn image(&self) -> &str {
        &self.image
    }

    pub(crate) fn options(&self) -> DockerOptions {
        DockerOptions {
            image: Some(self.image.parse().unwrap()),
            socket: Some(format!("unix://{}", self.socket().display())),
            runtime: None,
            files: self.dir.path().join("files"),
        }
    }

    pub(crate) fn destination(&self) -> Docker {
        Docker::new(self.herma.clone(), self.options())
    }

    pub(crate) fn reap(&self, run: RunId) -> Result<usize, ReapError> {
        Docker::new(self.herma.clone(), DockerOptions { image: None, ..self.options() }).reap(run)
    }

    /// Calls the docker CLI.
    pub(crate) fn docker(&self, words: &[&str]) -> Output {
        Command::new("docker")
            .arg("-H")
            .arg(format!("unix://{}", self.socket().display()))
            .args(words)
            .output()
            .unwrap()
    }

    pub(crate) fn say(&self, words: &[&str]) -> String {
        let output = self.docker(words);
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// The containers of a run, running or not.
    pub(crate) fn containers(&self, run: RunId) -> Vec<String> {
        let label = format!("label=herma.run={run}");
        let said = self.say(&["ps", "--all", "--quiet", "--no-trunc", "--filter", &label]);
        said.lines().map(str::to_owned).collect()
    }

    /// Another image of the same files.
    pub(crate) fn import(&self, changes: &[&str]) -> String {
        let tree = self.dir.path().join("tree");
        if !tree.exists() {
            plant(&tree, &self.herma);
        }
        let mut tar = Command::new("tar");
        tar.args(["--owner=0", "--group=0", "-C"]).arg(&tree).args(["-c", "."]);
        let mut tar = tar.stdout(Stdio::piped()).spawn().unwrap();
        let mut import = Command::new("docker");
        import.arg("-H").arg(format!("unix://{}", self.socket().display())).arg("import");
        for change in changes {
            import.args(["--change", change]);
        }
        let output = import.arg("-").stdin(tar.stdout.take().unwrap()).output().unwrap();
        assert!(tar.wait().unwrap().success() && output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Stops the daemon as its service manager would, with its children.
    pub(crate) fn stop(&mut self) {
        if self.process.try_wait().unwrap().is_some() {
            return;
        }
        kill_process(Pid::from_child(&self.process), Signal::TERM).unwrap();
        let give_up = Instant::now() + Duration::from_mins(2);
        while self.process.try_wait().unwrap().is_none() {
            assert!(Instant::now() < give_up, "the Docker daemon does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.stop();
        // A killed daemon leaves processes and mounts; all of them name this directory.
        let own = self.dir.path().to_string_lossy().into_owned();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let said = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let pid = entry.file_name().to_str().and_then(|name| Pid::from_raw(name.parse().ok()?));
            if let Some(pid) = pid.filter(|_| String::from_utf8_lossy(&said).contains(&own)) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        let mounts = fs::read_to_string("/proc/mounts").unwrap();
        for place in mounts.lines().rev().filter_map(|line| line.split(' ').nth(1)) {
            if place.starts_with(&own) {
                let _ = rustix::mount::unmount(place, UnmountFlags::DETACH);
            }
        }
        // In each hierarchy, or in the only one there is.
        let groups = Path::new("/sys/fs/cgroup");
        let hierarchies = fs::read_dir(groups).unwrap().flatten().map(|entry| entry.path());
        for hierarchy in hierarchies.chain([groups.to_owned()]) {
            let _ = fs::remove_dir(hierarchy.join(group(self.dir.path())));
        }
    }
}

/// The name of the parent cgroup of the containers.
fn group(dir: &Path) -> String {
    format!("docker{}", dir.file_name().unwrap().to_str().unwrap())
}

fn run(dir: &Path) -> Child {
    let at = |name: &str| dir.join(name);
    Command::new("setpriv")
        .args(["--pdeathsig", "TERM", "dockerd"])
        .arg("--data-root")
        .arg(at("root"))
        .arg("--exec-root")
        .arg(at("run"))
        .arg("--pidfile")
        .arg(at("pid"))
        .arg("-H")
        .arg(format!("unix://{}", at("sock").display()))
        .args(["--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false"])
        .args(["--bridge=none", "--storage-driver", "overlay2", "--cgroup-parent", &group(dir)])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(fs::File::create(at("log")).unwrap())
        .spawn()
        .expect("setpriv and dockerd are installed: apt install docker.io")
}

/// Copies programs, their libraries, and Python's standard library.
fn plant(tree: &Path, herma: &Path) {
    for dir in ["usr", "etc", "tmp", "root", "proc", "dev", "sys"] {
        fs::create_dir_all(tree.join(dir)).unwrap();
    }
    for name in ["bin", "sbin", "lib", "lib64"] {
        match fs::read_link(Path::new("/").join(name)) {
            Ok(target) => symlink(target, tree.join(name)).unwrap(),
            Err(_) => fs::create_dir_all(tree.join(name)).unwrap(),
        }
    }
    let found = PROGRAMS.map(|name| {
        let dirs = ["/usr/bin", "/bin"].map(|dir| Path::new(dir).join(name));
        dirs.into_iter().find(|path| path.exists()).unwrap_or_else(|| panic!("{name} is not installed"))
    });
    let modules = "import sysconfig; print(sysconfig.get_path('stdlib'))";
    let python = Command::new("/usr/bin/python3").args(["-c", modules]).output().unwrap();
    let python = PathBuf::from(String::from_utf8(python.stdout).unwrap().trim());
    let mut linked: Vec<PathBuf> = found.to_vec();
    linked.push(herma.to_owned());
    linked.extend(fs::read_dir(python.join("lib-dynload")).unwrap().map(|entry| entry.unwrap().path()));
    let said = Command::new("ldd").args(&linked).output().unwrap();
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let libraries = said.split_whitespace().filter(|word| word.starts_with('/') && !word.ends_with(':'));
    let mut all: Vec<PathBuf> = found.to_vec();
    all.extend(libraries.map(PathBuf::from));
    all.sort_unstable();
    all.dedup();
    for file in all {
        let dir = file.parent().unwrap().canonicalize().unwrap();
        let to = tree.join(dir.strip_prefix("/").unwrap());
        fs::create_dir_all(&to).unwrap();
        fs::copy(&file, to.join(file.file_name().unwrap())).unwrap();
    }
    let to = tree.join(python.parent().unwrap().strip_prefix("/").unwrap());
    fs::create_dir_all(&to).unwrap();
    assert!(Command::new("cp").arg("-r").arg(&python).arg(to).status().unwrap().success());
}
