//! Shows a patch: its files with their added and removed lines, and the patch itself in colours.

use herma_api::{FileStat, patch_stat};

use crate::screen::{Screen, Tone, safe, safe_line};

/// The widest bar of a file.
const MAX_BAR: u64 = 20;
/// The files that are listed.
const MAX_FILES: usize = 100;

/// Prints one line for each file, and the sum.
pub(crate) fn show_stat(patch: &[u8], screen: &Screen) {
    let stat = patch_stat(&String::from_utf8_lossy(patch));
    for line in stat_lines(&stat, MAX_FILES, screen) {
        screen.line(line);
    }
    screen.line(format_args!(" {}", sum(&stat)));
}

/// The sum over all files, in words.
pub(crate) fn sum(stat: &[FileStat]) -> String {
    let total = |count: fn(&FileStat) -> Option<u64>| stat.iter().filter_map(count).sum::<u64>();
    let files = stat.len();
    let plural = if files == 1 { "" } else { "s" };
    format!("{files} file{plural} changed, +{} -{}", total(|file| file.added), total(|file| file.removed))
}

/// One line for each of the first files.
pub(crate) fn stat_lines(stat: &[FileStat], most: usize, screen: &Screen) -> Vec<String> {
    let shown = &stat[..most.min(stat.len())];
    let columns = screen.columns().unwrap_or(100);
    let widest = columns.saturating_sub(36).max(12);
    let paths: Vec<String> = shown.iter().map(|file| shortened(&safe_line(&file.path), widest)).collect();
    let width = paths.iter().map(|path| path.chars().count()).max().unwrap_or(0);
    let largest = shown.iter().filter_map(|file| Some(file.added? + file.removed?)).max().unwrap_or(0).max(1);
    // A blank, the path, ` | `, five digits and a blank stand before the bar.
    let room = u64::try_from(columns.saturating_sub(width + 10)).unwrap_or(0).clamp(1, MAX_BAR);
    let mut lines: Vec<String> = shown
        .iter()
        .zip(&paths)
        .map(|(file, path)| {
            let pad = " ".repeat(width - path.chars().count());
            match (file.added, file.removed) {
                (Some(added), Some(removed)) => {
                    let bar = |count: u64| (count * room).div_ceil(largest).min(count).min(room);
                    let plus = bar(added);
                    let minus = bar(removed).min(room - plus);
                    let [plus, minus] = [(plus, "+"), (minus, "-")]
                        .map(|(length, sign)| sign.repeat(usize::try_from(length).unwrap_or(0)));
                    let (plus, minus) = (screen.paint(Tone::Good, plus), screen.paint(Tone::Bad, minus));
                    format!(" {path}{pad} | {:>5} {plus}{minus}", added + removed).trim_end().to_owned()
                }
                _ => format!(" {path}{pad} | binary"),
            }
        })
        .collect();
    if stat.len() > shown.len() {
        lines.push(format!(" and {} more files", stat.len() - shown.len()));
    }
    lines
}

/// The end of a path says more than its start.
fn shortened(path: &str, most: usize) -> String {
    let length = path.chars().count();
    if length <= most {
        return path.to_owned();
    }
    let end: String = path.chars().skip(length + 1 - most).collect();
    format!("…{end}")
}

/// Prints a patch with its lines in colours, as a reader of it expects them. The bytes of the agent are made safe.
pub(crate) fn show_patch(patch: &[u8], screen: &Screen) {
    for line in String::from_utf8_lossy(patch).lines() {
        let tone = match line.as_bytes() {
            [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => Some(Tone::Bold),
            [b'+', ..] => Some(Tone::Good),
            [b'-', ..] => Some(Tone::Bad),
            [b'@', b'@', ..] => Some(Tone::Note),
            _ if line.starts_with("diff --git ") => Some(Tone::Bold),
            _ => None,
        };
        let line = safe(line);
        match tone {
            Some(tone) => screen.line(screen.paint(tone, line)),
            None => screen.line(line),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_fits_its_columns_and_names_binary_files() {
        let file = |path: &str, added, removed| FileStat { path: path.to_owned(), added, removed };
        let long = format!("src/{}/end.rs", "deep/".repeat(30));
        let stat = [file(&long, Some(300), Some(10)), file("a", Some(1), Some(0)), file("b", None, None)];
        for columns in [40, 80, 120] {
            let screen = Screen::new(false, false).with_columns(Some(columns));
            let lines = stat_lines(&stat, 9, &screen);
            assert!(lines.iter().all(|line| line.chars().count() <= columns), "{lines:#?}");
            assert!(lines[0].contains("end.rs") && lines[2].ends_with("| binary"), "{lines:#?}");
            assert!(lines[1].ends_with("|     1 +"), "{lines:#?}");
        }
        assert_eq!(sum(&stat), "3 files changed, +301 -10");
    }
}
