//! Modules that are refused, each with its reason.

use plugin::Parameter;
use plugin::host::{Host, MODULE_BYTES_MAX, ModuleError, World};

use crate::fixtures::{component, engine, module, settings};

fn refusal(module: &[u8]) -> String {
    match engine().load(module) {
        Ok(module) => panic!("{:?}", module.info()),
        Err(error) => error.to_string(),
    }
}

fn of_text(text: &str) -> String {
    refusal(&wat::parse_str(text).expect("the text is sound"))
}

#[test]
fn a_module_says_what_it_is() {
    let module = module("window-aggregates");
    let info = module.info();
    assert_eq!(info.world, World::KeyedAggregator);
    assert_eq!(info.size_bytes, component("window-aggregates").len() as u64);
    assert_eq!(
        (info.descriptor.name.as_str(), info.descriptor.version.as_str()),
        ("window-aggregates", "0.1.0")
    );
    let aggregate = Parameter {
        name: "aggregate".into(),
        doc: "count, sum, min, max, list or stats".into(),
        fallback: None,
        required: true,
        secret: false,
    };
    assert_eq!(info.descriptor.parameters[0], aggregate);
    let names = ["key-partitioner", "json-binary-serde", "delay-statistics", "evil"];
    let worlds = names.map(|name| crate::fixtures::module(name).info().world.name());
    assert_eq!(
        worlds,
        ["partitioner", "serde", "keyed-aggregator", "window-aggregator"]
    );
}

#[test]
fn a_digest_is_the_sha_256_of_the_file() {
    use sha2::Digest as _;
    let expected = sha2::Sha256::digest(component("evil"));
    assert_eq!(module("evil").info().digest.bytes()[..], expected[..]);
}

#[test]
fn what_is_no_component_is_refused() {
    assert!(refusal(b"").contains("no WebAssembly"));
    assert!(refusal(b"#!/bin/sh\n").contains("no WebAssembly"));
    assert!(refusal(&wat::parse_str("(module)").unwrap()).contains("core module"));
    let whole = component("key-partitioner");
    for size in [8, 9, 1_000, whole.len() / 2, whole.len() - 1] {
        refusal(&whole[..size]);
    }
    let large = vec![0; MODULE_BYTES_MAX + 1];
    assert_eq!(refusal(&large), "the module has 67108865 bytes, the limit is 67108864");
}

#[test]
fn a_component_with_a_byte_changed_is_refused_or_sound() {
    let whole = component("key-partitioner");
    for place in (8..whole.len()).step_by(4_999) {
        let mut damaged = whole.clone();
        damaged[place] ^= 0x55;
        let _ = engine().load(&damaged);
    }
}

#[test]
fn imports_that_plugins_do_not_get_are_named() {
    let wasi = of_text(r#"(component (import "wasi:cli/environment@0.2.0" (instance)))"#);
    assert!(wasi.contains("imports wasi:cli/environment@0.2.0"), "{wasi}");
    let part = r#"
        (component $inner)
        (instance $inner (instantiate $inner))
        (export "millstream:plugin/lifecycle@0.1.0" (instance $inner))"#;
    for import in [
        "millstream:plugin/state@0.1.0",
        "millstream:plugin/timers@0.1.0",
        "millstream:plugin/output@0.1.0",
        "millstream:plugin/context@0.2.0",
        "acme:tools/knife",
    ] {
        let text = of_text(&format!(
            r#"(component (import "{import}" (instance)) {part}
               (export "millstream:plugin/validation@0.1.0" (instance $inner)))"#
        ));
        assert!(text.contains(&format!("imports {import}")), "{text}");
    }
}

#[test]
fn exports_that_are_missing_or_have_no_place_are_named() {
    let with = |exports: &[&str]| {
        let exports: String = exports
            .iter()
            .map(|name| format!("(export \"{name}\" (instance $inner))"))
            .collect();
        of_text(&format!(
            "(component (component $inner) (instance $inner (instantiate $inner)) {exports})"
        ))
    };
    let lifecycle = "millstream:plugin/lifecycle@0.1.0";
    assert!(with(&[]).contains("lacks the export that makes it a plugin"));
    let text = with(&["millstream:plugin/validation@0.1.0"]);
    assert!(
        text.contains("lacks the export millstream:plugin/lifecycle@0.1.0"),
        "{text}"
    );
    let text = with(&[lifecycle, "millstream:plugin/processing@0.1.0"]);
    assert!(text.contains("exports millstream:plugin/processing@0.1.0"), "{text}");
    let text = with(&[lifecycle, "wasi:cli/run@0.2.0"]);
    assert!(text.contains("exports wasi:cli/run@0.2.0"), "{text}");
    // The right names, but nothing in them.
    let text = with(&[lifecycle, "millstream:plugin/validation@0.1.0"]);
    assert!(
        text.contains("does not fit the interface") && text.contains("describe"),
        "{text}"
    );
}

#[test]
fn a_module_of_another_kind_makes_no_instance() {
    let Err(error) = module("json-binary-serde").window_aggregator(settings(&[])).map(drop) else {
        panic!("a serde aggregates");
    };
    let (wanted, got) = ("window aggregator", World::Serde);
    assert_eq!(error, ModuleError::Kind { wanted, got });
    let Err(ModuleError::Start(reason)) = module("window-aggregates").window_aggregator(settings(&[])).map(drop) else {
        panic!("it started without the setting that it requires");
    };
    assert_eq!(reason, "init: the setting aggregate is missing");
}
