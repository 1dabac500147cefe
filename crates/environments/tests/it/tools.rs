//! Tools: found by PATH, variables and version managers, and mounted without credentials.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use herma_destination::Mount;
use herma_environments::build::JobSettings;
use herma_environments::tools::{
    CREDENTIAL_PATHS, HostEnvironment, ManagerPlace, OperatorTool, TOOLS, ToolError, exposes_credentials,
    find, find_all,
};

/// A home of its own, with nothing in it.
struct Machine {
    _dir: tempfile::TempDir,
    host: HostEnvironment,
}

impl Machine {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap().join("home");
        fs::create_dir(&home).unwrap();
        let host = HostEnvironment { home, ..HostEnvironment::default() };
        Self { _dir: dir, host }
    }

    fn home(&self) -> &Path {
        &self.host.home
    }

    /// A program that prints a version.
    fn program(&self, path: &str, says: &str) -> PathBuf {
        let file = self.home().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, format!("#!/bin/sh\necho '{says}'\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        file
    }

    fn put_in_path(&mut self, dir: &Path) {
        self.host.search_path = dir.into();
    }
}

fn request(text: &str) -> herma_core::environment::ToolRequest {
    text.parse().unwrap()
}

#[test]
fn a_version_manager_has_the_version_that_path_has_not() {
    let mut machine = Machine::new();
    let on_path = machine.program("opt/cmake/bin/cmake", "cmake version 3.25.1");
    machine.put_in_path(on_path.parent().unwrap());
    let found = find(&request("cmake"), &machine.host, &[]).unwrap();
    assert_eq!((found.version.as_str(), &found.program), ("3.25.1", &on_path));
    assert_eq!(found.search_path, [on_path.parent().unwrap()]);

    machine.program(".sdkman/candidates/gradle/8.5/bin/gradle", "Gradle 8.5");
    machine.program(".sdkman/candidates/gradle/8.10/bin/gradle", "Gradle 8.10");
    let newest = find(&request("gradle"), &machine.host, &[]).unwrap();
    assert_eq!(newest.version, "8.10");
    let older = find(&request("gradle@8.5"), &machine.host, &[]).unwrap();
    assert_eq!(older.version, "8.5");
    assert_ne!(newest.digest, older.digest);
}

#[test]
fn a_missing_version_names_what_is_there_and_how_to_install_it() {
    let machine = Machine::new();
    machine.program(".sdkman/candidates/gradle/8.5/bin/gradle", "Gradle 8.5");
    let missing = find(&request("gradle@9"), &machine.host, &[]).unwrap_err();
    let text = missing.to_string();
    assert!(matches!(missing, ToolError::Missing { .. }));
    assert!(text.contains("no gradle 9") && text.contains("8.5 (") && text.contains("sdk install"), "{text}");
    assert!(
        matches!(find(&request("bun"), &machine.host, &[]), Err(ToolError::Missing { found, .. }) if found.is_empty())
    );
    // A prefix counts in whole components.
    assert!(find(&request("gradle@8.50"), &machine.host, &[]).is_err());
}

#[test]
fn a_shim_leads_to_the_installation_that_it_starts() {
    let mut machine = Machine::new();
    let real = machine.program(".pyenv/versions/3.12.1/bin/python3", "Python 3.12.1");
    fs::create_dir_all(machine.home().join(".pyenv/versions/3.12.1/lib")).unwrap();
    let prefix = machine.home().join(".pyenv/versions/3.12.1");
    let shim = machine.program(".pyenv/shims/python3", &prefix.display().to_string());
    machine.put_in_path(shim.parent().unwrap());
    let found = find(&request("python"), &machine.host, &[]).unwrap();
    assert_eq!(found.program, real);
    let mounted: Vec<&Path> = found.mounts.iter().map(|mount| mount.host.as_path()).collect();
    assert_eq!(mounted, [prefix.join("bin"), prefix.join("lib")]);
}

