//! Reads the configuration files and variables of package managers: addresses, and for which hosts there are credentials. The
//! credentials themselves are skipped.

use std::path::{Path, PathBuf};

use herma_core::environment::Registry;
use herma_files::read_regular;

use super::xml::{element, elements, without_comments};
use super::{ClientConfiguration, Configured};

/// The largest configuration file that is read.
const MAX_BYTES: u64 = 1 << 20;

pub(super) fn read(registry: Registry, clients: &ClientConfiguration<'_>) -> Configured {
    let mut found = match registry {
        Registry::Npm => npm(clients),
        Registry::Pypi => pip(clients),
        Registry::Crates => cargo(clients),
        Registry::Go => go(clients),
        Registry::Maven => maven(clients),
        Registry::Rubygems => rubygems(clients),
        Registry::Packagist => composer(clients),
        Registry::Nuget => nuget(clients),
        Registry::Debian => apt(clients),
    };
    found.credential_hosts.extend(netrc_hosts(clients));
    found
}

impl ClientConfiguration<'_> {
    fn variable(&self, name: &str) -> Option<(String, String)> {
        let value = self.host.variables.get(name).filter(|value| !value.trim().is_empty())?;
        Some((value.trim().to_owned(), format!("the variable {name}")))
    }

    fn first_variable(&self, names: &[&str]) -> Option<(String, String)> {
        names.iter().find_map(|name| self.variable(name))
    }

    /// The text of a file below the home, and its name for messages.
    fn home_file(&self, path: &str) -> Option<(String, String)> {
        Some((text_of(&self.host.home.join(path))?, format!("~/{path}")))
    }

    fn etc_file(&self, path: &str) -> Option<(String, String)> {
        Some((text_of(&self.etc.join(path))?, format!("/etc/{path}")))
    }
}

fn text_of(path: &Path) -> Option<String> {
    String::from_utf8(read_regular(path, MAX_BYTES).ok()?).ok()
}

/// Lines of `key = value`, without comments.
fn settings(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';']));
    lines.filter_map(|line| line.split_once('=')).map(|(key, value)| (key.trim(), value.trim()))
}

fn npm(clients: &ClientConfiguration<'_>) -> Configured {
    let url = clients.first_variable(&["npm_config_registry", "NPM_CONFIG_REGISTRY"]);
    let mut found = Configured { url, ..Configured::default() };
    let files = [clients.home_file(".npmrc"), clients.etc_file("npmrc")];
    for (text, source) in files.into_iter().flatten() {
        for (key, value) in settings(&text) {
            if key == "registry" && found.url.is_none() {
                found.url = Some((value.to_owned(), source.clone()));
            } else if key.starts_with('@') && key.ends_with(":registry") {
                found.others.push((key.to_owned(), value.to_owned()));
            } else if let Some(place) = key.strip_prefix("//") {
                // `//host/path/:_authToken=...`: the value is not looked at.
                found.credential_hosts.extend(place.split(['/', ':']).next().map(str::to_ascii_lowercase));
            }
        }
    }
    found
}

fn pip(clients: &ClientConfiguration<'_>) -> Configured {
    let url = clients.first_variable(&["PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL"]);
    let mut found = Configured { url, ..Configured::default() };
    let mut extra = clients.variable("PIP_EXTRA_INDEX_URL").map(|(value, _)| value);
    let named = clients.variable("PIP_CONFIG_FILE").map(|(file, _)| PathBuf::from(file));
    let named = named.and_then(|file| Some((text_of(&file)?, "the file of PIP_CONFIG_FILE".to_owned())));
    let files = [
        named,
        clients.home_file(".config/pip/pip.conf"),
        clients.home_file(".pip/pip.conf"),
        clients.etc_file("pip.conf"),
    ];
    for (text, source) in files.into_iter().flatten() {
        let value =
            |key: &str| settings(&text).find(|(name, _)| *name == key).map(|(_, value)| value.to_owned());
        if found.url.is_none() {
            found.url = value("index-url").map(|url| (url, source.clone()));
        }
        extra = extra.or_else(|| value("extra-index-url"));
    }
    let urls = extra.iter().flat_map(|urls| urls.split_whitespace());
    found.others = urls.map(|url| ("extra-index-url".to_owned(), url.to_owned())).collect();
    found
}

