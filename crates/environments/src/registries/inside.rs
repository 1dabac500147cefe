//! The variables and configuration files, without credentials, by which a package manager inside uses the operator's registry.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use herma_core::environment::Registry;

use super::RegistryAccess;
use super::xml::escaped;

/// When a command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Fetching, through the egress proxy at this loopback port.
    Fetch {
        /// The port; a destination without one has a proxy of another kind.
        proxy_port: Option<u16>,
    },
    /// Everything after it: there is no network, and package managers must not try.
    Offline,
}

/// A configuration file in the environment's home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigFile {
    /// Its path below the home.
    pub path: PathBuf,
    /// Its content.
    pub content: String,
}

impl RegistryAccess {
    /// The variables of a command; `certificates` is the file of certificate authorities inside.
    #[must_use]
    pub fn variables(&self, phase: Phase, certificates: Option<&Path>) -> Vec<(String, String)> {
        let mut all = Variables(Vec::new());
        if phase == Phase::Offline {
            self.offline_variables(&mut all);
        } else {
            self.fetch_variables(&mut all);
            if let Some(file) = certificates {
                let file = file.display().to_string();
                for name in certificate_variables(self.registry) {
                    all.set(name, &file);
                }
            }
        }
        all.0
    }

    fn fetch_variables(&self, all: &mut Variables) {
        let others = |separator: &str| {
            let urls: Vec<String> = self.others.iter().map(|(_, url)| url.to_string()).collect();
            urls.join(separator)
        };
        match self.registry {
            Registry::Npm => all.set("YARN_NPM_REGISTRY_SERVER", self.url.without_slash()),
            Registry::Pypi => {
                let url = self.url.to_string();
                for name in ["PIP_INDEX_URL", "UV_DEFAULT_INDEX"] {
                    all.set(name, &url);
                }
                if !self.others.is_empty() {
                    all.set("PIP_EXTRA_INDEX_URL", &others(" "));
                    all.set("UV_INDEX", &others(" "));
                }
                all.set("PIP_CONFIG_FILE", "/dev/null");
                all.set("PIP_NO_INPUT", "1");
            }
            Registry::Go => {
                let more = if self.others.is_empty() { String::new() } else { format!(",{}", others(",")) };
                all.set("GOPROXY", &format!("{}{more}", self.url));
                for (name, value) in &self.settings {
                    all.set(name, value);
                }
            }
            Registry::Crates
            | Registry::Maven
            | Registry::Rubygems
            | Registry::Packagist
            | Registry::Nuget
            | Registry::Debian => {}
        }
    }

    fn offline_variables(&self, all: &mut Variables) {
        let offline: &[(&str, &str)] = match self.registry {
            Registry::Npm => &[("npm_config_offline", "true"), ("YARN_ENABLE_NETWORK", "0")],
            Registry::Pypi => &[("PIP_NO_INDEX", "1"), ("UV_OFFLINE", "1"), ("PIP_CONFIG_FILE", "/dev/null")],
            Registry::Crates => &[("CARGO_NET_OFFLINE", "true")],
            Registry::Go => &[("GOPROXY", "off"), ("GOSUMDB", "off")],
            Registry::Rubygems => &[("BUNDLE_LOCAL", "true")],
            Registry::Packagist => &[("COMPOSER_DISABLE_NETWORK", "1")],
            Registry::Maven | Registry::Nuget | Registry::Debian => &[],
        };
        for (name, value) in offline {
            all.set(name, value);
        }
    }

