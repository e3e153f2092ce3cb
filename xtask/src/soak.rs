//! `soak log [--seeds N] [--from S]`: the simulations of storage on a simulated disk, over many more seeds than the tests
//! take, optimised. Says how far it is, and each failing seed as a line that runs it again.
//!
//! A simulation is a test that takes its seeds from `tests/support/seeds.rs`; [`SIMULATIONS`] has all of them.

use std::process::{Command, Output};
use std::time::Instant;

use anyhow::{Context, bail, ensure};

use crate::{console, root};

/// A file of `server/storage/tests`, and those of its tests that run seeds.
struct Simulation {
    file: &'static str,
    tests: &'static [&'static str],
}

const SIMULATIONS: &[Simulation] = &[
    Simulation {
        file: "crash_simulation",
        tests: &[
            "what_was_synced_survives_every_crash_and_no_log_is_given_up",
            "what_was_synced_survives_even_if_the_disk_writes_in_any_order",
        ],
    },
    Simulation {
        file: "relocation_simulation",
        tests: &[
            "exactly_one_folder_is_the_log_after_every_loss_of_power",
            "exactly_one_folder_is_the_log_when_one_of_two_disks_fails",
        ],
    },
    Simulation {
        file: "compaction_simulation",
        tests: &["the_last_of_each_key_survives_every_crash_and_nothing_comes_back"],
    },
    Simulation {
        file: "damage_simulation",
        tests: &["a_flipped_bit_takes_nothing_but_the_batch_that_it_hit"],
    },
];

const SEEDS: u64 = 20_000;
/// Between two lines of progress.
const SEEDS_AT_ONCE: u64 = 500;
/// Then it is told no further.
const FAILURES_MAX: usize = 20;
const FAILED: &str = "failed with STORAGE_SEED=";

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let (from, count) = parse(arguments)?;
    let build = ["test", "--release", "--quiet", "--package", "storage", "--no-run"];
    let files = SIMULATIONS.iter().flat_map(|simulation| ["--test", simulation.file]);
    let status = Command::new("cargo")
        .args(build.into_iter().chain(files))
        .current_dir(root::path()?)
        .status()
        .context("build the simulations")?;
    ensure!(status.success(), "build the simulations: {status}");
    let mut failures = Vec::new();
    for simulation in SIMULATIONS {
        for test in simulation.tests {
            soak(simulation.file, test, from, from + count, &mut failures)?;
        }
    }
    for line in &failures {
        console::error(line);
    }
    ensure!(failures.is_empty(), "{} seeds failed", failures.len());
    Ok(())
}

/// The first seed, and how many.
fn parse(arguments: &[String]) -> anyhow::Result<(u64, u64)> {
    let Some(("log", options)) = arguments.split_first().map(|(name, rest)| (name.as_str(), rest)) else {
        bail!("say what to soak: `soak log [--seeds N] [--from S]`");
    };
    let (mut from, mut count) = (0, SEEDS);
    for pair in options.chunks(2) {
        let [name, value] = pair else {
            bail!("{} needs a number", pair[0]);
        };
        let number = value.parse().with_context(|| format!("{name} {value}"))?;
        match name.as_str() {
            "--seeds" => count = number,
            "--from" => from = number,
            _ => bail!("no option is called {name}; there are --seeds and --from"),
        }
    }
    ensure!(from.checked_add(count).is_some(), "there are no seeds that large");
    Ok((from, count))
}

/// Runs one simulation; after a seed that fails it goes on with the next.
fn soak(file: &str, test: &str, from: u64, to: u64, failures: &mut Vec<String>) -> anyhow::Result<()> {
    console::line(&format!("{file}: {test}"));
    let begin = Instant::now();
    let failed_before = failures.len();
    let mut next = from;
    while next < to {
        let end = to.min(next + SEEDS_AT_ONCE);
        let output = run_seeds(file, test, &format!("{next}..{end}"))?;
        if output.status.success() {
            next = end;
        } else {
            let Some(seed) = failed_seed(&output) else {
                bail!("{test}:\n{}", text(&output));
            };
            let again = format!("STORAGE_SEED={seed} cargo test --release --package storage --test {file} {test}");
            console::error(&again);
            failures.push(again);
            ensure!(failures.len() < FAILURES_MAX, "{FAILURES_MAX} seeds failed");
            next = seed + 1;
        }
        let (done, failed) = (next - from, failures.len() - failed_before);
        console::line(&format!(
            "  {done} of {} seeds, {failed} failed, {} s",
            to - from,
            begin.elapsed().as_secs()
        ));
    }
    Ok(())
}

fn run_seeds(file: &str, test: &str, seeds: &str) -> anyhow::Result<Output> {
    Command::new("cargo")
        .args(["test", "--release", "--quiet", "--package", "storage", "--test", file])
        .args(["--", "--exact", test])
        .env("STORAGE_SEEDS", seeds)
        .env_remove("STORAGE_SEED")
        .current_dir(root::path()?)
        .output()
        .with_context(|| format!("run {test}"))
}

fn failed_seed(output: &Output) -> Option<u64> {
    let text = text(output);
    let (_, behind) = text.split_once(FAILED)?;
    behind.lines().next()?.trim().parse().ok()
}

fn text(output: &Output) -> String {
    let part = String::from_utf8_lossy;
    format!("{}{}", part(&output.stdout), part(&output.stderr))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOLDER: &str = "server/storage/tests";
    /// So many at least are run by each `make test`, on all simulated disks of storage together.
    const SEEDS_IN_TESTS_MIN: u64 = 500;

    fn source(file: &str) -> String {
        let path = root::path().unwrap().join(FOLDER).join(file);
        std::fs::read_to_string(path).unwrap()
    }

    #[test]
    fn every_test_that_runs_seeds_is_a_simulation_here() {
        for entry in std::fs::read_dir(root::path().unwrap().join(FOLDER)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if let Some(file) = name.strip_suffix(".rs")
                && source(&name).contains("mod seeds;")
            {
                assert!(SIMULATIONS.iter().any(|known| known.file == file), "{name}");
            }
        }
        for simulation in SIMULATIONS {
            let text = source(&format!("{}.rs", simulation.file));
            for test in simulation.tests {
                assert!(text.contains(&format!("fn {test}()")), "{test}");
            }
        }
    }

    #[test]
    fn the_tests_run_several_hundred_seeds() {
        let of = |simulation: &Simulation| {
            let text = source(&format!("{}.rs", simulation.file));
            let (_, behind) = text.split_once("const SEEDS: u64 = ").unwrap();
            let seeds: u64 = behind.split_once(';').unwrap().0.parse().unwrap();
            seeds * simulation.tests.len() as u64
        };
        let seeds: u64 = SIMULATIONS.iter().map(of).sum();
        assert!(seeds >= SEEDS_IN_TESTS_MIN, "{seeds} seeds");
    }

    #[test]
    fn the_arguments_say_which_seeds() {
        let parsed = |text: &str| {
            let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            parse(&words).map_err(|error| error.to_string())
        };
        assert_eq!(parsed("log"), Ok((0, SEEDS)));
        assert_eq!(parsed("log --from 7 --seeds 3"), Ok((7, 3)));
        for wrong in ["", "disk", "log --seeds", "log --seeds x", "log --till 3"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_seed_that_failed_is_found_in_what_a_test_says() {
        let output = Output {
            status: std::process::ExitStatus::default(),
            stdout: b"running 1 test\n".to_vec(),
            stderr: b"thread panicked\nfailed with STORAGE_SEED=1234\nmore\n".to_vec(),
        };
        assert_eq!(failed_seed(&output), Some(1234));
    }
}
