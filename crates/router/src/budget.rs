//! Budgets that cannot be exceeded: the maximum cost of a call is reserved before it is made, and settled to its cost when
//! that is known.

mod ask;
mod budgets;
mod in_memory;
mod ledger;
mod parent_ledger;
mod price;
mod shared;

pub use herma_core::budget::{Amount, Day, LARGEST, Later, LeaseError, Leases, Limits, Scope};

pub use ask::{Ask, Lack};
pub use budgets::Budgets;
pub use in_memory::InMemory;
pub use ledger::{BudgetState, Exhausted, Ledger, NotReserved, Reservation, Reserved, Short, Unsettled};
pub use parent_ledger::ParentLedger;
pub use price::{Price, PriceTable, charge};
