//! Guests that misbehave when they start, when they give results, and between calls.

use bytes::Bytes;
use model::Timestamp;
use plugin::host::ModuleError;
use plugin::{
    CallError, Firing, FiringReason, Output, OutputBounds, Pane, Trap, TrapKind, Window, WindowAggregator, logs,
    measurements,
};

use crate::fixtures::{aggregator, module, prompt_settings, rows, settings};

const WINDOW: Window = Window {
    start: Timestamp::from_millis(0),
    end: Timestamp::from_millis(10),
};

/// Only who loops is given a deadline.
fn evil(wish: &str, config: &[(&str, &str)]) -> Box<dyn WindowAggregator> {
    let settings = if wish == "loop" {
        prompt_settings(config)
    } else {
        settings(config)
    };
    module("evil").window_aggregator(settings).expect("the instance starts")
}

fn count(guest: &mut dyn WindowAggregator, wish: &str) -> Result<u64, CallError> {
    let pane = Pane {
        window: WINDOW,
        key: Bytes::from_static(b"k"),
        accumulator: None,
        rows: vec![0, 1],
        each: false,
    };
    let answer = guest.accumulate(&rows(&["count", wish]), &[pane])?;
    let count: [u8; 8] = answer.accumulators[0][..].try_into().expect("eight bytes");
    Ok(u64::from_le_bytes(count))
}

fn fire(guest: &mut dyn WindowAggregator) -> Result<usize, CallError> {
    let firing = Firing {
        window: WINDOW,
        key: Bytes::from_static(b"k"),
        accumulator: Bytes::from_static(&[1; 8]),
        timestamp: Timestamp::from_millis(5),
        reason: FiringReason::OnTime,
    };
    let mut output = Output::new(OutputBounds { outputs: 1, origins: 2 });
    guest.fire(&[firing.clone(), firing], &mut output)?;
    Ok(output.rows().len())
}

fn trap(answer: Result<impl std::fmt::Debug, CallError>) -> Trap {
    match answer {
        Err(CallError::Trap(trap)) => trap,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_end_of_a_call_has_its_kind() {
    for (wish, kind) in [
        ("trap", TrapKind::Fault),
        ("stack", TrapKind::Fault),
        ("loop", TrapKind::Interrupted),
        ("memory", TrapKind::Memory),
        ("short", TrapKind::BadReply),
        ("emit", TrapKind::BadReply),
    ] {
        let mut guest = evil(wish, &[]);
        let trap = trap(count(&mut *guest, wish));
        assert_eq!(trap.kind, kind, "{wish}: {trap}");
        assert_eq!(
            count(&mut *guest, "count"),
            Ok(2),
            "the next call has a new instance after {wish}"
        );
    }
}

#[test]
fn the_reason_of_a_trap_names_functions_of_the_guest() {
    let reason = trap(count(&mut *aggregator("evil", &[]), "trap because")).reason;
    assert!(
        reason.contains("asked to: because") && reason.contains("accumulate"),
        "{reason}"
    );
    assert!(reason.len() <= plugin::error::REASON_BYTES_MAX);
}

#[test]
fn results_that_break_the_interface_are_bad_replies() {
    for (wish, reason) in [
        ("spans", "leaves the arena"),
        ("uneven", "column spans has 3 entries"),
        ("origins", "entry 0 of origins is 2, the limit is 2"),
        ("large", "bytes in one call"),
        ("forward", "no input rows"),
        ("trap", "asked to"),
        ("loop", "more than 100 ms"),
    ] {
        let mut guest = evil(wish, &[("fire", wish)]);
        for _ in 0..2 {
            let trap = trap(fire(&mut *guest));
            assert!(trap.reason.contains(reason), "{wish}: {trap}");
        }
        assert_eq!(count(&mut *guest, "count"), Ok(2));
    }
    assert_eq!(fire(&mut *aggregator("evil", &[])), Ok(2));
}

#[test]
fn an_instance_that_does_not_start_says_why() {
    for (wish, reason) in [
        ("refuse", "init: asked to refuse"),
        ("trap why", "asked to: why"),
        ("loop", "more than 1000 ms"),
        ("memory", "the limit is 67108864"),
    ] {
        let started = module("evil").window_aggregator(settings(&[("start", wish)])).map(drop);
        let Err(ModuleError::Start(text)) = started else {
            panic!("{wish}: {started:?}");
        };
        assert!(text.contains(reason), "{wish}: {text}");
    }
}

#[test]
fn memory_that_a_guest_hoards_is_taken_back_between_calls() {
    let mut guest = aggregator("evil", &[]);
    for _ in 0..5 {
        assert_eq!(count(&mut *guest, "hoard 45"), Ok(2));
    }
    // Less than 60 % of the limit is kept from call to call, so the third time it is too much.
    let hoards = [10, 20, 40].map(|mebibytes| count(&mut *guest, &format!("hoard {mebibytes}")).is_ok());
    assert_eq!(hoards, [true, true, false]);
}

#[test]
fn a_smaller_memory_can_be_asked_for() {
    let mut settings = settings(&[]);
    settings.limits.memory_bytes = 8 << 20;
    let mut guest = module("evil").window_aggregator(settings).unwrap();
    assert_eq!(trap(count(&mut *guest, "hoard 9")).kind, TrapKind::Memory);
    assert_eq!(count(&mut *guest, "hoard 1"), Ok(2));
}

#[test]
fn a_flood_of_messages_and_series_is_bounded() {
    let settings = settings(&[]);
    let (logs, measurements) = (settings.logs.clone(), settings.measurements.clone());
    let mut guest = module("evil").window_aggregator(settings).unwrap();
    for wish in ["flood", "shout", "fields", "series"] {
        assert_eq!(count(&mut *guest, wish), Ok(2));
    }
    let bytes: usize = logs
        .entries(0, usize::MAX)
        .iter()
        .map(|entry| entry.message.len())
        .sum();
    assert!((1_000..=logs::KEPT_BYTES_MAX).contains(&bytes), "{bytes}");
    assert!(logs.left_out() > 0);
    assert!(measurements.series().len() <= measurements::SERIES_MAX);
}
