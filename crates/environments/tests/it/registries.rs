//! Registries: read from the operator's clients, without credentials.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
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

    fn write_bytes(&self, path: &str, content: &[u8]) {
        self.write(path, "");
        fs::write(self.dir.path().join(path), content).unwrap();
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
    assert_eq!(
        operator.find(Registry::Pypi).unwrap().rules().len(),
        2,
        "the index, and the host of its files"
    );
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

/// The configuration file of each registry's client.
const CLIENT_FILES: &[(Registry, &str)] = &[
    (Registry::Npm, "home/.npmrc"),
    (Registry::Npm, "etc/npmrc"),
    (Registry::Pypi, "home/.config/pip/pip.conf"),
    (Registry::Pypi, "home/.pip/pip.conf"),
    (Registry::Crates, "home/.cargo/config.toml"),
    (Registry::Go, "home/.config/go/env"),
    (Registry::Maven, "home/.m2/settings.xml"),
    (Registry::Rubygems, "home/.gemrc"),
    (Registry::Packagist, "home/.config/composer/config.json"),
    (Registry::Nuget, "home/.nuget/NuGet/NuGet.Config"),
    (Registry::Debian, "etc/apt/sources.list"),
    (Registry::Debian, "etc/apt/sources.list.d/own.sources"),
];

fn is_unreadable(error: &RegistryError) -> bool {
    matches!(error, RegistryError::Unreadable { .. })
}

#[test]
fn configuration_that_cannot_be_read_is_never_the_public_registry() {
    for (registry, path) in CLIENT_FILES {
        let name = Path::new(path).file_name().unwrap().to_str().unwrap();
        let refused = |operator: &Operator, how: &str| {
            let error = operator.find(*registry).expect_err(how);
            assert!(is_unreadable(&error), "{path} {how}: {error}");
            let text = format!("{error} {error:?}");
            assert!(text.contains(name) || text.contains("cargo's config.toml"), "{path} {how}: {text}");
            assert!(text.contains("repair the file or remove it"), "{path} {how}: {text}");
            assert!(!text.contains(CANARY), "{path} {how}: {text}");
        };
        let operator = Operator::new();
        operator.write_bytes(path, format!("{CANARY} \u{e9}").as_bytes().strip_suffix(&[0xa9]).unwrap());
        refused(&operator, "is not UTF-8");

        let file = operator.dir.path().join(path);
        fs::write(&file, vec![b'#'; 2 << 20]).unwrap();
        refused(&operator, "is too large");

        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        refused(&operator, "is a directory");

        fs::remove_dir(&file).unwrap();
        symlink("/dev/zero", &file).unwrap();
        refused(&operator, "is a device");

        fs::remove_file(&file).unwrap();
        symlink("moved-away", &file).unwrap();
        refused(&operator, "is a link to nothing");
    }
}

#[test]
fn configuration_that_is_malformed_is_never_the_public_registry() {
    for (registry, path, content) in [
        (Registry::Crates, "home/.cargo/config.toml", format!("[source.crates-io]\nreplace-with = {CANARY}")),
        (Registry::Crates, "home/.cargo/config.toml", "[source.crates-io]\nreplace-with = 3\n".to_owned()),
        (Registry::Crates, "home/.cargo/config.toml", format!("source = '{CANARY}'\n")),
        (
            Registry::Packagist,
            "home/.config/composer/config.json",
            format!("{{\"repositories\": [\"{CANARY}\""),
        ),
        (
            Registry::Packagist,
            "home/.config/composer/config.json",
            format!("{{\"repositories\": \"{CANARY}\"}}"),
        ),
        (
            Registry::Maven,
            "home/.m2/settings.xml",
            format!("<mirror><mirrorOf>*</mirrorOf>{CANARY}</mirror>"),
        ),
        (Registry::Maven, "home/.m2/settings.xml", format!("<mirror a=\"b\"><url>{CANARY}</url></mirror>")),
        (
            Registry::Nuget,
            "home/.nuget/NuGet/NuGet.Config",
            format!("<packageSources><add value='{CANARY}'/></packageSources>"),
        ),
        (
            Registry::Nuget,
            "home/.nuget/NuGet/NuGet.Config",
            format!("<packageSources><add value=\"{CANARY}\"/>"),
        ),
        (Registry::Rubygems, "home/.gemrc", format!(":sources: [{CANARY}]\n")),
    ] {
        let operator = Operator::new();
        operator.write(path, &content);
        let error = operator.find(registry).expect_err(&content);
        assert!(is_unreadable(&error), "{content}: {error}");
        assert!(!format!("{error} {error:?}").contains(CANARY), "{content}: {error}");
    }
    let operator = Operator::new();
    operator.write("etc/apt/sources.list", "deb [trusted=yes] file:/srv/debian bookworm main\n");
    assert!(matches!(operator.find(Registry::Debian), Err(RegistryError::Unsupported { .. })));
}

#[test]
fn the_operators_own_links_and_directories_are_followed() {
    let mut operator = Operator::new();
    operator.write("dotfiles/npmrc", "registry=https://npm.corp.example/\n");
    symlink("../dotfiles/npmrc", operator.host.home.join(".npmrc")).unwrap();
    assert_eq!(operator.find(Registry::Npm).unwrap().rules(), ["npm.corp.example"]);
    operator.write("xdg/pip/pip.conf", "[global]\nindex_url: https://py.corp.example/simple\nextra-index-url =\n    https://py2.corp.example/simple\n    https://py3.corp.example/simple\n");
    operator.write("xdg/go/env", "GOPROXY=https://go.corp.example\n");
    let xdg = operator.dir.path().join("xdg");
    operator.set("XDG_CONFIG_HOME", xdg.to_str().unwrap());
    let rules = ["py.corp.example", "py2.corp.example", "py3.corp.example"];
    assert_eq!(operator.find(Registry::Pypi).unwrap().rules(), rules);
    assert_eq!(operator.find(Registry::Go).unwrap().rules(), ["go.corp.example"]);
    operator.set("PIP_CONFIG_FILE", "/dev/null");
    assert_eq!(operator.find(Registry::Pypi).unwrap().source, "the public default");
}

#[test]
fn a_netrc_that_cannot_be_read_is_a_notice() {
    let operator = Operator::new();
    fs::create_dir(operator.host.home.join(".netrc")).unwrap();
    let notices = operator.find(Registry::Npm).unwrap().notices;
    assert!(notices.iter().any(|notice| notice.contains("~/.netrc cannot be read")), "{notices:?}");
}

#[test]
fn a_client_that_downloads_from_no_registry_gets_no_public_one() {
    let mut operator = Operator::new();
    for (list, said) in [
        ("off", "GOPROXY=off in the variable GOPROXY forbids downloads"),
        ("direct", "herma cannot know the hosts"),
        ("direct,https://go.corp.example", "herma cannot know the hosts"),
        (",", "is not an https address"),
    ] {
        operator.set("GOPROXY", list);
        let error = operator.find(Registry::Go).expect_err(list).to_string();
        assert!(error.contains(said), "{list}: {error}");
    }
    operator.set("GOPROXY", "https://go.corp.example|off,https://never.example");
    assert_eq!(operator.find(Registry::Go).unwrap().rules(), ["go.corp.example"]);

    for (source, said) in [
        ("directory = '/srv/vendor'", "crates come from a directory"),
        ("local-registry = '/srv/vendor'", "crates come from a directory"),
        ("git = 'https://git.example/'", "crates come from a git repository"),
        ("replace-with = 'crates-io'", "crates come from sources that replace each other"),
        ("other = 1", "crates come from a source that is not defined"),
    ] {
        let operator = Operator::new();
        let config = format!("[source.crates-io]\nreplace-with = 'own'\n[source.own]\n{source}\n");
        operator.write("home/.cargo/config.toml", &config);
        let error = operator.find(Registry::Crates).expect_err(source).to_string();
        assert!(error.contains(said) && error.contains("cargo's config.toml"), "{source}: {error}");
    }
    let operator = Operator::new();
    let named =
        "[source.crates-io]\nreplace-with = 'own'\n[registries.own]\nindex = 'sparse+https://own.example/'\n";
    operator.write("home/.cargo/config.toml", named);
    assert_eq!(operator.find(Registry::Crates).unwrap().rules(), ["own.example"]);
}

#[test]
fn no_setting_passes_a_credential_on() {
    let token = format!("gh{}{}", "p_", "aB3dE5fG7hJ9kL2mN4pQ6rS8tU1vW0xY12aB");
    for (name, value) in [
        ("GOSUMDB", format!("sum.corp.example+033de0ae+Ac4zctda https://user:{CANARY}@sum.corp.example/")),
        ("GOSUMDB", format!("sum.corp.example+033de0ae+Ac4zctda https://sum.corp.example/?t={CANARY}")),
        ("GOSUMDB", format!("https://user:{CANARY}@sum.corp.example")),
        ("GOPRIVATE", format!("user:{CANARY}@corp.example/*")),
        ("GONOPROXY", format!("corp.example/{token}")),
        ("GOPROXY", format!("https://go.corp.example/{token}/")),
        ("GOPROXY", format!("https://go.corp.example,https://more.corp.example/{token}/")),
    ] {
        let mut operator = Operator::new();
        operator.set(name, &value);
        let error = operator.find(Registry::Go).expect_err(&value);
        assert!(matches!(error, RegistryError::Credential { .. }), "{name}: {error}");
        let text = format!("{error} {error:?}");
        assert!(!text.contains(CANARY) && !text.contains(&token), "{name}: {text}");
    }
    let mut operator = Operator::new();
    operator.set("GOSUMDB", "sum.corp.example+033de0ae+Ac4zctda ssh://sum.corp.example/");
    assert!(matches!(operator.find(Registry::Go), Err(RegistryError::Unsupported { .. })));
    operator.set(
        "GOSUMDB",
        "sum.golang.org+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8 https://sum.corp.example/db",
    );
    let go = operator.find(Registry::Go).unwrap();
    let variables = go.variables(Phase::Fetch { proxy_port: None }, None);
    assert!(variables.iter().any(|(name, value)| name == "GOSUMDB" && value.ends_with("/db")));
}
