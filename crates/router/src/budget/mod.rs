//! Budgets that cannot be overshot: what a call can cost at most is set aside before it is made, and settled to what it
//! did cost when that is known.

mod above;
mod ask;
mod budgets;
mod in_memory;
mod ledger;
mod price;
mod shared;

pub use herma_core::budget::{Amount, Day, LARGEST, Later, LeaseError, Leases, Limits, Scope};

pub use above::Above;
pub use ask::{Ask, Lack};
pub use budgets::Budgets;
pub use in_memory::InMemory;
pub use ledger::{BudgetState, Exhausted, Ledger, NotReserved, Reservation, Reserved, Short, Unsettled};
pub use price::{Price, PriceTable, charge};