    /// The configuration files in the environment's home.
    #[must_use]
    pub fn files(&self, phase: Phase) -> Vec<ConfigFile> {
        let file = |path: &str, content: String| vec![ConfigFile { path: PathBuf::from(path), content }];
        match self.registry {
            Registry::Npm => {
                let mut content = format!("registry={}\n", self.url);
                for (scope, url) in &self.others {
                    let _ = writeln!(content, "{scope}={url}");
                }
                file(".npmrc", content)
            }
            Registry::Crates => {
                if self.source == "the public default" && self.others.is_empty() {
                    return Vec::new();
                }
                file(".cargo/config.toml", self.cargo_config())
            }
            Registry::Maven => {
                let mut files = file(".m2/settings.xml", self.maven_settings(phase));
                files.extend(file(".gradle/gradle.properties", gradle_properties(phase)));
                files
            }
            Registry::Rubygems => {
                let mut content = String::from(":sources:\n");
                for url in std::iter::once(&self.url).chain(self.others.iter().map(|(_, url)| url)) {
                    let _ = writeln!(content, "- {url}");
                }
                file(".gemrc", content)
            }
            Registry::Packagist => {
                let repository = serde_json::json!({
                    "repositories": [{ "type": "composer", "url": self.url.to_string() }, { "packagist.org": false }],
                });
                file(".config/composer/config.json", repository.to_string())
            }
            Registry::Nuget => {
                let mut sources = String::new();
                let own = std::iter::once(&self.url).chain(self.others.iter().map(|(_, url)| url));
                for (at, url) in own.enumerate() {
                    let _ =
                        write!(sources, "<add key=\"source{at}\" value=\"{}\" />", escaped(&url.to_string()));
                }
                file(
                    ".nuget/NuGet/NuGet.Config",
                    format!(
                        "<configuration><packageSources><clear />{sources}</packageSources></configuration>\n"
                    ),
                )
            }
            Registry::Pypi | Registry::Go | Registry::Debian => Vec::new(),
        }
    }

    fn cargo_config(&self) -> String {
        let mut content = format!(
            "[source.crates-io]\nreplace-with = \"operator\"\n\n[source.operator]\nregistry = \"sparse+{}/\"\n",
            self.url.without_slash()
        );
        for (name, url) in &self.others {
            let _ = write!(content, "\n[registries.{name:?}]\nindex = \"sparse+{}/\"\n", url.without_slash());
        }
        content
    }

    fn maven_settings(&self, phase: Phase) -> String {
        let mut text = String::from("<settings>\n");
        match phase {
            Phase::Offline => text.push_str("  <offline>true</offline>\n"),
            Phase::Fetch { proxy_port: None } => {}
            // Java does not read the proxy variables. A proxy of the protocol `http` serves https addresses too.
            Phase::Fetch { proxy_port: Some(port) } => {
                let _ = writeln!(
                    text,
                    "  <proxies><proxy><id>egress</id><active>true</active><protocol>http</protocol>\
                     <host>127.0.0.1</host><port>{port}</port></proxy></proxies>"
                );
            }
        }
        text.push_str("  <mirrors>\n");
        let _ = writeln!(
            text,
            "    <mirror><id>operator</id><mirrorOf>central</mirrorOf><url>{}</url></mirror>",
            escaped(&self.url.to_string())
        );
        for (at, (of, url)) in self.others.iter().enumerate() {
            let _ = writeln!(
                text,
                "    <mirror><id>operator{at}</id><mirrorOf>{}</mirrorOf><url>{}</url></mirror>",
                escaped(of),
                escaped(&url.to_string())
            );
        }
        text.push_str("  </mirrors>\n</settings>\n");
        text
    }
}

fn gradle_properties(phase: Phase) -> String {
    match phase {
        Phase::Fetch { proxy_port: Some(port) } => ["http", "https"]
            .map(|scheme| {
                format!("systemProp.{scheme}.proxyHost=127.0.0.1\nsystemProp.{scheme}.proxyPort={port}\n")
            })
            .concat(),
        Phase::Fetch { proxy_port: None } | Phase::Offline => "org.gradle.daemon=false\n".to_owned(),
    }
}

/// The variables by which a client finds certificate authorities; system-wide ones include those of a company.
fn certificate_variables(registry: Registry) -> &'static [&'static str] {
    match registry {
        Registry::Npm => &["npm_config_cafile", "NODE_EXTRA_CA_CERTS"],
        Registry::Pypi => &["PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"],
        Registry::Crates => &["CARGO_HTTP_CAINFO"],
        _ => &["SSL_CERT_FILE"],
    }
}

struct Variables(Vec<(String, String)>);

impl Variables {
    fn set(&mut self, name: &str, value: &str) {
        self.0.push((name.to_owned(), value.to_owned()));
    }
}
