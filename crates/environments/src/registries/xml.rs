//! Reads the few elements of the settings of Maven and `NuGet` that name addresses.

/// The text without comments.
pub(super) fn without_comments(text: &str) -> String {
    let mut rest = text;
    let mut kept = String::new();
    while let Some((before, after)) = rest.split_once("<!--") {
        kept.push_str(before);
        rest = after.split_once("-->").map_or("", |(_, after)| after);
    }
    kept.push_str(rest);
    kept
}

/// The contents of every element of this name, in order. Elements of one name do not nest in these files.
pub(super) fn elements<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    text.split(open.as_str())
        .skip(1)
        .filter_map(|part| Some(part.split_once(close.as_str())?.0.trim()))
        .collect()
}

/// The text of the first element of this name.
pub(super) fn element<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    elements(text, name).into_iter().next()
}

/// Whether [`elements`] finds every element of this name: each is closed, and none has attributes.
pub(super) fn is_plain(text: &str, name: &str) -> bool {
    let after_name = |rest: &str| rest.starts_with('>') || rest.trim_start().starts_with("/>");
    let open = format!("<{name}");
    let opens = text.split(open.as_str()).skip(1);
    // A longer name, such as `mirrors`, is another element.
    let mut own = opens.filter(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()));
    own.all(after_name)
        && text.matches(&format!("<{name}>")).count() == text.matches(&format!("</{name}>")).count()
}

/// A text as it is written between tags.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
