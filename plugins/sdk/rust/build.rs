//! Writes down, for each kind of plugin, the world that its components belong to, in the form in which a core module
//! carries it (the section `component-type`). The macros of the crate put one of them into a library.

use std::path::{Path, PathBuf};

use wit_parser::Resolve;

const WORLDS: &[&str] = &[
    "partitioner",
    "serde",
    "validator",
    "window-aggregator",
    "keyed-aggregator",
];

fn main() {
    let wit = Path::new("../../../wit");
    println!("cargo::rerun-if-changed={}", wit.display());
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo says where to write"));
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_path(wit).expect("the interface is sound");
    for name in WORLDS {
        let world = resolve
            .select_world(&[package], Some(name))
            .expect("the interface has the world");
        let section =
            wit_component::metadata::encode(&resolve, world, wit_component::StringEncoding::UTF8, None, false)
                .expect("the world can be written down");
        std::fs::write(out.join(name), section).expect("the folder can be written");
    }
}
