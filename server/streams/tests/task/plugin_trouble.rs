//! Plugins that trap, fail, lie or grow too much: the bad row leaves, the rest goes on.

use std::sync::{Arc, Mutex};

use plugin::{CallError, Failure, FiringReason, Trap, TrapKind};
use streams::{DeadLetterSource, Emit, InvalidTimestamps, Task, TaskOptions, TaskState, Tumbling, Windows};

use crate::doubles::{Conduct, Event, Listing, Shell, Wishes, event, feed, restore, retry};

fn options(emit: Emit) -> TaskOptions {
    TaskOptions::new(Windows::Tumbling(Tumbling::new(10).unwrap()), 0, emit).unwrap()
}

fn task(options: &TaskOptions) -> (Task, Arc<Mutex<Wishes>>, Shell) {
    let wishes = Arc::default();
    (
        restore(options, Listing::wishing(&wishes), vec![]),
        wishes,
        Shell::default(),
    )
}

/// All in one window.
fn rows(count: usize, bad: &[usize], conduct: Conduct) -> Vec<Event> {
    let conduct = |index| if bad.contains(&index) { conduct } else { Conduct::Fold };
    (0..count)
        .map(|index| Event {
            conduct: conduct(index),
            ..event("k", 5)
        })
        .collect()
}

#[test]
fn of_512_rows_with_one_poison_row_511_leave() {
    for conduct in [Conduct::Trap, Conduct::Interrupt, Conduct::Reject] {
        for bad in [0, 311, 511] {
            let (mut task, _, mut shell) = task(&options(Emit::Update));
            feed(&mut task, &rows(512, &[bad], conduct), &mut shell);
            assert_eq!(shell.results.len(), 511, "{conduct:?} at {bad}");
            assert_eq!(shell.dead.len(), 1);
            assert_eq!(shell.dead[0].source, DeadLetterSource::Row(crate::doubles::offset(bad)));
            assert_eq!(shell.dead[0].value.as_deref(), Some(conduct.value()));
            assert!(
                shell.dead[0].reason.contains(&bad.to_string()),
                "{}",
                shell.dead[0].reason
            );
            assert_eq!(task.position(), crate::doubles::offset(512));
            assert_eq!(*task.state(), TaskState::Running);
            // 512 is halved nine times, and an interrupted row alone is tried twice.
            assert!(task.calls().traps <= 11, "{:?}", task.calls());
        }
    }
}

#[test]
fn an_interrupted_row_that_passes_the_second_time_is_not_poison() {
    let interrupted = || Some(CallError::Trap(Trap::new(TrapKind::Interrupted, "the machine is busy")));
    let (mut task, wishes, mut shell) = task(&options(Emit::Update));
    wishes.lock().unwrap().failures = vec![interrupted()];
    feed(&mut task, &rows(1, &[], Conduct::Fold), &mut shell);
    assert_eq!((shell.results.len(), shell.dead.len()), (1, 0));
    wishes.lock().unwrap().failures = vec![interrupted(), interrupted()];
    feed(&mut task, &rows(2, &[], Conduct::Fold), &mut shell);
    assert_eq!((shell.results.len(), shell.dead.len()), (1, 1));
}

#[test]
fn many_poison_rows_slow_the_task_down_and_do_not_stop_it() {
    let bad: Vec<usize> = (0..512).step_by(8).collect();
    let events = rows(512, &bad, Conduct::Trap);
    let (mut task, _, mut shell) = task(&options(Emit::Update));
    for _ in 0..20 {
        feed(&mut task, &events, &mut shell);
        assert_eq!(shell.stopped, None);
    }
    assert!(!shell.back_offs.is_empty(), "the budget was never spent");
    assert_eq!(shell.dead.len(), bad.len());
    assert_eq!(shell.results.len(), 512 - bad.len());
}

