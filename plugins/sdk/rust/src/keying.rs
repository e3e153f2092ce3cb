//! Another key, another time: what a windowed plugin may say of each row before windows are assigned.

use crate::bindings::exports::millstream::plugin::keying;
use crate::bindings::millstream::plugin::types::{Batch, Rejection};
use crate::plugin::{Adapter, Plugin, with};
use crate::rows::{Row, Rows, append};

/// The key that a row is grouped by.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Key {
    /// Its own.
    #[default]
    Kept,
    /// None: the row falls into no window.
    Nothing,
    Is(Vec<u8>),
}

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Assigned {
    pub key: Key,
    /// Event time in milliseconds since 1970; `None` is the record's own timestamp.
    pub timestamp: Option<i64>,
}

pub trait Keying: Plugin {
    /// # Errors
    /// Why the row is refused; it goes to the dead-letter topic with this text.
    fn assign(&mut self, row: &Row<'_>) -> Result<Assigned, String>;
}

impl<P: Keying> keying::Guest for Adapter<P> {
    fn assign(rows: Batch) -> keying::Keys {
        with(|plugin: &mut P| assign(plugin, &Rows::new(rows)))
    }
}

/// Columns in which nothing changes are left out.
fn assign<P: Keying>(plugin: &mut P, rows: &Rows) -> keying::Keys {
    let mut keys = keying::Keys {
        spans: Vec::new(),
        timestamps: Vec::new(),
        arena: Vec::new(),
        rejections: Vec::new(),
    };
    let (mut new_keys, mut new_timestamps) = (false, false);
    for (index, row) in (0u32..).zip(rows.iter()) {
        let assigned = plugin.assign(&row).unwrap_or_else(|reason| {
            keys.rejections.push(Rejection { row: index, reason });
            Assigned::default()
        });
        new_timestamps |= assigned.timestamp.is_some();
        keys.timestamps.push(assigned.timestamp.unwrap_or(row.timestamp()));
        new_keys |= assigned.key != Key::Kept;
        let key = match &assigned.key {
            Key::Kept => row.key(),
            Key::Nothing => None,
            Key::Is(key) => Some(key.as_slice()),
        };
        let span = append(&mut keys.arena, key);
        keys.spans.extend(span);
    }
    if !new_keys {
        keys.spans.clear();
        keys.arena.clear();
    }
    if !new_timestamps {
        keys.timestamps.clear();
    }
    keys
}
