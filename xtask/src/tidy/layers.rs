//! Which crate may use which.
//!
//! The table is the layering of ARCHITECTURE.md, bottom up; the manifests are held to it. A test may use every crate that
//! stands above its own in the table, that is, every lower one.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::Value;

struct Layer {
    name: &'static str,
    deterministic: bool,
    may_use: MayUse,
}

enum MayUse {
    Only(&'static [&'static str]),
    Everything,
}

const fn deterministic(name: &'static str, may_use: &'static [&'static str]) -> Layer {
    Layer {
        name,
        deterministic: true,
        may_use: MayUse::Only(may_use),
    }
}

const fn shell(name: &'static str, may_use: &'static [&'static str]) -> Layer {
    Layer {
        name,
        deterministic: false,
        may_use: MayUse::Only(may_use),
    }
}

const LAYERS: &[Layer] = &[
    deterministic("model", &[]),
    deterministic("protocol", &["model"]),
    deterministic("plugin", &["model"]),
    deterministic("storage", &["model", "protocol"]),
    deterministic("replication", &["model", "storage"]),
    deterministic("raft", &["model", "protocol"]),
    deterministic("metadata", &["model", "protocol"]),
    deterministic("coordinator", &["model", "protocol", "metadata"]),
    deterministic("streams", &["model", "plugin"]),
    shell("wasm", &["model", "plugin"]),
    shell("network", &["model", "protocol"]),
    shell("client", &["model", "protocol", "network"]),
    shell(
        "broker",
        &[
            "model",
            "protocol",
            "plugin",
            "storage",
            "replication",
            "metadata",
            "coordinator",
            "streams",
            "network",
            "client",
        ],
    ),
    shell(
        "quorum",
        &["model", "protocol", "storage", "raft", "metadata", "network"],
    ),
    shell("registry", &["model", "client"]),
    shell("gateway", &["model", "metadata", "plugin", "registry", "client"]),
    Layer {
        name: "millstream",
        deterministic: false,
        may_use: MayUse::Everything,
    },
    Layer {
        name: "xtask",
        deterministic: false,
        may_use: MayUse::Everything,
    },
];

/// Libraries that bring a clock, a socket, a thread or chance.
const NOT_DETERMINISTIC: &[&str] = &["tokio", "socket2", "getrandom", "rand", "futures", "reqwest", "axum"];

/// What a deterministic crate's clippy.toml must forbid.
const FORBIDDEN_THERE: &[&str] = &[
    "std::time::Instant::now",
    "std::time::SystemTime::now",
    "std::thread::spawn",
    "std::collections::HashMap",
    "std::collections::HashSet",
    "std::net::TcpStream",
    "std::net::TcpListener",
    "std::fs::File",
];

struct Dependency {
    name: String,
    only_tests: bool,
    of_workspace: bool,
}

pub(super) fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let crates = crates(root)?;
    let mut findings = compare(&crates);
    let described = std::fs::read_to_string(root.join("server/README.md")).context("read server/README.md")?;
    for name in crates.keys().filter(|name| *name != "xtask") {
        if !described.contains(&format!("\n- **{name}**")) {
            findings.push(format!("server/README.md: no line for the crate {name}"));
        }
        findings.extend(check_lints(&root.join("server").join(name), name));
    }
    Ok(findings)
}

fn compare(crates: &BTreeMap<String, Vec<Dependency>>) -> Vec<String> {
    let mut findings = Vec::new();
    for (name, dependencies) in crates {
        let Some(rank) = LAYERS.iter().position(|layer| layer.name == name) else {
            findings.push(format!(
                "{name}: no row in xtask/src/tidy/layers.rs; a new crate needs a decision page"
            ));
            continue;
        };
        let layer = &LAYERS[rank];
        for dependency in dependencies {
            let allowed = match (&layer.may_use, dependency.of_workspace, dependency.only_tests) {
                (MayUse::Everything, ..) => true,
                (_, true, true) => LAYERS[..=rank].iter().any(|lower| lower.name == dependency.name),
                (MayUse::Only(names), true, false) => names.contains(&dependency.name.as_str()),
                (_, false, true) => true,
                (_, false, false) => !layer.deterministic || !NOT_DETERMINISTIC.contains(&dependency.name.as_str()),
            };
            if !allowed {
                findings.push(format!("{name}: may not use {}", dependency.name));
            }
        }
    }
    findings
}

/// Workspace lints everywhere, and in deterministic crates the clippy.toml that keeps them so.
fn check_lints(folder: &Path, name: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
    if !manifest.contains("[lints]\nworkspace = true") {
        findings.push(format!("server/{name}/Cargo.toml: does not take the workspace's lints"));
    }
    if LAYERS.iter().any(|layer| layer.name == name && layer.deterministic) {
        let lints = std::fs::read_to_string(folder.join("clippy.toml")).unwrap_or_default();
        for path in FORBIDDEN_THERE
            .iter()
            .filter(|path| !lints.contains(&format!("\"{path}\"")))
        {
            findings.push(format!("server/{name}/clippy.toml: does not forbid {path}"));
        }
    }
    findings
}

/// The workspace's crates and what they depend on, as cargo understands the manifests.
fn crates(root: &Path) -> anyhow::Result<BTreeMap<String, Vec<Dependency>>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version=1", "--manifest-path"])
        .arg(root.join("Cargo.toml"))
        .output()
        .context("start cargo metadata")?;
    ensure!(
        output.status.success(),
        "cargo metadata: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    parse(&serde_json::from_slice(&output.stdout).context("read what cargo metadata says")?)
}

fn parse(metadata: &Value) -> anyhow::Result<BTreeMap<String, Vec<Dependency>>> {
    let mut crates = BTreeMap::new();
    for package in metadata["packages"].as_array().context("packages")? {
        let name = package["name"].as_str().context("a package's name")?;
        let mut dependencies = Vec::new();
        for dependency in package["dependencies"].as_array().context("a package's dependencies")? {
            dependencies.push(Dependency {
                name: dependency["name"].as_str().context("a dependency's name")?.to_owned(),
                only_tests: dependency["kind"] == "dev",
                of_workspace: dependency["path"].is_string(),
            });
        }
        crates.insert(name.to_owned(), dependencies);
    }
    Ok(crates)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn findings(name: &str, dependency: Value) -> Vec<String> {
        let metadata = json!({ "packages": [{ "name": name, "dependencies": [dependency] }] });
        compare(&parse(&metadata).unwrap())
    }

    #[test]
    fn a_use_outside_the_table_is_found() {
        let upward = json!({ "name": "broker", "kind": null, "path": "/p" });
        assert_eq!(findings("storage", upward), ["storage: may not use broker"]);
    }

    #[test]
    fn a_use_inside_the_table_is_fine() {
        let downward = json!({ "name": "model", "kind": null, "path": "/p" });
        assert!(findings("storage", downward).is_empty());
    }

    #[test]
    fn a_test_may_use_lower_crates_but_no_higher_ones() {
        let lower = json!({ "name": "plugin", "kind": "dev", "path": "/p" });
        assert!(findings("storage", lower).is_empty());
        let higher = json!({ "name": "network", "kind": "dev", "path": "/p" });
        assert_eq!(findings("storage", higher), ["storage: may not use network"]);
    }

    #[test]
    fn a_deterministic_crate_may_not_take_a_library_with_a_clock() {
        let clock = json!({ "name": "tokio", "kind": null, "path": null });
        assert_eq!(findings("raft", clock.clone()), ["raft: may not use tokio"]);
        assert!(findings("network", clock).is_empty());
    }

    #[test]
    fn a_crate_without_a_row_is_found() {
        let found = findings("common", json!({ "name": "model", "kind": null, "path": "/p" }));
        assert!(found[0].starts_with("common: no row"), "{found:?}");
    }
}
