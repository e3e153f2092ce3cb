//! Which kind of plugin a component is, told from the names of its imports and exports.

use plugin::host::{ModuleError, World};
use wasmtime::component::Component;

const PACKAGE: &str = "millstream:plugin/";
/// The versions of the interface that fit the host's: 0.1 and any patch of it.
const VERSION: &str = "0.1.";

/// What every kind may import; an aggregator may import output, too.
const IMPORTS: &[&str] = &["types", "context", "log", "metrics", "schemas"];
const AGGREGATOR_IMPORTS: &[&str] = &["output"];

/// The export that makes a component one kind of plugin.
const KINDS: &[(&str, World)] = &[
    ("partitioning", World::Partitioner),
    ("coding", World::Serde),
    ("validation", World::Validator),
    ("aggregation", World::WindowAggregator),
];
const LIFECYCLE: &str = "lifecycle";
const KEYING: &str = "keying";
const MIGRATION: &str = "migration";

/// # Errors
/// If an import or export is missing or has no place in the world.
pub(super) fn recognize(component: &Component, engine: &wasmtime::Engine) -> Result<World, ModuleError> {
    let of_component = component.component_type();
    let exports: Vec<&str> = of_component.exports(engine).map(|(name, _)| name).collect();
    let imports: Vec<&str> = of_component.imports(engine).map(|(name, _)| name).collect();
    if let Some(wasi) = imports.iter().find(|name| name.starts_with("wasi:")) {
        return Err(ModuleError::Wasi((*wasi).to_owned()));
    }
    let world = of_exports(&exports)?;
    for import in &imports {
        let interface = interface(import);
        let offered = interface
            .is_some_and(|name| IMPORTS.contains(&name) || (world.aggregates() && AGGREGATOR_IMPORTS.contains(&name)));
        if !offered {
            return Err(ModuleError::Import((*import).to_owned()));
        }
    }
    Ok(world)
}

fn of_exports(exports: &[&str]) -> Result<World, ModuleError> {
    let find = |wanted: &str| exports.iter().find(|export| interface(export) == Some(wanted));
    let mut kinds = KINDS.iter().filter_map(|(name, world)| Some((*find(name)?, *world)));
    let first = kinds.next();
    if let (Some((one, _)), Some((other, _))) = (first, kinds.next()) {
        return Err(ModuleError::Ambiguous(one.to_owned(), other.to_owned()));
    }
    let world = first.map(|(_, world)| world);
    let aggregates = world.is_some_and(World::aggregates);
    for export in exports {
        let known = match interface(export) {
            Some(LIFECYCLE) => true,
            Some(KEYING | MIGRATION) => aggregates,
            Some(name) => KINDS.iter().any(|(kind, _)| *kind == name),
            None => false,
        };
        if !known {
            return Err(ModuleError::Export((*export).to_owned()));
        }
    }
    let missing = |what: String| Err(ModuleError::MissingExport(what));
    let Some(world) = world else {
        let names: Vec<String> = KINDS.iter().map(|(name, _)| format!("{PACKAGE}{name}@0.1.0")).collect();
        return missing(format!("that makes it a plugin, one of {}", names.join(", ")));
    };
    if find(LIFECYCLE).is_none() {
        return missing(format!("{PACKAGE}{LIFECYCLE}@0.1.0"));
    }
    Ok(match (world, find(KEYING), find(MIGRATION)) {
        (World::WindowAggregator, Some(_), Some(_)) => World::MigratingAggregator,
        (World::WindowAggregator, Some(_), None) => World::KeyedAggregator,
        (World::WindowAggregator, None, Some(_)) => return missing(format!("{PACKAGE}{KEYING}@0.1.0")),
        (world, ..) => world,
    })
}

/// The interface that `name` says, if it is one of ours in a version that fits.
fn interface(name: &str) -> Option<&str> {
    let (interface, version) = name.strip_prefix(PACKAGE)?.split_once('@')?;
    version.starts_with(VERSION).then_some(interface)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(names: &[&str]) -> Result<World, ModuleError> {
        let names: Vec<String> = names.iter().map(|name| format!("{PACKAGE}{name}@0.1.0")).collect();
        of_exports(&names.iter().map(String::as_str).collect::<Vec<_>>())
    }

    #[test]
    fn the_exports_say_which_world_it_is() {
        assert_eq!(of(&["lifecycle", "coding"]), Ok(World::Serde));
        assert_eq!(of(&["aggregation", "lifecycle"]), Ok(World::WindowAggregator));
        assert_eq!(of(&["keying", "aggregation", "lifecycle"]), Ok(World::KeyedAggregator));
        let all = of(&["keying", "aggregation", "lifecycle", "migration"]);
        assert_eq!(all, Ok(World::MigratingAggregator));
    }

    #[test]
    fn what_is_missing_or_too_much_is_named() {
        let text = |names: &[&str]| of(names).unwrap_err().to_string();
        assert!(text(&["lifecycle"]).contains("millstream:plugin/aggregation@0.1.0"));
        assert!(text(&["coding"]).contains("lacks the export millstream:plugin/lifecycle@0.1.0"));
        assert!(text(&["lifecycle", "coding", "keying"]).contains("exports millstream:plugin/keying@0.1.0"));
        assert!(text(&["lifecycle", "processing"]).contains("exports millstream:plugin/processing@0.1.0"));
        let both = text(&["lifecycle", "coding", "validation"]);
        assert!(both.contains("coding") && both.contains("validation"), "{both}");
        let migrating = text(&["lifecycle", "aggregation", "migration"]);
        assert!(migrating.contains("lacks the export millstream:plugin/keying@0.1.0"));
    }

    #[test]
    fn a_patch_of_the_interface_fits_and_another_minor_version_does_not() {
        assert_eq!(interface("millstream:plugin/coding@0.1.7"), Some("coding"));
        for other in [
            "millstream:plugin/coding@0.2.0",
            "millstream:plugin/coding",
            "other:plugin/coding@0.1.0",
        ] {
            assert_eq!(interface(other), None, "{other}");
        }
    }
}
