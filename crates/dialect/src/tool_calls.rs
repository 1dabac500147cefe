//! Counts the calls of the client's tools in an answer. A call counts once it has begun, however often a stream mentions it.
//! Tools that the provider runs do not count.

use crate::json::{Flaw, Kind, Scanner};

/// The most choices of a chat whose calls are counted apart: no provider gives more. Further ones must not take memory.
const MOST_CHOICES: usize = 128;

/// The calls that were seen so far.
#[derive(Debug, Default)]
pub(super) struct ToolCalls {
    /// Chat: which calls each choice has, a bit for each index.
    choices: Vec<(u64, Indexes)>,
    /// Events that say that a call begins.
    begun: u64,
    /// Events that say that one is whole.
    whole: u64,
    /// The most that one event or body listed. The last event of a stream may repeat all of them.
    listed: u64,
}

/// The subject of an event: an output item or a content block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Item {
    /// Whether it is a call.
    pub(super) is_call: bool,
    /// Whether the event says that it is whole, and not that it begins.
    pub(super) is_whole: bool,
}

/// Indexes of calls in one choice. No model asks for more at once than there are bits.
pub(super) type Indexes = u128;

impl ToolCalls {
    /// How many there are. The three ways in which a stream tells of calls tell of the same ones, and not every server
    /// takes every way.
    pub(super) fn count(&self) -> u64 {
        let in_choices: u64 = self.choices.iter().map(|(_, seen)| u64::from(seen.count_ones())).sum();
        in_choices + self.begun.max(self.whole).max(self.listed)
    }

    /// A choice of a chat tells of these calls.
    pub(super) fn of_choice(&mut self, choice: u64, calls: Indexes) {
        if calls == 0 {
            return;
        }
        if let Some((_, seen)) = self.choices.iter_mut().find(|(known, _)| *known == choice) {
            *seen |= calls;
        } else if self.choices.len() < MOST_CHOICES {
            self.choices.push((choice, calls));
        }
    }

    /// An event tells of an item, or of none.
    pub(super) fn told(&mut self, item: Item) {
        let count = if item.is_whole { &mut self.whole } else { &mut self.begun };
        *count += u64::from(item.is_call);
    }

    /// The list that comes next tells of calls among other things.
    pub(super) fn list(&mut self, scanner: &mut Scanner<'_>) -> Result<(), Flaw> {
        let (mut calls, mut first) = (0, true);
        scanner.enter()?;
        while scanner.next_item(first)? {
            first = false;
            if scanner.kind()? == Kind::Object {
                calls += u64::from(is_call(scanner)?);
            } else {
                scanner.skip()?;
            }
        }
        self.listed = self.listed.max(calls);
        Ok(())
    }
}

/// Whether the object that comes next, an output item or a content block, is a call that the client has to make.
pub(super) fn is_call(scanner: &mut Scanner<'_>) -> Result<bool, Flaw> {
    let (mut is_call, mut is_search, mut client_searches, mut is_local) = (false, false, false, true);
    let mut first = true;
    scanner.enter()?;
    while let Some(key) = scanner.next_key(first)? {
        first = false;
        match (&*key.decode(), scanner.kind()?) {
            ("type", Kind::String) => {
                let of = scanner.string()?.decode();
                is_search = of == "tool_search_call";
                is_call = is_made_by_clients(&of);
            }
            ("execution", Kind::String) => client_searches = scanner.string()?.decode() == "client",
            ("environment", Kind::Object) => is_local = is_of_type(scanner, "local")?,
            _ => scanner.skip().map(drop)?,
        }
    }
    Ok((is_call && is_local) || (is_search && client_searches))
}

/// The calls of Messages and of Responses that clients make, by their types.
fn is_made_by_clients(of: &str) -> bool {
    matches!(
        of,
        "tool_use"
            | "function_call"
            | "custom_tool_call"
            | "local_shell_call"
            | "shell_call"
            | "apply_patch_call"
            | "computer_call"
    )
}

fn is_of_type(scanner: &mut Scanner<'_>, wanted: &str) -> Result<bool, Flaw> {
    let (mut is, mut first) = (false, true);
    scanner.enter()?;
    while let Some(key) = scanner.next_key(first)? {
        first = false;
        match (&*key.decode(), scanner.kind()?) {
            ("type", Kind::String) => is = scanner.string()?.decode() == wanted,
            _ => scanner.skip().map(drop)?,
        }
    }
    Ok(is)
}

/// The calls in the object that comes next: a message of a chat, or what a chunk adds to one.
pub(super) fn in_message(scanner: &mut Scanner<'_>) -> Result<Indexes, Flaw> {
    let (mut calls, mut first) = (0, true);
    scanner.enter()?;
    while let Some(key) = scanner.next_key(first)? {
        first = false;
        match (&*key.decode(), scanner.kind()?) {
            ("tool_calls", Kind::Array) => calls |= indexes(scanner)?,
            // The older way to call, of which there is one at most.
            ("function_call", Kind::Object) => {
                scanner.skip()?;
                calls |= 1;
            }
            _ => scanner.skip().map(drop)?,
        }
    }
    Ok(calls)
}

/// The indexes in a list of calls. One that says none has that of its place.
fn indexes(scanner: &mut Scanner<'_>) -> Result<Indexes, Flaw> {
    let (mut calls, mut place) = (0, 0);
    scanner.enter()?;
    while scanner.next_item(place == 0)? {
        if scanner.kind()? == Kind::Object {
            let mut index = place;
            let mut first = true;
            scanner.enter()?;
            while let Some(key) = scanner.next_key(first)? {
                first = false;
                match (&*key.decode(), scanner.kind()?) {
                    ("index", Kind::Number) => index = whole_number(scanner.number()?).unwrap_or(place),
                    _ => scanner.skip().map(drop)?,
                }
            }
            let bit = u32::try_from(index).ok().and_then(|index| 1_u128.checked_shl(index));
            calls |= bit.unwrap_or(0);
        } else {
            scanner.skip()?;
        }
        place += 1;
    }
    Ok(calls)
}

/// A number as an index; none for what is none.
pub(super) fn whole_number(written: &str) -> Option<u64> {
    written.parse().ok()
}
