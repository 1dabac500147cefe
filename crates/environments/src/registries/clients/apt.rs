//! The archives in the sources of apt.

use std::io;
use std::path::Path;

use super::{Configured, Reader, RegistryError};

pub(super) fn read(reader: &Reader<'_>) -> Result<Configured, RegistryError> {
    let mut names = listed(reader)?;
    names.sort();
    names.insert(0, "apt/sources.list".to_owned());
    let (mut urls, mut others) = (Vec::new(), Vec::new());
    for name in names.iter().filter(|name| is_list(name)) {
        let Some(file) = reader.etc_file(name)? else { continue };
        let lines = file.text.lines().map(str::trim);
        let words = lines
            .filter(|line| line.starts_with("URIs:") || line.starts_with("deb"))
            .flat_map(str::split_whitespace);
        let is_address = |word: &&str| word.contains(':') && !word.starts_with('[') && *word != "URIs:";
        for word in words.filter(is_address) {
            let is_http = word.starts_with("http://") || word.starts_with("https://");
            let list = if is_http { &mut urls } else { &mut others };
            list.push((word.to_owned(), file.name.clone()));
        }
    }
    let mut found = Configured::default();
    // Media and mirror lists beside archives are passed over. Alone they are no reason to use the public archive.
    if urls.is_empty() {
        urls = others;
    }
    let mut urls = urls.into_iter();
    found.url = urls.next();
    found.others = urls.map(|(url, _)| ("apt".to_owned(), url)).collect();
    Ok(found)
}

/// The names of the files in the directory of sources.
fn listed(reader: &Reader<'_>) -> Result<Vec<String>, RegistryError> {
    const DIR: &str = "apt/sources.list.d";
    let failed = |e: io::Error| reader.unreadable(&format!("/etc/{DIR}"), &e.to_string());
    let entries = match std::fs::read_dir(reader.clients.etc.join(DIR)) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(failed(e)),
    };
    let mut names = Vec::new();
    for entry in entries {
        // apt reads no file whose name is not ASCII.
        let name = entry.map_err(failed)?.file_name().into_string();
        names.extend(name.ok().map(|name| format!("{DIR}/{name}")));
    }
    Ok(names)
}

fn is_list(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|end| end == "list" || end == "sources")
}
