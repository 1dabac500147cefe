//! The packages that a Python project and its tests need.

use std::collections::HashSet;

use super::super::RepositoryFiles;

/// Files that list the packages of tests, the most specific first.
const TEST_FILES: [&str; 12] = [
    "requirements/tests.txt",
    "requirements/test.txt",
    "tests/requirements.txt",
    "test/requirements.txt",
    "requirements-tests.txt",
    "requirements-test.txt",
    "requirements_test.txt",
    "test-requirements.txt",
    "requirements-dev.txt",
    "requirements_dev.txt",
    "dev-requirements.txt",
    "requirements/dev.txt",
];
/// Names of groups and extras with the packages of tests, the most specific first.
const TEST_GROUPS: [&str; 5] = ["tests", "test", "testing", "pytest", "dev"];
/// Modules that tests import, and the packages that they come from.
const TEST_MODULES: &[(&str, &str)] = &[
    ("freezegun", "freezegun"),
    ("hypothesis", "hypothesis"),
    ("mock", "mock"),
    ("parameterized", "parameterized"),
    ("pretend", "pretend"),
    ("pytest", "pytest"),
    ("pytest_asyncio", "pytest-asyncio"),
    ("responses", "responses"),
    ("trio", "trio"),
    ("yaml", "PyYAML"),
];
/// Options of pytest in configuration, and the plugins that they come from.
const PYTEST_PLUGINS: &[(&str, &str)] = &[
    ("--cov", "pytest-cov"),
    ("asyncio_mode", "pytest-asyncio"),
    ("--benchmark", "pytest-benchmark"),
    ("--timeout", "pytest-timeout"),
    ("timeout =", "pytest-timeout"),
    ("-n auto", "pytest-xdist"),
    ("-nauto", "pytest-xdist"),
    ("xfail_strict_mock", "pytest-mock"),
];
/// Files that configure pytest.
const PYTEST_CONFIG: [&str; 4] = ["pyproject.toml", "setup.cfg", "tox.ini", "pytest.ini"];
/// How many test files are read, and how many bytes of them.
const MAX_TESTS_READ: usize = 400;
const MAX_TEST_BYTES: usize = 16 << 20;
/// How many packages are proposed, for building and for running each. More do not fit into a command.
const MAX_REQUIREMENTS: usize = 2_000;

/// The packages to install.
#[derive(Debug, Default)]
pub(super) struct Requirements {
    /// For building the project.
    pub(super) build: Vec<String>,
    /// For running it and its tests.
    pub(super) run: Vec<String>,
    pub(super) uses_pytest: bool,
    pub(super) uses_scm_version: bool,
    pub(super) reasons: Vec<String>,
    /// The names of the packages in `run`.
    names: HashSet<String>,
}

impl Requirements {
    pub(super) fn read(files: &RepositoryFiles, tests: &[&str]) -> Self {
        let pyproject = files.read("pyproject.toml").and_then(|text| text.parse::<toml::Table>().ok());
        let pyproject = pyproject.unwrap_or_default();
        let mut found = Self::default();
        found.read_build(&pyproject);
        found.read_dependencies(files, &pyproject);
        found.read_test_dependencies(files, &pyproject);
        found.read_tests(files, tests);
        found
    }

    fn read_build(&mut self, pyproject: &toml::Table) {
        let declared = strings(at(pyproject, &["build-system", "requires"]));
        self.uses_scm_version = declared.iter().any(|name| {
            name.contains("setuptools-scm") || name.contains("setuptools_scm") || name.contains("hatch-vcs")
        });
        let is_setuptools = declared.is_empty() || declared.iter().any(|name| name.starts_with("setuptools"));
        // Editable installations need more than the backend itself.
        let needs_editables =
            declared.iter().any(|name| name.starts_with("hatchling") || name.starts_with("pdm-backend"));
        self.build = declared.into_iter().filter(|each| !is_option(each)).take(MAX_REQUIREMENTS).collect();
        if is_setuptools {
            self.add_build("setuptools");
            self.add_build("wheel");
        }
        if needs_editables {
            self.add_build("editables");
        }
    }

    fn add_build(&mut self, name: &str) {
        if !self.build.iter().any(|known| package_name(known) == name) {
            self.build.push(name.to_owned());
        }
    }

