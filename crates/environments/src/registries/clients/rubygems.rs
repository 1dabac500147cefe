//! The sources in the configuration of gem.

use super::{Configured, Reader, RegistryError};

pub(super) fn read(reader: &Reader<'_>) -> Result<Configured, RegistryError> {
    let mut found = Configured::default();
    for file in [reader.home_file(".gemrc")?, reader.etc_file("gemrc")?].into_iter().flatten() {
        let mut lines = file.text.lines().skip_while(|line| !is_sources(line));
        let Some(key) = lines.next() else { continue };
        let items: Vec<&str> = lines.map_while(|line| line.trim().strip_prefix("- ")).collect();
        if items.is_empty() || !key.trim_end().ends_with("sources:") {
            return Err(
                reader.unreadable(&file.name, "its `:sources:` is not a list with one address in each line")
            );
        }
        for item in items {
            match &found.url {
                None => found.url = Some((item.trim().to_owned(), file.name.clone())),
                Some(_) => found.others.push(("sources".to_owned(), item.trim().to_owned())),
            }
        }
    }
    Ok(found)
}

fn is_sources(line: &str) -> bool {
    line.starts_with(":sources:") || line.starts_with("sources:")
}
