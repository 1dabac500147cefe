//! The package sources in the configuration of `NuGet`.

use super::super::xml::{element, is_plain, without_comments};
use super::{Configured, Reader, RegistryError, host_in};

pub(super) fn read(reader: &Reader<'_>) -> Result<Configured, RegistryError> {
    let mut found = Configured::default();
    let files = [reader.home_file(".nuget/NuGet/NuGet.Config")?, reader.config_file("NuGet/NuGet.Config")?];
    for file in files.into_iter().flatten() {
        let text = without_comments(&file.text);
        if !is_plain(&text, "packageSources") {
            return Err(
                reader.unreadable(&file.name, "its `packageSources` is not closed, or has attributes")
            );
        }
        let sources = element(&text, "packageSources").unwrap_or_default();
        for add in sources.split("<add").skip(1) {
            let value = add.split_once("value=\"").and_then(|(_, rest)| rest.split_once('"'));
            let Some((url, _)) = value else {
                return Err(reader.unreadable(&file.name, "a package source has no `value` in double quotes"));
            };
            match &found.url {
                None => found.url = Some((url.to_owned(), file.name.clone())),
                Some(_) => found.others.push(("packageSources".to_owned(), url.to_owned())),
            }
        }
        if text.contains("<packageSourceCredentials>") {
            let urls = found.url.iter().map(|(url, _)| url).chain(found.others.iter().map(|(_, url)| url));
            found.credential_hosts = urls.filter_map(|url| host_in(url)).collect();
        }
    }
    Ok(found)
}
