//! CPU time and memory of a process and its descendants, from the process table.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::time::Duration;

/// CPU time and memory of one process or several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Used {
    /// Time on a CPU, in the program and in the kernel.
    pub(crate) cpu: Duration,
    /// Memory that is resident, in bytes.
    pub(crate) resident: u64,
}

/// One process of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    parent: i32,
    /// Clock ticks of its threads, dead ones too, and of its children that it has waited for.
    ticks: u64,
}

/// Every process that this one has started itself and that is alive.
pub(crate) fn own_children() -> io::Result<HashSet<i32>> {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    Ok(table()?.into_iter().filter(|(_, entry)| entry.parent == own).map(|(pid, _)| pid).collect())
}

/// CPU time and memory of `root` and all of its descendants.
pub(crate) fn used_by(root: i32) -> io::Result<Used> {
    let table = table()?;
    let family = family(root, &table);
    let ticks: u64 = family.iter().filter_map(|pid| table.get(pid)).map(|entry| entry.ticks).sum();
    let a_second = rustix::param::clock_ticks_per_second().max(1);
    let resident = family.iter().map(|pid| resident(*pid)).sum();
    Ok(Used { cpu: Duration::from_micros(ticks * 1_000_000 / a_second), resident })
}

fn family(root: i32, table: &HashMap<i32, Entry>) -> HashSet<i32> {
    let mut family = HashSet::from([root]);
    loop {
        let more: Vec<i32> = table
            .iter()
            .filter(|(pid, entry)| family.contains(&entry.parent) && !family.contains(pid))
            .map(|(pid, _)| *pid)
            .collect();
        if more.is_empty() {
            return family;
        }
        family.extend(more);
    }
}

fn table() -> io::Result<HashMap<i32, Entry>> {
    let mut table = HashMap::new();
    for entry in fs::read_dir("/proc")? {
        let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // One that ends while the table is read is left out.
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok();
        if let Some(entry) = stat.as_deref().and_then(parse) {
            table.insert(pid, entry);
        }
    }
    Ok(table)
}

fn parse(stat: &str) -> Option<Entry> {
    // The second field is the command's name in brackets, and the name itself may hold spaces and brackets.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: Option<Vec<u64>> = fields.get(11..15)?.iter().map(|field| field.parse().ok()).collect();
    Some(Entry { parent: fields.get(1)?.parse().ok()?, ticks: ticks?.iter().sum() })
}

fn resident(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib: Option<u64> = line.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse().ok());
    kib.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn all_four_times_count_and_a_name_with_brackets_shifts_nothing() {
        let stat = "7 (a) Z 1 (x) S 42 7 7 0 -1 4194560 1 0 0 0 10 20 300 4000 20 0 1 0 900 1 1";
        assert_eq!(parse(stat), Some(Entry { parent: 42, ticks: 4330 }));
        assert_eq!(parse("7 (a) S 42"), None);
    }

    #[test]
    fn grandchildren_belong_to_the_family_and_others_do_not() {
        let entry = |parent| Entry { parent, ticks: 0 };
        let table = HashMap::from([(5, entry(1)), (6, entry(5)), (7, entry(6)), (8, entry(1))]);
        assert_eq!(family(5, &table), HashSet::from([5, 6, 7]));
    }

    #[test]
    fn this_process_uses_what_it_uses() {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let before = used_by(own).unwrap();
        assert!(before.resident > 1 << 20, "{before:?}");
        let until = Instant::now() + Duration::from_secs(10);
        while used_by(own).unwrap().cpu < before.cpu + Duration::from_millis(30) {
            assert!(Instant::now() < until, "no CPU time was counted");
        }
    }
}
