//! `wasm build|upload|deploy|list|describe|status|pause|resume|logs|delete`: plugins from source to what they are doing.
//!
//! Building is local; all else asks the HTTP door of a node, since what is deployed is looked at and checked there. This
//! file has the verbs that look and switch.

mod build;
mod deploy;
mod logs;
mod show;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use hyper::Method;
use plugin::deployment::ProcessorName;
use plugin::host::Digest;
use serde_json::json;

use crate::cli::{ConfirmArgs, OutputArgs};
use crate::commands::http::{Door, DoorArgs, Payload};
use crate::output::{print_json, print_line, tell};

#[derive(Args, Debug)]
pub(crate) struct WasmArgs {
    #[command(flatten)]
    door: DoorArgs,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Verb {
    Build(build::BuildArgs),
    /// Put a module where every node finds it; prints its digest.
    Upload {
        #[arg(value_name = "FILE")]
        module: PathBuf,
        #[command(flatten)]
        output: OutputArgs,
    },
    Deploy(deploy::DeployArgs),
    /// The processors there are.
    List {
        /// The modules instead.
        #[arg(short, long)]
        modules: bool,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// How a processor is deployed; of a module, what it says of itself.
    Describe {
        #[arg(value_name = "NAME|SHA256")]
        what: Named,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// What the tasks of a processor are doing.
    Status {
        name: Processor,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Let a processor rest; it keeps its state and its place.
    Pause {
        name: Processor,
    },
    /// Let a processor go on, also one that has stopped by itself.
    Resume {
        name: Processor,
    },
    Logs(logs::LogsArgs),
    /// Delete a processor and its state, or a module that nothing uses. What was written to topics stays.
    Delete {
        #[arg(value_name = "NAME|SHA256")]
        what: Named,
        /// Keep the topic with the processor's state.
        #[arg(long)]
        keep_state: bool,
        #[command(flatten)]
        confirm: ConfirmArgs,
    },
}

/// A processor's name as an argument.
#[derive(Clone, Debug)]
pub(crate) struct Processor(ProcessorName);

impl std::str::FromStr for Processor {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        ProcessorName::new(text)
            .map(Processor)
            .map_err(|error| error.to_string())
    }
}

impl Processor {
    /// Names have no characters that a path would have to escape.
    fn path(&self) -> String {
        format!("/api/v1/processors/{}", self.0)
    }
}

/// Digests are taken for modules, all else for processors.
#[derive(Clone, Debug)]
pub(crate) enum Named {
    Module(Digest),
    Processor(Processor),
}

impl std::str::FromStr for Named {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(digest) => Ok(Named::Module(digest)),
            Err(_) => text.parse().map(Named::Processor),
        }
    }
}

impl Named {
    fn path(&self) -> String {
        match self {
            Named::Module(digest) => format!("/api/v1/modules/{digest}"),
            Named::Processor(name) => name.path(),
        }
    }

    fn shown(&self) -> String {
        match self {
            Named::Module(digest) => format!("module {digest}"),
            Named::Processor(name) => name.0.to_string(),
        }
    }
}

pub(crate) async fn run(timeout: Duration, args: WasmArgs) -> anyhow::Result<()> {
    let door = Door::new(args.door.http, timeout);
    match args.verb {
        Verb::Build(args) => build::run(&args),
        Verb::Upload { module, output } => {
            let uploaded = deploy::upload(&door, &module).await?;
            if output.is_json() {
                return Ok(print_json(&uploaded)?);
            }
            print_line(show::text(&uploaded, "sha256"))?;
            tell(&show::module_line(&uploaded));
            Ok(())
        }
        Verb::Deploy(args) => deploy::run(&door, args).await,
        Verb::List { modules, output } => list(&door, modules, output).await,
        Verb::Describe { what, output } => describe(&door, &what, output).await,
        Verb::Status { name, output } => {
            let status = door.get(&format!("{}/status", name.path())).await?;
            if output.is_json() {
                return Ok(print_json(&status)?);
            }
            print_line(&format!(
                "{}, version {}, {}\n",
                name.0,
                status["version"],
                show::text(&status, "state")
            ))?;
            Ok(show::tasks(&status).print()?)
        }
        Verb::Pause { name } => switch(&door, &name, "pause", "paused").await,
        Verb::Resume { name } => switch(&door, &name, "resume", "resumed").await,
        Verb::Logs(args) => logs::run(&door, args).await,
        Verb::Delete {
            what,
            keep_state,
            confirm,
        } => delete(&door, &what, keep_state, confirm).await,
    }
}

async fn list(door: &Door, modules: bool, output: OutputArgs) -> anyhow::Result<()> {
    let (path, name) = if modules {
        ("/api/v1/modules", "modules")
    } else {
        ("/api/v1/processors", "processors")
    };
    let found = door.get(path).await?;
    let rows = found[name].as_array().map_or(&[][..], Vec::as_slice);
    if output.is_json() {
        return Ok(print_json(&rows.into())?);
    }
    let table = if modules {
        show::modules(rows)
    } else {
        show::processors(rows)
    };
    Ok(table.print()?)
}

async fn describe(door: &Door, what: &Named, output: OutputArgs) -> anyhow::Result<()> {
    let found = door.get(&what.path()).await?;
    if output.is_json() {
        return Ok(print_json(&found)?);
    }
    match what {
        Named::Module(_) => show::module(&found),
        Named::Processor(_) => show::processor(&found),
    }
}

async fn switch(door: &Door, name: &Processor, verb: &str, done: &str) -> anyhow::Result<()> {
    let path = format!("{}/{verb}", name.path());
    door.send(Method::POST, &path, Payload::Json(json!({}))).await?;
    tell(&format!("{} {done}", name.0));
    Ok(())
}

async fn delete(door: &Door, what: &Named, keep_state: bool, confirm: ConfirmArgs) -> anyhow::Result<()> {
    confirm.confirm(&format!("deleting {}", what.shown()))?;
    let path = what.path() + if keep_state { "?keep_state=true" } else { "" };
    door.send(Method::DELETE, &path, Payload::Nothing).await?;
    tell(&format!("{} deleted", what.shown()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_modules_and_other_words_are_processors() {
        let digest = "0f".repeat(32);
        assert!(matches!(digest.parse(), Ok(Named::Module(found)) if found.to_string() == digest));
        assert!(matches!("delays".parse(), Ok(Named::Processor(_))));
        assert!("a/b".parse::<Named>().is_err());
        assert!("__millstream_plugins".parse::<Named>().is_err());
    }
}