#[test]
fn a_plugin_that_traps_at_every_call_stops_the_task() {
    let all: Vec<usize> = (0..512).collect();
    let (mut task, _, mut shell) = task(&options(Emit::Update));
    feed(&mut task, &rows(512, &all, Conduct::Trap), &mut shell);
    assert!(
        shell.stopped.as_ref().unwrap().contains("every call"),
        "{:?}",
        shell.stopped
    );
    assert!(task.calls().traps <= u64::from(task.options().limits.traps_per_step));
    let before = task.calls();
    feed(&mut task, &rows(512, &all, Conduct::Trap), &mut shell);
    assert_eq!(task.calls(), before, "a stopped task calls nobody");
}

#[test]
fn a_retry_waits_longer_each_time_and_then_stops() {
    let (mut task, wishes, mut shell) = task(&options(Emit::Update));
    let events = rows(3, &[], Conduct::Fold);
    wishes.lock().unwrap().failures = vec![retry(), retry()];
    for _ in 0..3 {
        feed(&mut task, &events, &mut shell);
    }
    assert_eq!(shell.back_offs, [100, 200]);
    assert_eq!(
        (shell.results.len(), shell.commits),
        (3, 1),
        "a failed call commits nothing"
    );
    wishes.lock().unwrap().failures = (0..6).map(|_| retry()).collect();
    let events = rows(6, &[], Conduct::Fold);
    for _ in 0..6 {
        feed(&mut task, &events, &mut shell);
    }
    assert_eq!(
        shell.back_offs[2..],
        [100, 200, 400, 800, 1_600],
        "the count begins anew after a success"
    );
    assert!(shell.stopped.unwrap().contains("not now"));
    assert_eq!(shell.results.len(), 3);
}

#[test]
fn a_retry_after_progress_is_the_first_again() {
    let mut options = options(Emit::Update);
    options.limits.rows_per_call = 1;
    let (mut task, wishes, mut shell) = task(&options);
    wishes.lock().unwrap().failures = (0..10).flat_map(|_| [None, retry()]).collect();
    for _ in 0..11 {
        feed(&mut task, &rows(12, &[], Conduct::Fold), &mut shell);
    }
    assert_eq!(shell.back_offs, [100; 10]);
    assert_eq!((shell.results.len(), shell.stopped), (12, None));
}

#[test]
fn a_fatal_failure_stops_the_task_after_what_came_before() {
    let mut options = options(Emit::Update);
    options.limits.rows_per_call = 2;
    let (mut task, wishes, mut shell) = task(&options);
    feed(&mut task, &rows(2, &[], Conduct::Fold), &mut shell);
    wishes.lock().unwrap().failures = vec![Some(Failure::Fatal("no".into()).into())];
    feed(&mut task, &rows(6, &[], Conduct::Fold), &mut shell);
    assert_eq!(shell.stopped.as_deref(), Some("no"));
    assert_eq!(shell.results.len(), 2);
    assert_eq!(
        restore(&options, Box::default(), shell.changelog).position(),
        crate::doubles::offset(2)
    );
}

#[test]
fn a_window_at_whose_result_the_plugin_traps_is_a_dead_letter() {
    let events: Vec<Event> = (0..40).map(|index| event("k", index)).collect();
    let (mut task, wishes, mut shell) = task(&options(Emit::Final));
    wishes.lock().unwrap().trap_at_firing = vec![10];
    feed(&mut task, &events, &mut shell);
    let starts: Vec<i64> = shell.results.iter().map(|seen| seen.start).collect();
    assert_eq!(starts, [0, 20]);
    assert_eq!(shell.dead.len(), 1);
    assert!(matches!(shell.dead[0].source, DeadLetterSource::Window(window) if window.start.millis() == 10));
    assert_eq!(
        shell.dead[0].value.as_deref(),
        Some(&b"10,11,12,13,14,15,16,17,18,19"[..])
    );
    assert_eq!(task.counters().rejected, 1);
}

