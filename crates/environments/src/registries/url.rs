//! The address of a registry: an http or https address without a credential.

use std::fmt;

use herma_core::environment::Registry;

use super::RegistryError;

/// An address without user, query and fragment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RegistryUrl {
    text: String,
    /// The host in lower case.
    host: String,
    port: u16,
    encrypted: bool,
}

/// Why a text is no address of a registry. It does not repeat the text, which may hold a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadUrl {
    Credential,
    Unsupported,
}

impl BadUrl {
    pub(super) fn of(self, registry: Registry, source_name: &str) -> RegistryError {
        let source_name = source_name.to_owned();
        match self {
            Self::Credential => RegistryError::Credential { registry, source_name },
            Self::Unsupported => RegistryError::Unsupported { registry, source_name },
        }
    }
}

impl RegistryUrl {
    /// Reads an address; cargo writes `sparse+` in front of some.
    pub(super) fn parse(text: &str) -> Result<Self, BadUrl> {
        let text = text.trim().trim_matches(['"', '\'']);
        let plain = text.strip_prefix("sparse+").unwrap_or(text);
        let (encrypted, rest) = match (plain.strip_prefix("https://"), plain.strip_prefix("http://")) {
            (Some(rest), _) => (true, rest),
            (None, Some(rest)) => (false, rest),
            (None, None) => return Err(BadUrl::Unsupported),
        };
        let authority = rest.split('/').next().unwrap_or_default();
        // A token can be in the query too.
        if authority.contains('@') || rest.contains(['?', '#']) {
            return Err(BadUrl::Credential);
        }
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) => (host, port.parse().map_err(|_| BadUrl::Unsupported)?),
            None => (authority, if encrypted { 443 } else { 80 }),
        };
        let sound = |b: u8| b.is_ascii_alphanumeric() || b == b'.' || b == b'-';
        if host.is_empty() || !host.bytes().all(sound) || rest.chars().any(|c| c.is_control() || c == ' ') {
            return Err(BadUrl::Unsupported);
        }
        Ok(Self { text: plain.to_owned(), host: host.to_ascii_lowercase(), port, encrypted })
    }

    /// Its host.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Whether it is reached through TLS.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.encrypted
    }

    /// The address without a slash at its end.
    pub(super) fn without_slash(&self) -> &str {
        self.text.trim_end_matches('/')
    }

    /// The egress rule that allows it.
    #[must_use]
    pub fn rule(&self) -> String {
        match (self.encrypted, self.port) {
            (true, 443) => self.host.clone(),
            (true, port) => format!("{}:{port}", self.host),
            (false, 80) => format!("http://{}", self.host),
            (false, port) => format!("http://{}:{port}", self.host),
        }
    }
}

impl fmt::Display for RegistryUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_becomes_an_egress_rule() {
        for (text, rule) in [
            ("https://packages.example/", "packages.example"),
            ("sparse+https://Crates.Example/index/", "crates.example"),
            ("https://packages.example:8443/npm", "packages.example:8443"),
            ("http://deb.example/debian", "http://deb.example"),
            ("http://deb.example:3142/debian", "http://deb.example:3142"),
        ] {
            assert_eq!(RegistryUrl::parse(text).unwrap().rule(), rule, "{text}");
        }
    }

    #[test]
    fn credentials_and_other_schemes_are_refused() {
        for text in [
            "https://user:word@packages.example/",
            "https://token@packages.example/",
            "https://a.example/?t=1",
        ] {
            assert_eq!(RegistryUrl::parse(text), Err(BadUrl::Credential), "{text}");
        }
        for text in
            ["", "file:///srv", "ssh://git@a.example", "https://", "https://*.example/", "https://a:b/"]
        {
            assert_eq!(RegistryUrl::parse(text), Err(BadUrl::Unsupported), "{text}");
        }
    }
}
