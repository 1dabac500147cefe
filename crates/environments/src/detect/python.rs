//! Python projects: a virtual environment in the environment's home, filled from wheels that were downloaded before.

mod requirements;

use herma_core::environment::Registry;

use self::requirements::Requirements;
use super::files::has_extension;
use super::shell::quoted_all;
use super::{Part, RepositoryFiles};

/// Files that make a directory a Python project.
const MANIFESTS: [&str; 4] = ["pyproject.toml", "setup.py", "setup.cfg", "requirements.txt"];
/// Where wheels are kept between fetch and setup.
const WHEELS: &str = "\"$HOME/wheels\"";

pub(super) fn detect(files: &RepositoryFiles) -> Option<Part> {
    let manifest = files.first(&MANIFESTS)?;
    let tests: Vec<&str> = files.paths().filter(|path| is_test(path)).collect();
    let requirements = Requirements::read(files, &tests);
    let mut part = Part {
        tools: vec![python_tool(files)],
        registries: vec![Registry::Pypi],
        reasons: vec![format!("`{manifest}` makes this a Python project")],
        ..Part::default()
    };
    let is_package =
        files.has("setup.py") || files.read("pyproject.toml").is_some_and(|text| is_package(&text));
    // `--only-binary`: a source distribution would run its build script with the network.
    let download = format!("python3 -m pip download --quiet --only-binary :all: --dest {WHEELS}");
    if is_package {
        let build = quoted_all(requirements.build.iter().map(String::as_str));
        part.fetch.push(format!("{download} {build}"));
    }
    if !requirements.run.is_empty() {
        let run = quoted_all(requirements.run.iter().map(String::as_str));
        part.fetch.push(format!("{download} {run}"));
        let install = format!(
            "\"$HOME/.venv/bin/python\" -m pip install --quiet --no-index --find-links {WHEELS} {run}"
        );
        part.setup.push(install);
    }
    part.setup.insert(0, "python3 -m venv \"$HOME/.venv\"".to_owned());
    let is_compiled = files.has("setup.py") && files.paths().any(|path| has_extension(path, &["c", "pyx"]));
    if is_package {
        part.setup.push(install_project(files));
        part.reasons.push(
            "the project itself is installed as editable, so that its tests import the workspace".to_owned(),
        );
    }
    if is_compiled {
        part.tools.push("gcc".to_owned());
        part.cache.extend(["**/*.so", "build"].map(ToOwned::to_owned));
        part.verify.push(install_project(files));
        part.reasons.push(
            "it has a compiled extension, which setup builds with gcc, and verification again from the result"
                .to_owned(),
        );
    }
    part.cache.extend(["**/*.egg-info", "**/.pytest_cache", "**/__pycache__"].map(ToOwned::to_owned));
    if requirements.uses_scm_version {
        part.env.insert("SETUPTOOLS_SCM_PRETEND_VERSION".to_owned(), "0.0.0".to_owned());
        part.reasons.push("its version comes from git tags, which a checkout does not have".to_owned());
    }
    part.reasons.extend(requirements.reasons.iter().cloned());
    part.allowed_paths = package_dirs(files);
    if tests.is_empty() {
        part.questions.push("no Python test was found".to_owned());
    } else if requirements.uses_pytest {
        part.verify.push("python -m pytest -q".to_owned());
        let example = tests.iter().copied().find(|path| is_test_module(path)).or(tests.first().copied());
        part.reasons.push(format!("`{}` is a test for pytest", example.unwrap_or_default()));
    } else {
        part.verify.push("python -m unittest discover".to_owned());
        part.reasons.push("its tests use unittest".to_owned());
    }
    Some(part)
}

/// Installs the project without its dependencies, which are there. A source distribution has its metadata among its files, and setuptools
/// writes it anew: it is put back.
fn install_project(files: &RepositoryFiles) -> String {
    let install = format!(
        "\"$HOME/.venv/bin/python\" -m pip install --quiet --no-index --find-links {WHEELS} --no-deps --editable ."
    );
    let mut dirs: Vec<&str> =
        files.paths().filter_map(|path| Some(path.split_once(".egg-info/")?.0)).collect();
    dirs.dedup();
    // A name that begins with a dash would be an option.
    let names: Vec<String> = dirs.iter().map(|dir| format!("./{dir}.egg-info")).collect();
    let names = quoted_all(names.iter().map(String::as_str));
    if names.is_empty() {
        return install;
    }
    format!("tar -cf /tmp/metadata.tar {names} && {install} && rm -rf {names} && tar -xf /tmp/metadata.tar")
}

fn is_package(pyproject: &str) -> bool {
    pyproject.contains("[build-system]")
        || pyproject.contains("[project]")
        || pyproject.contains("[tool.poetry]")
}

/// The interpreter, with the version that `.python-version` names.
fn python_tool(files: &RepositoryFiles) -> String {
    let pinned = files.read(".python-version");
    let pinned = pinned.as_deref().and_then(|text| text.lines().next()).map(str::trim);
    let is_version =
        |text: &&str| text.starts_with("3.") && text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    pinned.filter(is_version).map_or("python".to_owned(), |version| {
        let minor: Vec<&str> = version.split('.').take(2).collect();
        format!("python@{}", minor.join("."))
    })
}

fn is_test(path: &str) -> bool {
    let is_below = path.starts_with("tests/") || path.starts_with("test/");
    is_test_module(path) || (has_extension(path, &["py"]) && is_below)
}

/// Whether pytest collects a file by its name.
fn is_test_module(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    has_extension(name, &["py"]) && (name.starts_with("test_") || name.ends_with("_test.py"))
}

/// The directories at the root that are packages.
fn package_dirs(files: &RepositoryFiles) -> Vec<String> {
    let dirs = files.paths().filter_map(|path| path.strip_suffix("/__init__.py"));
    dirs.filter(|dir| !dir.contains('/')).map(|dir| format!("{dir}/**")).collect()
}