#[test]
fn a_row_at_whose_update_the_plugin_traps_is_not_folded() {
    let (mut task, wishes, mut shell) = task(&options(Emit::Update));
    wishes.lock().unwrap().trap_at_firing = vec![10];
    feed(
        &mut task,
        &[event("k", 1), event("k", 11), event("k", 2), event("k", 21)],
        &mut shell,
    );
    assert_eq!(shell.dead_rows(), [1]);
    let rows: Vec<_> = shell
        .results
        .iter()
        .map(|seen| (seen.start, seen.rows.as_str()))
        .collect();
    // The row at 11 moved stream time all the same, so the one at 2 is late.
    assert_eq!(rows, [(0, "0"), (20, "3")]);
}

#[test]
fn an_answer_of_the_wrong_length_is_a_trap() {
    let (mut task, wishes, mut shell) = task(&options(Emit::Update));
    wishes.lock().unwrap().short_answer = true;
    feed(&mut task, &rows(2, &[], Conduct::Fold), &mut shell);
    assert_eq!(shell.dead_rows(), [0, 1]);
    assert!(shell.dead[0].reason.contains("accs"), "{}", shell.dead[0].reason);
}

#[test]
fn results_without_origins_belong_to_the_firings_in_order_or_to_none() {
    let (mut task, wishes, mut shell) = task(&options(Emit::Update));
    wishes.lock().unwrap().no_origins = true;
    feed(&mut task, &rows(2, &[], Conduct::Fold), &mut shell);
    assert_eq!(shell.results.len(), 2);
    wishes.lock().unwrap().skip_first = true;
    feed(&mut task, &rows(4, &[], Conduct::Fold), &mut shell);
    assert_eq!(shell.results.len(), 2, "nobody can tell which firing had no result");
    assert!(shell.stopped.is_none());
    wishes.lock().unwrap().no_origins = false;
    feed(&mut task, &rows(6, &[], Conduct::Fold), &mut shell);
    assert_eq!(shell.results.len(), 3, "with origins a plugin may give no result");
}

#[test]
fn a_window_that_outgrows_a_commit_takes_no_more_rows() {
    let mut options = options(Emit::Final);
    options.limits.commit_bytes = 120;
    let (mut task, _, mut shell) = task(&options);
    feed(&mut task, &rows(100, &[], Conduct::Fold), &mut shell);
    assert!(!shell.dead.is_empty());
    assert!(
        shell.dead[0].reason.contains("the limit is 120"),
        "{}",
        shell.dead[0].reason
    );
    let pane = &task.panes(None, 2).unwrap()[0];
    assert!(pane.accumulator.starts_with(b"0,1,2,3,4,5,6,7,8,9"));
    assert_eq!(task.counters().processed, 100);
}

#[test]
fn a_row_that_is_too_large_has_moved_stream_time() {
    let mut options = options(Emit::Final);
    options.limits.commit_bytes = 60;
    let (mut task, _, mut shell) = task(&options);
    let big: &str = "a key that is too large for the commit";
    feed(&mut task, &[event("k", 1), event(big, 12), event("k", 2)], &mut shell);
    assert_eq!(shell.dead_rows(), [1]);
    assert_eq!(shell.results.len(), 1, "the row at 12 closed the window");
    assert_eq!(shell.refused_rows(), [(2, 1)]);
}

#[test]
fn a_call_brings_no_more_accumulators_than_it_may() {
    let mut options = options(Emit::Update);
    options.limits.call_bytes = 12;
    let (mut task, wishes, mut shell) = task(&options);
    let keys = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let events: Vec<Event> = (0..64).map(|index| event(keys[index % 8], 5)).collect();
    for end in [8, 24, 64] {
        feed(&mut task, &events[..end], &mut shell);
    }
    assert_eq!((shell.results.len(), shell.dead.len()), (64, 0));
    // A single row may bring more: the last ones alone hold lists of twenty bytes.
    let brought = &wishes.lock().unwrap().accumulator_bytes;
    assert!(brought.iter().max().unwrap() < &25, "{brought:?}");
}

