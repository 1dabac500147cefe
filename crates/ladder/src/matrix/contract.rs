//! The contract of a row: that of the fixture, with some keys replaced.

/// The contract's text with these keys of the front matter replaced or added; none where it has no front matter.
pub(super) fn with_terms(text: &str, terms: &[(&str, &str)]) -> Option<String> {
    let (front, brief) = text.strip_prefix("---\n")?.split_once("\n---\n")?;
    let is_replaced = |line: &str| {
        let key = line.split(':').next().unwrap_or_default();
        terms.iter().any(|(replaced, _)| *replaced == key)
    };
    let mut kept = String::new();
    let mut skipping = false;
    for line in front.lines() {
        // An indented line belongs to the key above it.
        skipping = if line.starts_with(' ') { skipping } else { is_replaced(line) };
        if !skipping {
            kept.extend([line, "\n"]);
        }
    }
    for (key, value) in terms {
        kept.extend([key, ": ", value, "\n"]);
    }
    Some(format!("---\n{kept}---\n{brief}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_replaced_with_its_indented_lines_and_others_stay() {
        let text = "---\nid: a\nsuccess:\n  - b\nstage: 2\n---\nDo it.\n";
        let changed = with_terms(text, &[("success", "[c]"), ("risk", "low")]).unwrap();
        assert_eq!(changed, "---\nid: a\nstage: 2\nsuccess: [c]\nrisk: low\n---\nDo it.\n");
        assert_eq!(with_terms(text, &[]).unwrap(), text);
        assert_eq!(with_terms("no front matter", &[]), None);
    }
}