/// The directory of programs of a place, with a version in place of `*`.
fn place_below_home(place: &ManagerPlace) -> Option<PathBuf> {
    let below = place.programs.replace('*', "1.2.3");
    (!below.starts_with('/')).then(|| Path::new(place.default).join(below))
}

#[test]
fn no_tool_shows_a_credential_wherever_it_is_installed() {
    for row in TOOLS {
        for place in row.managers.iter().filter_map(place_below_home) {
            let machine = Machine::new();
            let canaries: Vec<PathBuf> =
                CREDENTIAL_PATHS.iter().map(|path| machine.home().join(path)).collect();
            for canary in &canaries {
                let is_dir = canary.extension().is_none() && !canary.ends_with("credentials");
                let file = if is_dir { canary.join("canary") } else { canary.clone() };
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                let _ = fs::write(file, "canary-value");
            }
            let program = place.join(row.programs[0]);
            let file = machine.program(&program.display().to_string(), "");
            // Configuration of the installation itself, which may hold tokens too.
            let prefix = machine.home().join(&place).parent().unwrap().to_owned();
            let script = format!(
                "#!/bin/sh\ncase \"$*\" in *ersion*) echo v1.2.3;; *) echo '{}';; esac\n",
                prefix.display()
            );
            fs::write(file, script).unwrap();
            for file in ["etc/npmrc", "conf/settings.xml", "pip.conf", "init.d/own.gradle"] {
                fs::create_dir_all(prefix.join(file).parent().unwrap()).unwrap();
                fs::write(prefix.join(file), "canary-value").unwrap();
            }
            let found = match find(&request(row.name), &machine.host, &[]) {
                Ok(found) => found,
                Err(ToolError::Credentials { .. }) => continue,
                Err(other) => panic!("{} in {}: {other}", row.name, place.display()),
            };
            for mount in &found.mounts {
                assert!(!shows(&mount.host, "canary-value"), "{} shows {}", row.name, mount.host.display());
            }
        }
    }
}

/// Whether a text is in any file below a path.
fn shows(path: &Path, text: &str) -> bool {
    if path.is_dir() {
        return fs::read_dir(path).unwrap().any(|entry| shows(&entry.unwrap().path(), text));
    }
    fs::read_to_string(path).is_ok_and(|content| content.contains(text))
}

#[test]
fn an_installation_that_is_the_home_is_not_mounted() {
    let mut machine = Machine::new();
    // The prefix is the home: its `lib` is fine, a `bin` beside `.netrc` is fine too; a link into `.ssh` is not.
    fs::create_dir_all(machine.home().join(".ssh")).unwrap();
    let program = machine.program(".ssh/tool", "tool 1.0");
    machine.put_in_path(program.parent().unwrap());
    let own = OperatorTool {
        name: "tool".to_owned(),
        path: program,
        mounts: Vec::new(),
        env: std::iter::once(("TOOL".to_owned(), "1".to_owned())).collect(),
    };
    let refused = find(&request("tool"), &machine.host, std::slice::from_ref(&own)).unwrap_err();
    assert!(matches!(refused, ToolError::Credentials { .. }), "{refused}");

    let path = machine.program("opt/tool/tool", "tool 1.0");
    let own = OperatorTool { path, ..own };
    let found = find(&request("tool@1"), &machine.host, std::slice::from_ref(&own)).unwrap();
    assert_eq!((found.version.as_str(), found.env.len()), ("1.0", 1));
    let whole_home = OperatorTool { mounts: vec![machine.home().to_owned()], ..own };
    assert!(matches!(
        find(&request("tool"), &machine.host, &[whole_home]),
        Err(ToolError::Credentials { .. })
    ));
    assert!(matches!(find(&request("other"), &machine.host, &[]), Err(ToolError::Unknown(_))));
}

