//! The target of a symbolic link, resolved by its text and the links on its way.

use std::collections::BTreeMap;

use herma_core::RepoPath;

use crate::names::is_dot_git;

/// As many links as the kernel follows before it gives up.
const MAX_HOPS: usize = 40;

/// Why a link leads nowhere inside the repository.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadLink {
    #[error("its target is not known")]
    Unknown,
    #[error("{problem}: `{target}`")]
    Target { problem: &'static str, target: String },
    #[error("it leads through more than {MAX_HOPS} links")]
    TooManyHops,
}

/// Why a link may not be there, or `None` if it stays inside the repository.
pub(crate) fn escape(link: &RepoPath, links: &BTreeMap<RepoPath, Vec<u8>>) -> Option<BadLink> {
    follow(link, links).err()
}

/// The path that a link leads to, which is empty for the root; or why it leads nowhere inside.
///
/// `links` holds the targets of the changed links, and of the others as far as they are known: a link that passes
/// through another one is followed.
pub(crate) fn follow(link: &RepoPath, links: &BTreeMap<RepoPath, Vec<u8>>) -> Result<Vec<u8>, BadLink> {
    let mut at = link.clone();
    // The rest of the walk behind the present link, last name first.
    let mut behind: Vec<Vec<u8>> = Vec::new();
    for _ in 0..MAX_HOPS {
        let target = links.get(&at).ok_or(BadLink::Unknown)?;
        let mut place =
            leading(&at, target).map_err(|problem| BadLink::Target { problem, target: shown(target) })?;
        behind.extend(names(target).filter(|name| *name != b"..").map(<[u8]>::to_vec).rev());
        match next_link(&mut place, &mut behind, links) {
            Some(link) => at = link,
            None => return Ok(place.join(&b'/')),
        }
    }
    Err(BadLink::TooManyHops)
}

/// The directory that the target's walk starts from, after its leading `..`.
fn leading(link: &RepoPath, target: &[u8]) -> Result<Vec<Vec<u8>>, &'static str> {
    if target.is_empty() || target.contains(&0) {
        return Err("its target is no path");
    }
    if target.starts_with(b"/") {
        return Err("its target is absolute");
    }
    if target.split(|b| *b == b'/').any(is_dot_git) {
        return Err("its target passes through `.git`");
    }
    let mut place: Vec<Vec<u8>> = link.components().map(<[u8]>::to_vec).collect();
    place.pop();
    let mut left_the_start = false;
    for name in names(target) {
        // The meaning of `..` after a name depends on whether that name is a link, and that can change later.
        match (name == b"..", left_the_start) {
            (true, true) => return Err("its target has `..` behind a name"),
            (true, false) => drop(place.pop().ok_or("its target leads out of the repository")?),
            (false, _) => left_the_start = true,
        }
    }
    Ok(place)
}

/// Walks `behind` from `place` until a known link is met; what is left stays in `behind`.
fn next_link(
    place: &mut Vec<Vec<u8>>,
    behind: &mut Vec<Vec<u8>>,
    links: &BTreeMap<RepoPath, Vec<u8>>,
) -> Option<RepoPath> {
    while let Some(name) = behind.pop() {
        place.push(name);
        if let Some(path) = RepoPath::new(place.join(&b'/'))
            && links.contains_key(&path)
        {
            return Some(path);
        }
    }
    None
}

/// The names of a target without those that mean nothing.
fn names(target: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    target.split(|b| *b == b'/').filter(|name| !name.is_empty() && *name != b".")
}

fn shown(target: &[u8]) -> String {
    String::from_utf8_lossy(target).chars().take(200).collect::<String>().escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(links: &[(&str, &str)]) -> Option<String> {
        let path = |text: &str| RepoPath::new(text).unwrap();
        let map = links.iter().map(|(at, target)| (path(at), target.as_bytes().to_vec())).collect();
        escape(&path(links[0].0), &map).map(|bad| bad.to_string())
    }

    #[test]
    fn links_that_stay_inside() {
        for (at, target) in [("a", "b"), ("a/b/c", "../../d"), ("a/b", ".."), ("a", "."), ("a", "b/./c//d/")]
        {
            assert_eq!(why(&[(at, target)]), None, "{at} -> {target}");
        }
    }

    #[test]
    fn links_that_lead_out() {
        for (at, target, reason) in [
            ("a", "/etc/passwd", "absolute"),
            ("a", "..", "leads out"),
            ("a/b", "../../x", "leads out"),
            ("a/b/c", "./../.././../x", "leads out"),
            ("a", "b/../c", "behind a name"),
            ("a", ".git/config", "`.git`"),
            ("a/b", "../.GIT", "`.git`"),
            ("a", "", "no path"),
        ] {
            let found = why(&[(at, target)]).unwrap_or_default();
            assert!(found.contains(reason), "{at} -> {target}: {found}");
        }
    }

    #[test]
    fn a_link_through_another_is_followed() {
        assert!(why(&[("a", "data/x"), ("data", "/mnt")]).unwrap().contains("absolute"));
        assert!(why(&[("a", "d/e"), ("d", "f"), ("f/e", "../../x")]).unwrap().contains("leads out"));
        assert_eq!(why(&[("a", "d/e"), ("d", "f/g"), ("f/g/e", "../..")]), None);
        assert!(why(&[("a", "b"), ("b", "a")]).unwrap().contains("more than 40"));
    }
}
