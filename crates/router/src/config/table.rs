//! Tables. A struct that serde derives would take a list too, with the values in the order of its fields.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

/// A struct for a table.
pub(super) trait TableType {
    /// The suggestion if there is no table.
    const EXPECTING: &'static str;
}

/// A value that is written as a table, never as a list.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Table<T>(pub(super) T);

impl<T> Deref for Table<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<'de, T: Deserialize<'de> + TableType> Deserialize<'de> for Table<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(TableVisitor(PhantomData)).map(Self)
    }
}

struct TableVisitor<T>(PhantomData<fn() -> T>);

impl<'de, T: Deserialize<'de> + TableType> Visitor<'de> for TableVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTING)
    }

    fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<T, M::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}
