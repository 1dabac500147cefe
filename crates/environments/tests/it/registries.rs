//! Registries: read from the operator's clients, without credentials.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use herma_core::environment::Registry;
use herma_egress::Allowlist;
use herma_environments::registries::{ClientConfiguration, Phase, RegistryAccess, RegistryError};
use herma_environments::tools::HostEnvironment;

const CANARY: &str = "canary-token-value";

struct Operator {
    dir: tempfile::TempDir,
    host: HostEnvironment,
}

impl Operator {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home");
        fs::create_dir(&home).unwrap();
        Self { dir, host: HostEnvironment { home, ..HostEnvironment::default() } }
    }

    fn write(&self, path: &str, content: &str) {
        let file = self.dir.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, content).unwrap();
    }

    fn set(&mut self, name: &str, value: &str) {
        self.host.variables.insert(name.to_owned(), value.to_owned());
    }

    fn find(&self, registry: Registry) -> Result<RegistryAccess, RegistryError> {
        let clients = ClientConfiguration {
            host: &self.host,
            etc: self.dir.path().join("etc"),
            own_network: BTreeSet::from([Registry::Npm]),
        };
        RegistryAccess::find(registry, &clients)
    }
}

#[test]
fn without_configuration_every_registry_is_the_public_one() {
    let operator = Operator::new();
    for registry in Registry::ALL {
        let found = operator.find(registry).unwrap();
        assert_eq!(found.source, "the public default");
        assert!(Allowlist::parse(&found.rules()).is_ok(), "{:?}", found.rules());
        assert_eq!(found.own_network, registry == Registry::Npm);
    }
    assert_eq!(operator.find(Registry::Pypi).unwrap().rules(), ["files.pythonhosted.org", "pypi.org"]);
}

#[test]
fn the_operators_mirrors_take_the_place_of_public_hosts() {
    let mut operator = Operator::new();
    operator.write("home/.npmrc", &format!("registry = https://npm.corp.example/repo/\n@corp:registry=https://own.corp.example:8443/\n//own.corp.example:8443/:_authToken={CANARY}\n"));
    operator.write("home/.config/pip/pip.conf", "[global]\nindex-url = https://py.corp.example/simple\nextra-index-url = https://py2.corp.example/simple\n");
    operator.write("home/.cargo/config.toml", "[source.crates-io]\nreplace-with = 'one'\n[source.one]\nreplace-with = 'two'\n[source.two]\nregistry = 'sparse+https://crates.corp.example/index/'\n[registries.own]\nindex = 'sparse+https://own-crates.corp.example/'\ntoken = 'x'\n");
    operator.set("GOPROXY", "https://go.corp.example,direct");
    operator.set("GONOSUMDB", "corp.example/*");
    operator.write("home/.m2/settings.xml", &format!("<settings><!-- <mirror><url>https://no.example</url><mirrorOf>*</mirrorOf></mirror> --><servers><server><id>m</id><password>{CANARY}</password></server></servers><mirrors><mirror><mirrorOf>external:http:*</mirrorOf><url>http://0.0.0.0/</url><blocked>true</blocked></mirror><mirror><id>m</id><mirrorOf>*</mirrorOf><url>https://mvn.corp.example/maven</url></mirror></mirrors></settings>"));
    operator.write(
        "etc/apt/sources.list.d/debian.sources",
        "Types: deb\nURIs: http://deb.corp.example:3142/debian\nSuites: bookworm\n",
    );
    operator.write("home/.netrc", &format!("machine go.corp.example login me password {CANARY}\n"));
    for (registry, rules) in [
        (Registry::Npm, vec!["npm.corp.example", "own.corp.example:8443"]),
        (Registry::Pypi, vec!["py.corp.example", "py2.corp.example"]),
        (Registry::Crates, vec!["crates.corp.example", "own-crates.corp.example"]),
        (Registry::Go, vec!["go.corp.example"]),
        (Registry::Maven, vec!["mvn.corp.example"]),
        (Registry::Debian, vec!["http://deb.corp.example:3142"]),
    ] {
        let found = operator.find(registry).unwrap();
        assert_eq!(found.rules(), rules, "{registry}");
        assert!(Allowlist::parse(&found.rules()).is_ok());
        // Nothing of a credential reaches a build.
        let phases = [Phase::Fetch { proxy_port: Some(4) }, Phase::Offline];
        let inside = phases.map(|phase| {
            format!("{:?}{:?}", found.variables(phase, Some(Path::new("/ca"))), found.files(phase))
        });
        assert!(!format!("{found:?}{inside:?}").contains(CANARY), "{registry}");
    }
    for registry in [Registry::Npm, Registry::Go, Registry::Maven] {
        let notices = operator.find(registry).unwrap().notices;
        assert!(
            notices.iter().any(|notice| notice.contains("may need a credential")),
            "{registry}: {notices:?}"
        );
    }
}

#[test]
fn an_address_with_a_credential_is_refused_without_repeating_it() {
    let mut operator = Operator::new();
    operator.set("PIP_INDEX_URL", &format!("https://user:{CANARY}@py.corp.example/simple"));
    let refused = operator.find(Registry::Pypi).unwrap_err();
    assert!(matches!(refused, RegistryError::Credential { registry: Registry::Pypi, .. }));
    let text = format!("{refused} {refused:?}");
    assert!(text.contains("pypi") && text.contains("PIP_INDEX_URL") && !text.contains(CANARY), "{text}");
    operator.set("GOPROXY", "file:///srv/go");
    assert!(matches!(operator.find(Registry::Go), Err(RegistryError::Unsupported { .. })));
}

#[test]
fn commands_inside_use_the_mirror_and_are_offline_afterwards() {
    let mut operator = Operator::new();
    operator.set("PIP_INDEX_URL", "https://py.corp.example/simple");
    let pip = operator.find(Registry::Pypi).unwrap();
    let value = |phase, name: &str| {
        pip.variables(phase, Some(Path::new("/ca.crt")))
            .into_iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value)
    };
    let fetch = Phase::Fetch { proxy_port: Some(3128) };
    assert_eq!(value(fetch, "PIP_INDEX_URL").as_deref(), Some("https://py.corp.example/simple"));
    assert_eq!(value(fetch, "PIP_CERT").as_deref(), Some("/ca.crt"));
    assert_eq!(value(Phase::Offline, "PIP_NO_INDEX").as_deref(), Some("1"));
    assert_eq!(value(Phase::Offline, "PIP_INDEX_URL"), None);
    let maven = operator.find(Registry::Maven).unwrap();
    let settings = |phase| maven.files(phase)[0].content.clone();
    assert!(settings(fetch).contains("<port>3128</port>") && !settings(fetch).contains("<offline>"));
    assert!(settings(Phase::Offline).contains("<offline>true</offline>"));
}
