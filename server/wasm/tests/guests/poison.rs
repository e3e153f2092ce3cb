//! Of many rows with one that breaks the guest, all others leave, and that one is a dead letter with its reason.

use model::Offset;
use streams::{
    DeadLetter, DeadLetterSource, Effect, Emit, MemoryStore, Task, TaskOptions, TaskState, Tumbling, Windows,
};

use crate::fixtures::{aggregator, module, prompt_settings, rows, settings};

const ROWS: usize = 512;
const POISON: usize = 311;

struct Outcome {
    results: Vec<u64>,
    dead: Vec<DeadLetter>,
    task: Task,
}

fn run(wish: &str) -> Outcome {
    let mut values = vec!["count"; ROWS];
    values[POISON] = wish;
    // Only who loops is given a deadline.
    let settings = if wish == "loop" {
        prompt_settings(&[])
    } else {
        settings(&[])
    };
    let guest = module("evil").window_aggregator(settings).unwrap();
    let options = TaskOptions::new(Windows::Tumbling(Tumbling::new(10).unwrap()), 0, Emit::Update).unwrap();
    let mut task = Task::restore(options, guest, Box::new(MemoryStore::new()), []).unwrap();
    let mut effects = Vec::new();
    let end = Offset::new(i64::try_from(ROWS).unwrap());
    task.on_rows(&rows(&values), end, &mut effects);
    let (mut results, mut dead) = (Vec::new(), Vec::new());
    for effect in effects {
        let Effect::Commit(commit) = effect else {
            panic!("{effect:?}");
        };
        results.extend(commit.results.iter().map(|result| {
            let count: [u8; 8] = result.value.as_deref().unwrap().try_into().unwrap();
            u64::from_le_bytes(count)
        }));
        dead.extend(commit.dead_letters);
    }
    Outcome { results, dead, task }
}

#[test]
fn of_512_rows_with_one_poison_row_511_leave() {
    for (wish, reason) in [
        ("trap because", "panicked at"),
        ("trap because", "asked to: because"),
        ("loop", "more than 100 ms of processor time"),
        ("memory", "the limit is 67108864"),
        ("reject", "asked to reject"),
        ("stack", "wasm trap"),
        ("short", "column accs has 0 entries where 1 belong"),
        ("reject-none", "entry 0 of rejections is 4294967295, the limit is 1"),
        ("emit", "rows are given out only when"),
        ("hoard 65", "the limit is 67108864"),
    ] {
        let outcome = run(wish);
        let counts: Vec<u64> = (1..512).collect();
        assert_eq!(outcome.results, counts, "{wish}");
        let [dead] = &outcome.dead[..] else {
            panic!("{wish}: {:?}", outcome.dead);
        };
        assert_eq!(dead.source, DeadLetterSource::Row(Offset::new(311)), "{wish}");
        assert_eq!(dead.value.as_deref(), Some(wish.as_bytes()));
        assert!(dead.reason.contains(reason), "{wish}: {}", dead.reason);
        assert_eq!(*outcome.task.state(), TaskState::Running);
        assert_eq!(outcome.task.position(), Offset::new(512));
    }
}

#[test]
fn rows_that_only_cost_much_are_counted_like_all_others() {
    for wish in ["hoard 45", "shout", "series", "fields"] {
        let outcome = run(wish);
        assert_eq!(outcome.results.len(), ROWS, "{wish}: {:?}", outcome.dead);
        assert_eq!(outcome.task.calls().traps, 0, "{wish}");
    }
}

#[test]
fn a_retry_and_a_fatal_failure_are_the_tasks_to_handle() {
    let task = |wish: &str| {
        let options = TaskOptions::new(Windows::Tumbling(Tumbling::new(10).unwrap()), 0, Emit::Update).unwrap();
        let mut task = Task::restore(options, aggregator("evil", &[]), Box::new(MemoryStore::new()), []).unwrap();
        task.on_rows(&rows(&["count", wish]), Offset::new(2), &mut Vec::new());
        task.state().clone()
    };
    let reason = "not now".to_owned();
    assert_eq!(task("retry"), TaskState::BackingOff { reason });
    let reason = "never".to_owned();
    assert_eq!(task("fatal"), TaskState::Stopped { reason });
}
