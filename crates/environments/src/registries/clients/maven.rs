//! The mirrors in the settings of Maven.

use super::super::xml::{element, elements, is_plain, without_comments};
use super::{Configured, Reader, RegistryError, host_in};

pub(super) fn read(reader: &Reader<'_>) -> Result<Configured, RegistryError> {
    let mut found = Configured::default();
    let files = [reader.home_file(".m2/settings.xml")?, reader.etc_file("maven/settings.xml")?];
    for file in files.into_iter().flatten() {
        let text = without_comments(&file.text);
        if !is_plain(&text, "mirror") {
            return Err(reader.unreadable(&file.name, "a `mirror` is not closed, or has attributes"));
        }
        let with_credentials: Vec<&str> =
            elements(&text, "server").iter().filter_map(|server| element(server, "id")).collect();
        // A blocked mirror is no address: Maven's own settings block plain HTTP by one.
        let is_open = |mirror: &&str| element(mirror, "blocked") != Some("true");
        for mirror in elements(&text, "mirror").into_iter().filter(is_open) {
            let Some(url) = element(mirror, "url") else {
                return Err(reader.unreadable(&file.name, "a `mirror` has no `url`"));
            };
            let of = element(mirror, "mirrorOf").unwrap_or_default();
            let is_central =
                of.split(',').map(str::trim).any(|of| matches!(of, "*" | "central" | "external:*"));
            if is_central && found.url.is_none() {
                found.url = Some((url.to_owned(), file.name.clone()));
            } else if !is_central {
                found.others.push((of.to_owned(), url.to_owned()));
            }
            if element(mirror, "id").is_some_and(|id| with_credentials.contains(&id)) {
                found.credential_hosts.extend(host_in(url));
            }
        }
    }
    Ok(found)
}