fn cargo(clients: &ClientConfiguration<'_>) -> Configured {
    let mut found = Configured::default();
    let own_home = clients.variable("CARGO_HOME").map(|(dir, _)| PathBuf::from(dir));
    let dir = own_home.unwrap_or_else(|| clients.host.home.join(".cargo"));
    let text = ["config.toml", "config"].into_iter().find_map(|name| text_of(&dir.join(name)));
    let config = text.and_then(|text| text.parse::<toml::Table>().ok()).unwrap_or_default();
    let at = |path: &[&str]| {
        let (first, rest) = path.split_first()?;
        rest.iter()
            .try_fold(config.get(*first)?, |value, key| value.get(*key))?
            .as_str()
            .map(ToOwned::to_owned)
    };
    let source = "cargo's config.toml".to_owned();
    let mut name = "crates-io".to_owned();
    // A replacement can be replaced in turn; cargo refuses cycles, and more than a few steps are one.
    for _ in 0..8 {
        match at(&["source", &name, "replace-with"]) {
            Some(next) => name = next,
            None => break,
        }
    }
    found.url = at(&["source", &name, "registry"]).map(|url| (url, source.clone()));
    let registries = config.get("registries").and_then(toml::Value::as_table);
    for (name, registry) in registries.into_iter().flatten() {
        let index = registry.get("index").and_then(toml::Value::as_str);
        found.others.extend(index.map(|index| (name.clone(), index.to_owned())));
    }
    let has_credentials = ["credentials.toml", "credentials"].into_iter().any(|file| dir.join(file).exists());
    if has_credentials {
        let hosts = found.url.iter().map(|(url, _)| url).chain(found.others.iter().map(|(_, url)| url));
        found.credential_hosts = hosts.filter_map(|url| host_in(url)).collect();
    }
    found
}

fn go(clients: &ClientConfiguration<'_>) -> Configured {
    let file = clients.home_file(".config/go/env").unwrap_or_default();
    let value = |name: &str| {
        let in_file = settings(&file.0).find(|(key, _)| *key == name);
        clients.variable(name).or_else(|| in_file.map(|(_, value)| (value.to_owned(), file.1.clone())))
    };
    let mut found = Configured::default();
    if let Some((list, source)) = value("GOPROXY") {
        let mut proxies =
            list.split([',', '|']).map(str::trim).filter(|each| !matches!(*each, "" | "direct" | "off"));
        found.url = proxies.next().map(|first| (first.to_owned(), source));
        found.others = proxies.map(|each| ("GOPROXY".to_owned(), each.to_owned())).collect();
    }
    let names = ["GOSUMDB", "GONOSUMDB", "GONOSUMCHECK", "GOPRIVATE", "GONOPROXY"];
    found.settings = names.iter().filter_map(|name| Some(((*name).to_owned(), value(name)?.0))).collect();
    found
}

fn maven(clients: &ClientConfiguration<'_>) -> Configured {
    let mut found = Configured::default();
    let files = [clients.home_file(".m2/settings.xml"), clients.etc_file("maven/settings.xml")];
    for (text, source) in files.into_iter().flatten() {
        let text = without_comments(&text);
        let with_credentials: Vec<&str> =
            elements(&text, "server").iter().filter_map(|server| element(server, "id")).collect();
        // A blocked mirror is no address: Maven's own settings block plain HTTP by one.
        let is_open = |mirror: &&str| element(mirror, "blocked") != Some("true");
        for mirror in elements(&text, "mirror").into_iter().filter(is_open) {
            let (Some(url), of) = (element(mirror, "url"), element(mirror, "mirrorOf").unwrap_or_default())
            else {
                continue;
            };
            let is_central =
                of.split(',').map(str::trim).any(|of| matches!(of, "*" | "central" | "external:*"));
            if is_central && found.url.is_none() {
                found.url = Some((url.to_owned(), source.clone()));
            } else if !is_central {
                found.others.push((of.to_owned(), url.to_owned()));
            }
            if element(mirror, "id").is_some_and(|id| with_credentials.contains(&id)) {
                found.credential_hosts.extend(host_in(url));
            }
        }
    }
    found
}

