//! Whatever comes in, however it is cut, wherever the task dies: what was committed is what the rules say.

use std::collections::BTreeSet;

use model::Timestamp;
use plugin::Batch;
use proptest::prelude::*;
use streams::{ChangelogRecord, Effect, Emit, Hopping, Limits, TaskEpoch, TaskOptions, TaskState, Tumbling, Windows};

use crate::doubles::{Conduct, Event, Listing, Seen, Shell, batch, offset, restore};
use crate::oracle::{Expected, Rules, expected};

fn any_event() -> impl Strategy<Value = Event> {
    let key = prop_oneof![8 => Just(Some("a")), 6 => Just(Some("b")), 3 => Just(Some("")), 1 => Just(None)];
    let conduct = prop_oneof![
        20 => Just(Conduct::Fold),
        1 => Just(Conduct::RejectKey),
        1 => Just(Conduct::TrapKey),
        1 => Just(Conduct::Reject),
        1 => Just(Conduct::Trap),
        1 => Just(Conduct::Interrupt),
    ];
    (key, conduct).prop_map(|(key, conduct)| Event { key, time: 0, conduct })
}

/// Time goes on, with rows out of order, late ones, negative ones and now and then a jump.
fn any_events() -> impl Strategy<Value = Vec<Event>> {
    let step = prop_oneof![10 => 0..4i64, 4 => -6..0i64, 2 => -40..-10i64, 1 => 20..60i64];
    prop::collection::vec((any_event(), step), 0..60).prop_map(|steps| {
        let mut now = 0;
        let mut events = Vec::new();
        for (event, step) in steps {
            events.push(Event {
                time: now + step,
                ..event
            });
            now = now.max(now + step);
        }
        events
    })
}

fn any_rules() -> impl Strategy<Value = Rules> {
    let emit = prop_oneof![Just(Emit::Update), Just(Emit::Final)];
    (1..12i64, 1..12i64, 0..8i64, emit).prop_map(|(size, advance, grace, emit)| Rules {
        size,
        advance: advance.min(size),
        grace,
        emit,
    })
}

fn options(rules: Rules) -> TaskOptions {
    let windows = if rules.advance == rules.size {
        Windows::Tumbling(Tumbling::new(rules.size).unwrap())
    } else {
        Windows::Hopping(Hopping::new(rules.size, rules.advance).unwrap())
    };
    let mut options = TaskOptions::new(windows, rules.grace, rules.emit).unwrap();
    options.limits = Limits {
        traps_per_step: 10_000,
        ..Limits::default()
    };
    options
}

fn check(expected: &Expected, shell: &Shell) -> Result<(), TestCaseError> {
    prop_assert_eq!(&shell.results, &expected.results);
    prop_assert_eq!(shell.dead_rows(), &expected.dead[..]);
    prop_assert_eq!(shell.refused_rows(), &expected.refused[..]);
    for (cause, expected) in shell.causes.iter().zip(&expected.causes) {
        // A result that was still due when the task was restored has lost its cause.
        prop_assert!(cause.is_none_or(|cause| cause.get() == *expected));
    }
    Ok(())
}

/// What a run does: how many rows a call gets, and after how many effects the task dies, if it does.
#[derive(Clone, Debug)]
struct Step {
    rows: usize,
    dies_after: Option<usize>,
    compacts: bool,
}

fn any_steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (1..15usize, prop::option::weighted(0.4, 0..4usize), any::<bool>());
    let step = step.prop_map(|(rows, dies_after, compacts)| Step {
        rows,
        dies_after,
        compacts,
    });
    prop::collection::vec(step, 1..20)
}

