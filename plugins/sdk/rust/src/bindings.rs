//! The interface as the generator writes it, for plugins that want more than the traits of this crate give.

wit_bindgen::generate!({
    path: "../../../wit",
    world: "host",
    generate_all,
    pub_export_macro: true,
    default_bindings_module: "millstream_sdk::bindings",
});