    fn read_dependencies(&mut self, files: &RepositoryFiles, pyproject: &toml::Table) {
        let declared = strings(at(pyproject, &["project", "dependencies"]));
        if !declared.is_empty() {
            self.reasons.push("its dependencies come from pyproject.toml".to_owned());
            self.add_all(declared);
        }
        self.add_all(poetry(at(pyproject, &["tool", "poetry", "dependencies"])));
        let config = files.read("setup.cfg").unwrap_or_default();
        self.add_all(ini_list(&config, "options", "install_requires"));
        if let Some(text) = files.read("requirements.txt") {
            self.reasons.push("its dependencies come from requirements.txt".to_owned());
            self.add_all(requirement_lines(files, "requirements.txt", text));
        }
    }

    fn read_test_dependencies(&mut self, files: &RepositoryFiles, pyproject: &toml::Table) {
        for name in TEST_GROUPS {
            let group = dependency_group(pyproject, name);
            let extra = strings(at(pyproject, &["project", "optional-dependencies", name]));
            let of_poetry = poetry(at(pyproject, &["tool", "poetry", "group", name, "dependencies"]));
            let of_setup =
                ini_list(&files.read("setup.cfg").unwrap_or_default(), "options.extras_require", name);
            let all: Vec<String> = [group, extra, of_poetry, of_setup].concat();
            if !all.is_empty() {
                self.reasons.push(format!("the packages of its tests come from the group `{name}`"));
                self.add_all(all);
                return;
            }
        }
        if let Some(path) = files.first(&TEST_FILES) {
            let text = files.read(path).unwrap_or_default();
            self.reasons.push(format!("the packages of its tests come from {path}"));
            self.add_all(requirement_lines(files, path, text));
            return;
        }
        let tox = ini_list(&files.read("tox.ini").unwrap_or_default(), "testenv", "deps");
        if !tox.is_empty() {
            self.reasons.push("the packages of its tests come from tox.ini".to_owned());
            for line in tox {
                match line.strip_prefix("-r").map(|path| path.trim().replace("{toxinidir}/", "")) {
                    Some(path) => {
                        let text = files.read(&path).unwrap_or_default();
                        self.add_all(requirement_lines(files, &path, text));
                    }
                    None => self.add_all(vec![line.rsplit(": ").next().unwrap_or_default().to_owned()]),
                }
            }
        }
    }

    /// Reads the imports of the tests and the configuration of pytest.
    fn read_tests(&mut self, files: &RepositoryFiles, tests: &[&str]) {
        let mut bytes = 0;
        for path in tests.iter().take(MAX_TESTS_READ) {
            let text = files.read(path).unwrap_or_default();
            bytes += text.len();
            if bytes > MAX_TEST_BYTES {
                break;
            }
            for (module, package) in TEST_MODULES {
                let imports = [format!("import {module}"), format!("from {module}")];
                let uses = text.lines().any(|line| {
                    imports.iter().any(|start| {
                        line.strip_prefix(start.as_str())
                            .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '.', ',']))
                    })
                });
                if uses {
                    self.add(package, &format!("`{path}` imports {module}"));
                }
            }
        }
        let config: Vec<String> = PYTEST_CONFIG.iter().filter_map(|path| files.read(path)).collect();
        let is_configured = config
            .iter()
            .any(|text| ["[pytest]", "[tool.pytest", "[tool:pytest]"].iter().any(|key| text.contains(key)));
        let has_conftest = files.paths().any(|path| path.ends_with("conftest.py"));
        let in_config = is_configured || has_conftest;
        if in_config && !tests.is_empty() {
            self.add("pytest", "pytest is configured");
        }
        self.uses_pytest = self.names.contains("pytest");
        if self.uses_pytest {
            let config: Vec<&String> = config.iter().filter(|text| text.contains("pytest")).collect();
            for (option, plugin) in PYTEST_PLUGINS {
                let has_option = |line: &str| !line.trim_start().starts_with('#') && line.contains(option);
                if config.iter().any(|text| text.lines().any(has_option)) {
                    self.add(plugin, &format!("pytest's configuration has `{}`", option.trim()));
                }
            }
        }
    }

    fn add(&mut self, package: &str, why: &str) {
        if self.names.insert(package_name(package)) {
            self.run.push(package.to_owned());
            self.reasons.push(format!("{why}: {package} is installed"));
        }
    }

    fn add_all(&mut self, requirements: Vec<String>) {
        for requirement in requirements {
            let is_full = self.run.len() >= MAX_REQUIREMENTS;
            if !is_full && !is_option(&requirement) && self.names.insert(package_name(&requirement)) {
                self.run.push(requirement);
            }
        }
    }
}

