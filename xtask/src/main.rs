//! The project's chores, each a verb with a file of its own: `cargo xtask VERB [ARGS…]`.

mod accept;
mod bench;
mod ci;
mod compatibility;
mod config_keys;
mod console;
mod openapi;
mod plugins;
mod root;
mod schemas;
mod soak;
mod tidy;
mod window_cases;

use anyhow::bail;
use std::process::ExitCode;

/// Name, what it does, and the function that does it with the arguments after the name.
type Verb = (&'static str, &'static str, fn(&[String]) -> anyhow::Result<()>);

const VERBS: &[Verb] = &[
    (
        "accept",
        "run an acceptance script: `accept NAME [ARGS…]`; without a name, list them",
        accept::run,
    ),
    (
        "bench",
        "print our figures beside Apache Kafka's: `bench [--rounds N] [--only SECTION] [--quick] [--json FILE] [--check]`",
        bench::run,
    ),
    ("ci", "everything that CI runs, stage by stage: `ci [STAGE…]`", ci::run),
    (
        "compatibility",
        "write the tables of configuration keys in docs/compatibility.md",
        compatibility::run,
    ),
    (
        "config-keys",
        "compare our facts on configuration keys with Kafka's jars: `config-keys [--jars DIR]`",
        config_keys::run,
    ),
    (
        "openapi",
        "write openapi/millstream.json anew from the routes of the HTTP door",
        openapi::run,
    ),
    (
        "plugins",
        "build the plugins of plugins/ as components, into target/plugins",
        plugins::run,
    ),
    (
        "schemas",
        "write the notation of the protocol's messages anew from Kafka's jars: `schemas [--jars DIR]`",
        schemas::run,
    ),
    (
        "soak",
        "run storage's simulations over many seeds: `soak log [--seeds 20000] [--from S]`",
        soak::run,
    ),
    (
        "tidy",
        "check the rules of the house that a program can check",
        tidy::run,
    ),
    (
        "window-cases",
        "run recorded window cases: `window-cases DIR --plugin native|wasm`",
        window_cases::run,
    ),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            console::error(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn dispatch(arguments: &[String]) -> anyhow::Result<()> {
    let Some((name, rest)) = arguments.split_first() else {
        for (name, what, _) in VERBS {
            console::line(&format!("{name:<13} {what}"));
        }
        bail!("name a verb");
    };
    match VERBS.iter().find(|(verb, _, _)| verb == name) {
        Some((_, _, verb)) => verb(rest),
        None => bail!("no verb is called {name}; `cargo xtask` lists them"),
    }
}