/// Runs to the end of the events; results that left without their commit are returned.
fn run_with_deaths(events: &[Event], options: &mut TaskOptions, steps: &[Step], shell: &mut Shell) -> Vec<Seen> {
    let plugin = || {
        Box::new(Listing {
            keyed: true,
            ..Listing::default()
        })
    };
    let mut leaked = Vec::new();
    let mut task = restore(options, plugin(), vec![]);
    for step in steps.iter().cycle() {
        let first = usize::try_from(task.position().get()).unwrap();
        if first >= events.len() {
            break;
        }
        let end = events.len().min(first + step.rows);
        // The call brings rows from before the position too, as a read of whole batches does.
        let rows = batch(events, first.saturating_sub(3), end);
        let mut effects = Vec::new();
        task.on_rows(&rows, offset(end), &mut effects);
        assert_eq!(*task.state(), TaskState::Running);
        for effect in &effects {
            let Effect::Commit(commit) = effect else { continue };
            // The progress record comes on top.
            let bytes: usize = commit.changelog[1..].iter().map(ChangelogRecord::size_bytes).sum();
            assert!(bytes <= options.limits.commit_bytes, "a commit of {bytes} bytes");
        }
        let lives = step
            .dies_after
            .map_or(effects.len(), |dies_after| effects.len().min(dies_after));
        let dies = step.dies_after.is_some();
        let rest = effects.split_off(lives);
        shell.execute(effects);
        if !dies {
            continue;
        }
        if let Some(Effect::Commit(commit)) = rest.first() {
            leaked.extend(commit.results.iter().map(Seen::of));
        }
        options.epoch = TaskEpoch::new(options.epoch.get() + 1);
        if step.compacts {
            shell.changelog = shell.compacted();
        }
        task = restore(options, plugin(), shell.changelog.clone());
        let mut effects = Vec::new();
        task.resume(&mut effects);
        shell.execute(effects);
        // Each death before any progress would go on for ever with a run of such steps; the next call lives.
        let end = events.len().min(usize::try_from(task.position().get()).unwrap() + 1);
        let mut effects = Vec::new();
        let first = usize::try_from(task.position().get()).unwrap();
        task.on_rows(&batch(events, first, end), offset(end), &mut effects);
        shell.execute(effects);
    }
    leaked
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_task_does_what_the_rules_say_however_rows_are_cut(
        events in any_events(),
        rules in any_rules(),
        cuts in prop::collection::vec(1..20usize, 1..10),
        rows_per_call in 1..20usize,
    ) {
        let expected = expected(&events, rules);
        let mut options = options(rules);
        options.limits.rows_per_call = rows_per_call;
        let mut task = restore(&options, Box::new(Listing { keyed: true, ..Listing::default() }), vec![]);
        let mut shell = Shell::default();
        let mut cuts = cuts.iter().cycle();
        let mut first = 0;
        while first < events.len() {
            let end = events.len().min(first + cuts.next().unwrap());
            let mut effects = Vec::new();
            task.on_rows(&batch(&events, first, end), offset(end), &mut effects);
            shell.execute(effects);
            first = end;
        }
        check(&expected, &shell)?;
        let causes: Vec<i64> = shell.causes.iter().map(|cause| cause.unwrap().get()).collect();
        prop_assert_eq!(causes, expected.causes);
        prop_assert_eq!(task.counters(), expected.counters);
        prop_assert_eq!(task.stream_time(), expected.stream_time.map(Timestamp::from_millis));
        let panes: Vec<_> = task.panes(None, 10_000).unwrap().into_iter().map(|pane| {
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            let place = (pane.window.start.millis(), text(&pane.key));
            (place, (text(&pane.accumulator), pane.timestamp.millis()))
        }).collect();
        prop_assert_eq!(panes, expected.open.into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn deaths_between_effects_lose_and_repeat_nothing_that_was_committed(
        events in any_events(),
        rules in any_rules(),
        steps in any_steps(),
        rows_per_call in 1..6usize,
        firings_per_call in 1..4usize,
        room in 0..200usize,
        call_bytes in 0..100usize,
    ) {
        let expected = expected(&events, rules);
        let mut options = options(rules);
        options.limits.rows_per_call = rows_per_call;
        options.limits.firings_per_call = firings_per_call;
        // Small commits, yet large enough for the panes of any one row.
        let pane = 64 + 3 * events.len();
        options.limits.commit_bytes = pane * options.windows().per_row_max() + room;
        options.limits.call_bytes = call_bytes;
        let mut shell = Shell::default();
        let leaked = run_with_deaths(&events, &mut options, &steps, &mut shell);
        check(&expected, &shell)?;
        if rules.emit == Emit::Final {
            let windows: BTreeSet<_> = shell.results.iter().map(|seen| (seen.start, &seen.key)).collect();
            prop_assert_eq!(windows.len(), shell.results.len(), "a window was final twice");
        }
        for seen in leaked {
            prop_assert!(shell.results.contains(&seen), "{:?} left once and never again", seen);
        }
        // Nobody needs more than the compacted changelog.
        options.limits.call_bytes = Limits::default().call_bytes;
        let compacted = restore(&options, Box::default(), shell.compacted());
        let whole = restore(&options, Box::default(), shell.changelog.clone());
        prop_assert_eq!(compacted.counters(), expected.counters);
        prop_assert_eq!(compacted.position(), whole.position());
        prop_assert_eq!(compacted.panes(None, 10_000).unwrap(), whole.panes(None, 10_000).unwrap());
        prop_assert_eq!(compacted.panes(None, 10_000).unwrap().len(), expected.open.len());
    }
}

#[test]
fn an_empty_read_moves_the_position_past_a_gap() {
    let rules = Rules {
        size: 5,
        advance: 5,
        grace: 0,
        emit: Emit::Update,
    };
    let mut task = restore(&options(rules), Box::default(), vec![]);
    let empty: Batch = batch(&[], 0, 0);
    let mut shell = Shell::default();
    let mut effects = Vec::new();
    task.on_rows(&empty, offset(7), &mut effects);
    shell.execute(effects);
    assert_eq!(
        restore(&options(rules), Box::default(), shell.changelog).position(),
        offset(7)
    );
    let mut effects = Vec::new();
    task.on_rows(&empty, offset(7), &mut effects);
    assert_eq!(effects, [], "nothing has moved");
}
