//! `ci [STAGE…]`: everything that CI runs, in the order in which a mistake shows soonest and costs least.
//!
//! Each stage has a time limit that is several times what it needs on two cores with cold caches: it turns a hang into an
//! error and judges nothing. `timeout` also ends what the stage has started.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, bail, ensure};

use crate::{console, root};

struct Stage {
    name: &'static str,
    limit_seconds: u32,
    command: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
}

/// Lets the tests' own build do the lints: as a check of its own, clippy would go through every dependency a second time.
/// This is what `cargo clippy -- --deny warnings` sets, but for the kind of build.
const LINTED: &[(&str, &str)] = &[
    ("RUSTC_WORKSPACE_WRAPPER", "clippy-driver"),
    ("CLIPPY_ARGS", "--deny__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__"),
];

const STAGES: &[Stage] = &[
    Stage {
        name: "format",
        limit_seconds: 60,
        command: &["cargo", "fmt", "--all", "--check"],
        environment: &[],
    },
    Stage {
        name: "set-up",
        limit_seconds: 900,
        command: &["tests/setup"],
        environment: &[],
    },
    // Before all that is compiled, so that the program under test carries it.
    Stage {
        name: "web-ui",
        limit_seconds: 600,
        command: &["web-ui/build/run", "--check"],
        environment: &[],
    },
    Stage {
        name: "lints",
        limit_seconds: 1200,
        command: &["cargo", "build", "--workspace", "--all-targets"],
        environment: LINTED,
    },
    Stage {
        name: "plugins",
        limit_seconds: 900,
        command: &["cargo", "xtask", "plugins"],
        environment: &[],
    },
    Stage {
        name: "tests",
        limit_seconds: 1200,
        command: &["cargo", "test", "--workspace"],
        environment: LINTED,
    },
    Stage {
        name: "build",
        limit_seconds: 1200,
        command: &["cargo", "build", "--release", "--package", "millstream"],
        environment: &[],
    },
    Stage {
        name: "suites",
        limit_seconds: 1200,
        command: &["tests/run"],
        environment: &[],
    },
    Stage {
        name: "wasm-refusals",
        limit_seconds: 300,
        command: &["tests/acceptance/wasm-refusals.py"],
        environment: &[],
    },
    Stage {
        name: "poison",
        limit_seconds: 600,
        command: &["tests/acceptance/poison.py"],
        environment: &[],
    },
    Stage {
        name: "demo",
        limit_seconds: 900,
        // The other variants take minutes more; `cargo xtask accept demo` runs them all.
        command: &["tests/acceptance/demo.py", "--only", "model,plain,changelog"],
        environment: &[],
    },
    Stage {
        name: "restart",
        limit_seconds: 300,
        command: &["tests/acceptance/restart.py"],
        environment: &[],
    },
    Stage {
        name: "processors",
        limit_seconds: 600,
        command: &["tests/acceptance/processors.py"],
        environment: &[],
    },
    Stage {
        name: "retention-keys",
        limit_seconds: 120,
        command: &["tests/acceptance/retention-keys.py"],
        environment: &[],
    },
    Stage {
        name: "compaction",
        limit_seconds: 600,
        // Kafka's tester, and a log of every kind cleaned by both, take minutes: `cargo xtask accept compaction`.
        command: &["tests/acceptance/compaction.py", "--only", "worked"],
        environment: &[],
    },
    Stage {
        name: "kill-9",
        limit_seconds: 300,
        command: &["tests/acceptance/kill9.py", "--rounds", "3"],
        environment: &[],
    },
    Stage {
        name: "crash-sweep",
        limit_seconds: 600,
        // A few calls of each kind while the log does most; `cargo xtask accept crash-sweep` takes them all.
        command: &["tests/acceptance/crash-sweep.py", "--quick", "--scenario", "compaction"],
        environment: &[],
    },
    Stage {
        name: "bit-flips",
        limit_seconds: 600,
        // Ten in each partition once, then groups and the scrubber; `cargo xtask accept bit-flips` makes a thousand.
        command: &["tests/acceptance/bit-flips.py", "--flips", "100"],
        environment: &[],
    },
    Stage {
        name: "fsync-order",
        limit_seconds: 180,
        command: &["tests/acceptance/fsync-order.py"],
        environment: &[],
    },
    Stage {
        name: "hostile-fields",
        limit_seconds: 300,
        command: &["tests/acceptance/hostile-fields.py"],
        environment: &[],
    },
];

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let root = root::path()?;
    for name in arguments {
        if !STAGES.iter().any(|stage| stage.name == name) {
            let names: Vec<&str> = STAGES.iter().map(|stage| stage.name).collect();
            bail!("no stage is called {name}; there are {}", names.join(", "));
        }
    }
    let mut summary = Vec::new();
    for stage in STAGES {
        if !arguments.is_empty() && !arguments.iter().any(|name| name == stage.name) {
            continue;
        }
        let begin = Instant::now();
        run_stage(&root, stage)?;
        summary.push(format!("{} {} s", stage.name, begin.elapsed().as_secs()));
    }
    console::line(&format!("every stage passed: {}", summary.join(", ")));
    Ok(())
}

fn run_stage(root: &Path, stage: &Stage) -> anyhow::Result<()> {
    console::line(&format!("== {}: {}", stage.name, stage.command.join(" ")));
    let status = Command::new("timeout")
        .args(["--kill-after=30", &stage.limit_seconds.to_string()])
        .args(stage.command)
        .envs(stage.environment.iter().copied())
        .current_dir(root)
        .status()
        .with_context(|| format!("start stage {}", stage.name))?;
    ensure!(
        status.code() != Some(124),
        "stage {} took longer than {} s",
        stage.name,
        stage.limit_seconds
    );
    ensure!(status.success(), "stage {} failed: {status}", stage.name);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_stage_is_an_error_that_lists_the_stages() {
        let error = run(&["nonsense".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("nonsense") && error.contains("suites"), "{error}");
    }
}
