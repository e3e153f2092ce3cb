//! Windows worked out by hand: events at 0, 3, 5, 9, 10 and 14 s, and one at 4 s that comes last.

use streams::{Emit, Hopping, TaskOptions, Tumbling, Windows};

use crate::doubles::{Event, Listing, Shell, event, feed, restore};

fn events() -> Vec<Event> {
    [0, 3, 5, 9, 10, 14].map(|second| event("k", second * 1_000)).to_vec()
}

/// How many rows each window holds, by its start in seconds.
fn counts(windows: Windows, grace_ms: i64, emit: Emit, events: &[Event]) -> (Vec<(i64, usize)>, Shell) {
    let options = TaskOptions::new(windows, grace_ms, emit).unwrap();
    let mut task = restore(&options, Box::<Listing>::default(), vec![]);
    let mut shell = Shell::default();
    feed(&mut task, events, &mut shell);
    let mut counts: Vec<(i64, usize)> = Vec::new();
    for seen in &shell.results {
        let (start, rows) = (seen.start / 1_000, seen.rows.split(',').count());
        match counts.iter_mut().find(|(known, _)| *known == start) {
            Some(count) => count.1 = rows,
            None => counts.push((start, rows)),
        }
    }
    counts.sort_unstable();
    (counts, shell)
}

fn tumbling() -> Windows {
    Windows::Tumbling(Tumbling::new(5_000).unwrap())
}

fn hopping() -> Windows {
    Windows::Hopping(Hopping::new(5_000, 2_000).unwrap())
}

#[test]
fn tumbling_windows_hold_two_each() {
    let (counts, shell) = counts(tumbling(), 0, Emit::Update, &events());
    assert_eq!(counts, [(0, 2), (5, 2), (10, 2)]);
    assert_eq!(shell.results.len(), 6, "a result after every row");
    assert_eq!(shell.commits, 1, "one call, one commit");
}

#[test]
fn hopping_windows_overlap() {
    let (counts, _) = counts(hopping(), 0, Emit::Update, &events());
    assert_eq!(
        counts,
        [(0, 2), (2, 2), (4, 1), (6, 2), (8, 2), (10, 2), (12, 1), (14, 1)]
    );
}

#[test]
fn only_windows_whose_end_and_grace_have_passed_are_final() {
    assert_eq!(counts(tumbling(), 0, Emit::Final, &events()).0, [(0, 2), (5, 2)]);
    assert_eq!(counts(tumbling(), 5_000, Emit::Final, &events()).0, [(0, 2)]);
    assert_eq!(
        counts(hopping(), 1_000, Emit::Final, &events()).0,
        [(0, 2), (2, 2), (4, 1), (6, 2), (8, 2)]
    );
}

#[test]
fn a_late_event_counts_within_the_grace_and_is_dropped_beyond_it() {
    let mut events = events();
    events.push(event("k", 4_000));
    let (within, shell) = counts(tumbling(), 10_000, Emit::Update, &events);
    assert_eq!(within, [(0, 3), (5, 2), (10, 2)]);
    assert_eq!(shell.refused_rows(), []);
    let (beyond, shell) = counts(tumbling(), 9_000, Emit::Update, &events);
    assert_eq!(beyond, [(0, 2), (5, 2), (10, 2)]);
    assert_eq!(shell.refused_rows(), [(6, 1)]);
    // Hopping: the event at 4 s is in the windows from 0, 2 and 4 s; at 14 s with 6 s of grace the first two are closed.
    let (partly, shell) = counts(hopping(), 6_000, Emit::Update, &events);
    assert_eq!(partly[..3], [(0, 2), (2, 2), (4, 2)]);
    assert_eq!(shell.refused_rows(), [(6, 2)]);
}

#[test]
fn a_result_tells_its_window_and_the_greatest_time_in_it() {
    let events = [event("k", 4_000), event("k", 1_000), event("k", 20_000)];
    let (_, shell) = counts(tumbling(), 0, Emit::Final, &events);
    let seen = &shell.results[0];
    assert_eq!((seen.start, seen.end, seen.kind.as_str()), (0, 5_000, "final"));
    assert_eq!(
        (seen.key.as_str(), seen.rows.as_str(), seen.timestamp),
        ("k", "0,1", 4_000)
    );
    assert_eq!(counts(tumbling(), 0, Emit::Update, &events).1.results[0].kind, "update");
}
