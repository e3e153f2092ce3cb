//! The interface of `wit/`, as Rust: every import and every export in one world, of which each kind of plugin uses its own.

#![allow(
    dead_code,
    elided_lifetimes_in_paths,
    non_camel_case_types,
    unreachable_pub,
    unused_lifetimes,
    reason = "generated, and of the whole interface"
)]

wasmtime::component::bindgen!({
    path: "../../wit",
    world: "host",
    ownership: Borrowing { duplicate_if_necessary: true },
    imports: { default: trappable },
});