#[test]
fn tools_come_with_those_that_they_need() {
    let mut machine = Machine::new();
    let node = machine.program("node/bin/node", "v22.1.0");
    let package = machine.home().join("node/lib/node_modules/npm");
    fs::create_dir_all(package.join("bin")).unwrap();
    fs::write(package.join("package.json"), "{}").unwrap();
    machine.program("node/lib/node_modules/npm/bin/npm-cli.js", "10.9.0");
    symlink("../lib/node_modules/npm/bin/npm-cli.js", machine.home().join("node/bin/npm")).unwrap();
    // The fake node is a script, which is asked for its prefix.
    fs::write(
        &node,
        format!("#!/bin/sh\n[ \"$1\" = -p ] && echo {}/node || echo v22.1.0\n", machine.home().display()),
    )
    .unwrap();
    machine.put_in_path(node.parent().unwrap());
    let found = find_all(&[request("npm")], &machine.host, &[]).unwrap();
    let names: Vec<(&str, &str)> =
        found.iter().map(|tool| (tool.name.as_str(), tool.version.as_str())).collect();
    assert_eq!(names, [("npm", "10.9.0"), ("node", "22.1.0")]);
    assert!(found[0].mounts.iter().any(|mount| mount.host == package));
    assert!(found[0].search_path.contains(&machine.home().join("node/bin")));
}

#[test]
fn every_row_says_how_to_install_its_tool_and_is_listed_once() {
    for (at, row) in TOOLS.iter().enumerate() {
        assert!(!row.install.is_empty() && !row.programs.is_empty(), "{}", row.name);
        assert!(TOOLS[..at].iter().all(|other| other.name != row.name), "{}", row.name);
        assert!(row.needs.iter().all(|name| TOOLS.iter().any(|other| other.name == *name)), "{}", row.name);
    }
}

#[test]
fn a_prefix_that_programs_share_shows_the_program_and_its_own_parts() {
    for prefix in ["", ".local/"] {
        let mut machine = Machine::new();
        let program = machine.program(&format!("{prefix}bin/cmake"), "cmake version 3.28.1");
        for file in ["share/cmake-3.28/Modules/a.cmake", "share/other/canary", "lib/other/canary", "bin/own"]
        {
            let file = machine.home().join(prefix).join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "canary-value").unwrap();
        }
        machine.put_in_path(program.parent().unwrap());
        let found = find(&request("cmake"), &machine.host, &[]).unwrap();
        let mounted: Vec<&Path> = found.mounts.iter().map(|mount| mount.host.as_path()).collect();
        let own = machine.home().join(prefix).join("share/cmake-3.28");
        assert_eq!(mounted, [program.as_path(), own.as_path()], "{prefix}");
        assert_eq!(found.search_path, [program.parent().unwrap()], "{prefix}");

        // The table names no parts of Gradle's own: it needs more than its program.
        let gradle = machine.program(&format!("{prefix}bin/gradle"), "Gradle 8.5");
        machine.put_in_path(gradle.parent().unwrap());
        let refused = find(&request("gradle"), &machine.host, &[]).unwrap_err();
        assert!(matches!(refused, ToolError::SharedPrefix { .. }), "{prefix}: {refused}");
        assert!(refused.to_string().contains("a directory of its own"), "{prefix}: {refused}");
    }
    // `python3` is a link to the versioned program beside it.
    let mut machine = Machine::new();
    let real = machine.program(".local/bin/python3.12", "Python 3.12.1");
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *ersion*) echo Python 3.12.1;; *) echo {}/.local;; esac\n",
        machine.home().display()
    );
    fs::write(&real, script).unwrap();
    let name = machine.home().join(".local/bin/python3");
    symlink("python3.12", &name).unwrap();
    fs::create_dir_all(machine.home().join(".local/lib/python3.12")).unwrap();
    fs::create_dir_all(machine.home().join(".local/lib/other")).unwrap();
    machine.put_in_path(name.parent().unwrap());
    let found = find(&request("python"), &machine.host, &[]).unwrap();
    let mounted: Vec<&Path> = found.mounts.iter().map(|mount| mount.host.as_path()).collect();
    assert_eq!(mounted, [&*real, &*name, &*machine.home().join(".local/lib/python3.12")]);
}

