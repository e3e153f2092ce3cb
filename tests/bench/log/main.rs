//! What one partition's log costs by itself: no broker, no socket, one thread, the machine's disk.
//!
//! `log-bench --directory DIR [--once NAME] [--quick] [--json]` runs all benches, or one, and prints a line for each:
//! bytes and calls a second, and the CPU time of the process, user and system, for a GiB and for a call.
//!
//! - Logs that are only read are made once in DIR and left there. So a second run with `--once` does little else, and can
//!   be run under perf or valgrind.
//! - Each bench checks what it got: a log that answers wrongly ends the program.
#![allow(clippy::print_stdout, reason = "it prints what it measured")]
#![allow(
    clippy::disallowed_methods,
    reason = "measuring takes clocks; the log itself gets its time as an argument"
)]

mod benches;
mod logs;

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use benches::{BENCHES, Work};
use logs::Place;

const USAGE: &str = "usage: log-bench --directory DIR [--once NAME] [--quick] [--json]";
const GIB: u64 = 1 << 30;
const MIB: f64 = (1 << 20) as f64;
/// Of a full run's data and calls, a quick one takes so little: to try the program, not to quote.
const QUICK_DIVISOR: u64 = 16;

struct Arguments {
    directory: PathBuf,
    once: Option<String>,
    quick: bool,
    json: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = arguments()?;
    std::fs::create_dir_all(&arguments.directory)?;
    let divisor = if arguments.quick { QUICK_DIVISOR } else { 1 };
    let place = Place::new(arguments.directory, GIB / divisor, arguments.once.is_none());
    let wanted: Vec<_> = BENCHES
        .iter()
        .filter(|bench| arguments.once.as_ref().is_none_or(|name| name == bench.name))
        .collect();
    if wanted.is_empty() {
        let names: Vec<&str> = BENCHES.iter().map(|bench| bench.name).collect();
        return Err(format!("{USAGE}\nNAME is one of {}", names.join(", ")).into());
    }
    for bench in wanted {
        let mut clock = Clock::default();
        let work = (bench.run)(&place, divisor, &mut clock)?;
        println!("{}", clock.line(bench.name, work, arguments.json));
    }
    Ok(())
}

fn arguments() -> Result<Arguments, String> {
    let (mut directory, mut once, mut quick, mut json) = (None, None, false, false);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--directory" => directory = words.next().map(PathBuf::from),
            "--once" => once = Some(words.next().ok_or(USAGE)?),
            "--quick" => quick = true,
            "--json" => json = true,
            _ => return Err(USAGE.to_owned()),
        }
    }
    Ok(Arguments {
        directory: directory.ok_or(USAGE)?,
        once,
        quick,
        json,
    })
}

/// The time of the part that is measured; what comes before and after is not in it.
#[derive(Default)]
struct Clock {
    wall_seconds: f64,
    cpu_seconds: f64,
}

impl Clock {
    fn measure<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let (wall, cpu) = (Instant::now(), cpu_seconds());
        let result = work();
        self.cpu_seconds += cpu_seconds() - cpu;
        self.wall_seconds += wall.elapsed().as_secs_f64();
        result
    }

    fn line(&self, name: &str, work: Work, json: bool) -> String {
        let (bytes, calls) = (work.bytes as f64, work.calls as f64);
        let (wall, cpu) = (self.wall_seconds, self.cpu_seconds);
        if json {
            return format!(
                r#"{{"name": "{name}", "bytes": {bytes}, "calls": {calls}, "wall_seconds": {wall}, "cpu_seconds": {cpu}}}"#
            );
        }
        let of_bytes = match work.bytes {
            0 => String::new(),
            _ => format!(
                "{:.0} MiB/s, {:.3} CPU s/GiB",
                bytes / MIB / wall,
                cpu / (bytes / GIB as f64)
            ),
        };
        let of_calls = format!("{:.0} calls/s, {:.2} CPU µs/call", calls / wall, cpu / calls * 1e6);
        format!("{name:<20} {of_bytes:<32} {of_calls}")
    }
}

/// The time that this thread, the only one, has been on a processor: what the kernel keeps of it in nanoseconds. Read as a
/// file, because older valgrinds end a program that looks for the kernel's clocks by itself.
fn cpu_seconds() -> f64 {
    // Brings the kernel's count up to date.
    std::thread::yield_now();
    let counted = std::fs::read_to_string("/proc/self/schedstat").expect("Linux counts how long threads run");
    let nanoseconds = counted.split(' ').next().and_then(|first| first.parse::<u64>().ok());
    nanoseconds.expect("it begins with nanoseconds") as f64 / 1e9
}
