//! What the macros of this crate expand to; not for hands.

pub use crate::plugin::Adapter;

/// The worlds, as a component carries them.
pub const PARTITIONER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/partitioner"));
pub const SERDE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/serde"));
pub const VALIDATOR: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/validator"));
pub const WINDOW_AGGREGATOR: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/window-aggregator"));
pub const KEYED_AGGREGATOR: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/keyed-aggregator"));

/// Exports the interfaces of one world, implemented by `$implementor`, and says which world that is.
#[macro_export]
#[doc(hidden)]
macro_rules! __world {
    ($implementor:ident, $world:ident, $($interface:ident $macro:ident)*) => {
        $(
            $crate::bindings::exports::millstream::plugin::$interface::$macro!(
                $implementor with_types_in $crate::bindings::exports::millstream::plugin::$interface
            );
        )*
        #[cfg(target_arch = "wasm32")]
        #[unsafe(link_section = concat!("component-type:millstream:", stringify!($world)))]
        #[used]
        static MILLSTREAM_WORLD: [u8; $crate::glue::$world.len()] = {
            let mut section = [0; $crate::glue::$world.len()];
            section.copy_from_slice($crate::glue::$world);
            section
        };
    };
}
