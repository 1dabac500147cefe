//! The rules as a whole, from terms and facts to violations and verdicts.

mod facts;
mod globs;
mod paths;
mod reference;
mod verdicts;