#[test]
fn credentials_behind_links_and_hermas_own_home_are_not_mounted() {
    let machine = Machine::new();
    let mount = |path: &Path| Mount { host: path.to_owned(), inside: path.to_owned() };
    let elsewhere = tempfile::tempdir().unwrap();
    let elsewhere = elsewhere.path().canonicalize().unwrap();
    fs::create_dir_all(elsewhere.join("keys/deep")).unwrap();
    symlink(elsewhere.join("keys"), machine.home().join(".ssh")).unwrap();
    for path in ["", "keys", "keys/deep"].map(|path| elsewhere.join(path)) {
        let found = exposes_credentials(&mount(&path), machine.home());
        assert!(found.is_some(), "{}", path.display());
    }
    assert_eq!(exposes_credentials(&mount(Path::new("/usr/include")), machine.home()), None);
    for path in [".local/share", ".local/share/keyrings", ".local/state", ".claude", ".password-store/a"] {
        let path = machine.home().join(path);
        assert!(exposes_credentials(&mount(&path), machine.home()).is_some(), "{}", path.display());
    }
    // A home of herma that the operator chose.
    let program = machine.program("herma-home/tools/tool", "tool 1.0");
    let own = OperatorTool {
        name: "tool".to_owned(),
        path: program.clone(),
        mounts: Vec::new(),
        env: std::collections::BTreeMap::new(),
    };
    let own = std::slice::from_ref(&own);
    assert!(find(&request("tool"), &machine.host, own).is_ok());
    let link = machine.home().join("link");
    symlink(machine.home().join("herma-home"), &link).unwrap();
    for home in [machine.home().join("herma-home"), link] {
        let host = HostEnvironment { never_mounted: vec![home], ..machine.host.clone() };
        let refused = find(&request("tool"), &host, own).unwrap_err();
        assert!(matches!(refused, ToolError::Credentials { .. }), "{refused}");
    }
}

#[test]
fn a_program_that_never_stops_talking_is_no_tool() {
    let mut machine = Machine::new();
    let program = machine.program("opt/bin/cmake", "");
    fs::write(&program, "#!/bin/sh\nwhile :; do echo cmake version; done\n").unwrap();
    machine.put_in_path(program.parent().unwrap());
    assert!(matches!(find(&request("cmake"), &machine.host, &[]), Err(ToolError::Missing { .. })));
    // Java has its version on standard error.
    fs::write(&program, "#!/bin/sh\necho 'cmake version 3.1' >&2\n").unwrap();
    assert_eq!(find(&request("cmake"), &machine.host, &[]).unwrap().version, "3.1");
}

#[test]
fn no_debug_output_has_the_value_of_a_variable() {
    let machine = Machine::new();
    let variables = || std::iter::once(("TOKEN".to_owned(), "canary-value".to_owned()));
    let own = OperatorTool {
        name: "tool".to_owned(),
        path: machine.program("opt/tool", "tool 1.0"),
        mounts: Vec::new(),
        env: variables().collect(),
    };
    let host = HostEnvironment { variables: variables().collect(), ..machine.host.clone() };
    let found = find(&request("tool"), &host, std::slice::from_ref(&own)).unwrap();
    assert_eq!(found.env, variables().collect::<Vec<_>>());
    let settings = JobSettings { env: found.env.clone(), ..JobSettings::default() };
    for text in [format!("{host:?}"), format!("{own:?}"), format!("{found:?}"), format!("{settings:?}")] {
        assert!(text.contains("TOKEN") && !text.contains("canary-value"), "{text}");
    }
}
