//! What a model can do, asked through a router with scripts behind it, and of servers that answer anything.

mod anything;
mod blocked;
mod kit;
mod servers;
mod shapes;
