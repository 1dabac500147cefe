//! The check that people read the same as programs: `report.md` is what `report.json` renders to.

use super::check::Good;
use super::content::absent;
use super::pass::BundleContents;
use crate::markdown::render_earlier_markdown;
use crate::{Redactor, layout, render_markdown};

/// The report for people is made of the report for programs, byte for byte.
pub(super) fn rendered(seen: &BundleContents) -> Result<Good, String> {
    let report = seen.report()?;
    if let Some(absent) = absent(seen, report, layout::REPORT_MD)? {
        return Ok(absent);
    }
    let Some(found) = &seen.report_text else { return Err(format!("{} was not read", layout::REPORT_MD)) };
    let found = found.as_ref().map_err(Clone::clone)?;
    let mut listed = report.clone();
    // It was written before it could be listed itself.
    listed.artifacts.remove(layout::REPORT_MD);
    for text in [render_markdown(&listed), render_earlier_markdown(&listed)] {
        // Text that looks like a secret only once it is rendered was redacted.
        if *found == text.as_bytes() || *found == Redactor::default().redact(&text).as_bytes() {
            return Ok(Good::Passed("it says what report.json says".to_owned()));
        }
    }
    Err(format!("{} does not say what {} says: rely on neither", layout::REPORT_MD, layout::REPORT))
}