fn rubygems(clients: &ClientConfiguration<'_>) -> Configured {
    let mut found = Configured::default();
    for (text, source) in [clients.home_file(".gemrc"), clients.etc_file("gemrc")].into_iter().flatten() {
        let after = text.split_once(":sources:").map_or("", |(_, after)| after);
        let items = after.lines().skip(1).map_while(|line| line.trim().strip_prefix("- "));
        for item in items {
            match &found.url {
                None => found.url = Some((item.trim().to_owned(), source.clone())),
                Some(_) => found.others.push(("sources".to_owned(), item.trim().to_owned())),
            }
        }
    }
    found
}

fn composer(clients: &ClientConfiguration<'_>) -> Configured {
    let mut found = Configured::default();
    let files =
        [clients.home_file(".config/composer/config.json"), clients.home_file(".composer/config.json")];
    for (text, source) in files.into_iter().flatten() {
        let config: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let repositories = match config.get("repositories") {
            Some(serde_json::Value::Array(list)) => list.iter().collect(),
            Some(serde_json::Value::Object(map)) => map.values().collect(),
            _ => Vec::new(),
        };
        let url =
            repositories.into_iter().find(|each| each.get("type").is_some_and(|kind| kind == "composer"));
        let url = url.and_then(|each| each.get("url")).and_then(serde_json::Value::as_str);
        found.url = found.url.or_else(|| url.map(|url| (url.to_owned(), source)));
    }
    found
}

fn nuget(clients: &ClientConfiguration<'_>) -> Configured {
    let mut found = Configured::default();
    let files =
        [clients.home_file(".nuget/NuGet/NuGet.Config"), clients.home_file(".config/NuGet/NuGet.Config")];
    for (text, source) in files.into_iter().flatten() {
        let text = without_comments(&text);
        let sources = element(&text, "packageSources").unwrap_or_default();
        let values = sources
            .split("<add ")
            .skip(1)
            .filter_map(|add| Some(add.split_once("value=\"")?.1.split_once('"')?.0.to_owned()));
        for url in values {
            match &found.url {
                None => found.url = Some((url, source.clone())),
                Some(_) => found.others.push(("packageSources".to_owned(), url)),
            }
        }
        if text.contains("<packageSourceCredentials>") {
            let urls = found.url.iter().map(|(url, _)| url).chain(found.others.iter().map(|(_, url)| url));
            found.credential_hosts = urls.filter_map(|url| host_in(url)).collect();
        }
    }
    found
}

fn apt(clients: &ClientConfiguration<'_>) -> Configured {
    let mut found = Configured::default();
    let mut urls: Vec<(String, String)> = Vec::new();
    let listed = std::fs::read_dir(clients.etc.join("apt/sources.list.d")).into_iter().flatten().flatten();
    let mut names: Vec<String> = listed
        .filter_map(|entry| entry.file_name().into_string().ok())
        .map(|n| format!("apt/sources.list.d/{n}"))
        .collect();
    names.sort();
    names.insert(0, "apt/sources.list".to_owned());
    for name in names.iter().filter(|name| is_list(name)) {
        let Some((text, source)) = clients.etc_file(name) else { continue };
        let lines = text.lines().map(str::trim);
        let words = lines
            .filter(|line| line.starts_with("URIs:") || line.starts_with("deb"))
            .flat_map(str::split_whitespace);
        let http = words.filter(|word| word.starts_with("http://") || word.starts_with("https://"));
        urls.extend(http.map(|url| (url.to_owned(), source.clone())));
    }
    let mut urls = urls.into_iter();
    found.url = urls.next();
    found.others = urls.map(|(url, _)| ("apt".to_owned(), url)).collect();
    found
}

fn is_list(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|end| end == "list" || end == "sources")
}

/// The machines of `.netrc`. Its logins and passwords are skipped.
fn netrc_hosts(clients: &ClientConfiguration<'_>) -> Vec<String> {
    let Some((text, _)) = clients.home_file(".netrc") else { return Vec::new() };
    let words: Vec<&str> = text.split_whitespace().collect();
    words.windows(2).filter(|pair| pair[0] == "machine").map(|pair| pair[1].to_ascii_lowercase()).collect()
}

fn host_in(url: &str) -> Option<String> {
    let authority = url.split_once("://")?.1.split('/').next()?;
    let host = authority.rsplit('@').next()?.split(':').next()?;
    Some(host.to_ascii_lowercase())
}