/// Whether pip would read a requirement as an option, such as `--index-url`.
fn is_option(requirement: &str) -> bool {
    requirement.trim_start().starts_with('-')
}

/// The name of a requirement, in lower case with dashes.
fn package_name(requirement: &str) -> String {
    let end = requirement.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')));
    let name = requirement.get(..end.unwrap_or(requirement.len())).unwrap_or_default();
    name.to_ascii_lowercase().replace(['_', '.'], "-")
}

fn at<'a>(table: &'a toml::Table, path: &[&str]) -> Option<&'a toml::Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(table.get(*first)?, |value, key| value.get(*key))
}

fn strings(value: Option<&toml::Value>) -> Vec<String> {
    let list = value.and_then(toml::Value::as_array);
    list.into_iter().flatten().filter_map(|each| each.as_str().map(ToOwned::to_owned)).collect()
}

/// A group of PEP 735, with the groups that it includes, each once.
fn dependency_group(pyproject: &toml::Table, name: &str) -> Vec<String> {
    let mut visited = HashSet::from([name.to_owned()]);
    let mut pending = vec![name.to_owned()];
    let mut found = Vec::new();
    while let Some(name) = pending.pop() {
        let group = at(pyproject, &["dependency-groups", &name]).and_then(toml::Value::as_array);
        for each in group.into_iter().flatten() {
            match (each.as_str(), each.get("include-group").and_then(toml::Value::as_str)) {
                (Some(requirement), _) => found.push(requirement.to_owned()),
                (None, Some(other)) if visited.insert(other.to_owned()) => pending.push(other.to_owned()),
                (None, _) => {}
            }
        }
    }
    found
}

/// Poetry's own form: the name alone, since its ranges are not those of pip.
fn poetry(value: Option<&toml::Value>) -> Vec<String> {
    let table = value.and_then(toml::Value::as_table);
    let is_optional =
        |value: &toml::Value| value.get("optional").and_then(toml::Value::as_bool) == Some(true);
    let names =
        table.into_iter().flatten().filter(|(name, value)| name.as_str() != "python" && !is_optional(value));
    names.map(|(name, _)| name.clone()).collect()
}

/// The lines of a requirements file, with those of files that it includes, each once. Paths, URLs and options are passed over.
fn requirement_lines(files: &RepositoryFiles, path: &str, text: String) -> Vec<String> {
    let mut visited = HashSet::from([path.to_owned()]);
    let mut pending = vec![(path.to_owned(), text)];
    let mut found = Vec::new();
    while let Some((path, text)) = pending.pop() {
        for line in text.lines() {
            let line = line.split(" #").next().unwrap_or_default().trim();
            if let Some(other) = line.strip_prefix("-r ") {
                let dir = path.rsplit_once('/').map_or(String::new(), |(dir, _)| format!("{dir}/"));
                let other = format!("{dir}{}", other.trim());
                if !visited.contains(&other)
                    && let Some(text) = files.read(&other)
                {
                    visited.insert(other.clone());
                    pending.push((other, text));
                }
            } else if line.starts_with(|c: char| c.is_ascii_alphanumeric()) && !line.contains("://") {
                // Hashes pin files of one platform.
                let requirement =
                    line.split(" --hash").next().unwrap_or_default().trim_end_matches('\\').trim();
                found.push(requirement.to_owned());
            }
        }
        if found.len() >= MAX_REQUIREMENTS {
            break;
        }
    }
    found.truncate(MAX_REQUIREMENTS);
    found
}

/// A list in a file of setuptools or tox: indented lines after `key =`.
fn ini_list(text: &str, section: &str, key: &str) -> Vec<String> {
    let mut in_section = false;
    let mut in_key = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            (in_section, in_key) = (name == section, false);
        } else if in_section && !line.starts_with([' ', '\t']) {
            let value =
                line.split_once('=').filter(|(name, _)| name.trim() == key).map(|(_, value)| value.trim());
            in_key = value.is_some();
            found.extend(value.filter(|value| !value.is_empty()).map(ToOwned::to_owned));
        } else if in_section && in_key && !line.trim().is_empty() && !line.trim().starts_with('#') {
            found.push(line.trim().to_owned());
        }
    }
    found
}
