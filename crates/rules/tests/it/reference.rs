//! A deliberately slow and simple reading of gitignore patterns, to compare the real one with.

/// Whether a pattern matches a path or a directory above it.
pub(crate) fn covers(pattern: &str, path: &str) -> bool {
    let names: Vec<&str> = path.split('/').collect();
    (1..=names.len()).any(|depth| matches(pattern, &names[..depth], depth < names.len()))
}

fn matches(pattern: &str, names: &[&str], is_directory: bool) -> bool {
    let (pattern, directories_only) = match pattern.strip_suffix('/') {
        Some(rest) => (rest, true),
        None => (pattern, false),
    };
    if directories_only && !is_directory {
        return false;
    }
    if !pattern.contains('/') {
        return names.last().is_some_and(|name| name_matches(pattern.as_bytes(), name.as_bytes()));
    }
    let parts: Vec<&str> = pattern.strip_prefix('/').unwrap_or(pattern).split('/').collect();
    parts_match(&parts, names)
}

fn parts_match(parts: &[&str], names: &[&str]) -> bool {
    match (parts, names) {
        ([], names) => names.is_empty(),
        (["**"], names) => !names.is_empty(),
        (["**", rest @ ..], names) => {
            parts_match(rest, names) || (!names.is_empty() && parts_match(parts, &names[1..]))
        }
        ([_, ..], []) => false,
        ([part, rest @ ..], [name, below @ ..]) => {
            name_matches(part.as_bytes(), name.as_bytes()) && parts_match(rest, below)
        }
    }
}

fn name_matches(part: &[u8], name: &[u8]) -> bool {
    match (part, name) {
        ([], name) => name.is_empty(),
        ([b'*', rest @ ..], name) => {
            name_matches(rest, name) || (!name.is_empty() && name_matches(part, &name[1..]))
        }
        (_, []) => false,
        ([b'?', rest @ ..], [_, left @ ..]) => name_matches(rest, left),
        ([b'[', class @ ..], [n, left @ ..]) => {
            let end = class.iter().skip(1).take_while(|b| **b != b']').count() + 1;
            let (members, negated) = match &class[..end] {
                [b'!' | b'^', members @ ..] => (members, true),
                members => (members, false),
            };
            (in_class(members, *n) != negated) && name_matches(&class[end + 1..], left)
        }
        ([b'\\', c, rest @ ..] | [c, rest @ ..], [n, left @ ..]) => c == n && name_matches(rest, left),
    }
}

fn in_class(members: &[u8], n: u8) -> bool {
    match members {
        [low, b'-', high, rest @ ..] => (*low..=*high).contains(&n) || in_class(rest, n),
        [c, rest @ ..] => *c == n || in_class(rest, n),
        [] => false,
    }
}