#[test]
fn many_windows_that_close_at_once_fill_several_commits() {
    let keys = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let mut events: Vec<Event> = keys.map(|key| event(key, 5)).to_vec();
    events.push(event("z", 15));
    for (emit, results) in [(Emit::Update, 9), (Emit::Final, 8)] {
        let mut options = options(emit);
        options.limits.commit_bytes = 100;
        let (mut task, _, mut shell) = task(&options);
        let mut effects = Vec::new();
        task.on_rows(
            &crate::doubles::batch(&events, 0, 9),
            crate::doubles::offset(9),
            &mut effects,
        );
        for effect in &effects {
            let streams::Effect::Commit(commit) = effect else {
                panic!("{effect:?}")
            };
            let bytes: usize = commit.changelog[1..]
                .iter()
                .map(streams::ChangelogRecord::size_bytes)
                .sum();
            assert!(bytes <= 100, "{bytes}");
        }
        shell.execute(effects);
        assert_eq!(shell.results.len(), results);
        assert_eq!(shell.compacted().len(), 2, "progress and the pane that is open");
    }
}

#[test]
fn a_commit_ends_when_it_holds_enough_results() {
    let mut options = options(Emit::Update);
    options.limits.rows_per_call = 1;
    options.limits.results_bytes = 100;
    let (mut task, _, mut shell) = task(&options);
    feed(&mut task, &rows(10, &[], Conduct::Fold), &mut shell);
    assert_eq!(shell.results.len(), 10);
    assert!(
        (4..=6).contains(&shell.commits),
        "a result takes about 50 bytes: {} commits",
        shell.commits
    );
}

#[test]
fn a_firing_says_whether_its_window_has_ended() {
    let mut options = TaskOptions::new(Windows::Tumbling(Tumbling::new(10).unwrap()), 5, Emit::Update).unwrap();
    let events = [event("k", 5), event("k", 12), event("k", 6), event("k", 20)];
    let (mut task, wishes, mut shell) = task(&options);
    feed(&mut task, &events, &mut shell);
    assert_eq!(
        wishes.lock().unwrap().reasons,
        [
            FiringReason::Early,
            FiringReason::Early,
            FiringReason::Late,
            FiringReason::Early
        ]
    );
    options.emit = Emit::Final;
    let (mut task, wishes, mut shell) = self::task(&options);
    feed(&mut task, &events, &mut shell);
    assert_eq!(wishes.lock().unwrap().reasons, [FiringReason::OnTime]);
}

#[test]
fn a_result_too_large_for_a_record_is_a_dead_letter() {
    let mut options = options(Emit::Final);
    options.limits.result_bytes = 60;
    let (mut task, _, mut shell) = task(&options);
    let mut events = rows(100, &[], Conduct::Fold);
    events.push(event("k", 15));
    events.push(event("k", 25));
    feed(&mut task, &events, &mut shell);
    assert_eq!(shell.results.iter().map(|seen| seen.start).collect::<Vec<_>>(), [10]);
    assert!(matches!(shell.dead[0].source, DeadLetterSource::Window(window) if window.start.millis() == 0));
    options.emit = Emit::Update;
    let (mut task, _, mut shell) = self::task(&options);
    feed(&mut task, &rows(30, &[], Conduct::Fold), &mut shell);
    assert_eq!(shell.results.len() + shell.dead.len(), 30);
    assert!(shell.dead.len() > 5);
}

#[test]
fn an_invalid_time_stops_the_task_at_its_row_if_that_is_asked_for() {
    let mut options = options(Emit::Update);
    options.invalid_timestamps = InvalidTimestamps::Stop;
    let (mut task, _, mut shell) = task(&options);
    let events = [event("k", 1), event("k", 2), event("k", -1), event("k", 3)];
    feed(&mut task, &events, &mut shell);
    assert!(shell.stopped.unwrap().contains("offset 2"));
    assert_eq!(shell.results.len(), 2);
    assert_eq!(task.position(), crate::doubles::offset(2));
}
