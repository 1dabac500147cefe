//! Budgets that cannot be overshot: what a call can cost at most is set aside before it is made, and settled to what it
//! did cost when that is known.

mod amount;
mod ledger;
mod price;

pub use amount::{Amount, Limits};
pub use ledger::{Exhausted, Ledger, Reservation, Scope, Unsettled};
pub use price::{Price, PriceTable};
