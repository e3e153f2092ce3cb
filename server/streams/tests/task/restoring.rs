//! What a changelog makes of a task, and which changelogs it refuses.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use model::Offset;
use streams::changelog::ChangelogKey;
use streams::{
    ChangelogRecord, Emit, MemoryStore, Restoration, RestoreError, ScanLimit, Store, StoreError, Task, TaskEpoch,
    TaskOptions, TaskState, Tumbling, Windows,
};

use crate::doubles::{Listing, Shell, Wishes, event, feed, offset, restore, retry};

fn options(size: i64, epoch: u32) -> TaskOptions {
    let windows = Windows::Tumbling(Tumbling::new(size).unwrap());
    let mut options = TaskOptions::new(windows, 0, Emit::Final).unwrap();
    options.epoch = TaskEpoch::new(epoch);
    options
}

fn refusal(options: TaskOptions, changelog: Vec<ChangelogRecord>) -> Option<RestoreError> {
    Task::restore(
        options,
        Box::<Listing>::default(),
        Box::new(MemoryStore::new()),
        changelog,
    )
    .err()
}

/// Two rows in [0, 10).
fn written(epoch: u32) -> Shell {
    let mut shell = Shell::default();
    let mut task = restore(&options(10, epoch), Box::default(), vec![]);
    feed(&mut task, &[event("k", 1), event("k", 2)], &mut shell);
    shell
}

#[test]
fn a_replayed_input_changes_nothing() {
    let events = [event("k", 1), event("k", 2), event("k", 15), event("k", 3)];
    let mut shell = Shell::default();
    let mut task = restore(&options(10, 0), Box::default(), vec![]);
    feed(&mut task, &events, &mut shell);
    assert_eq!(shell.results.len(), 1);
    let mut again = restore(&options(10, 1), Box::default(), shell.changelog.clone());
    let mut effects = Vec::new();
    again.on_rows(&crate::doubles::batch(&events, 0, 4), offset(4), &mut effects);
    again.resume(&mut effects);
    assert_eq!(effects, []);
    assert_eq!(again.counters(), task.counters());
    assert_eq!(again.counters().late, 1);
}

#[test]
fn a_result_that_was_due_comes_after_the_restore_without_new_rows() {
    // The plugin takes the rows and then refuses the results: the rows are committed, the results are still due.
    let wishes = std::sync::Arc::new(std::sync::Mutex::new(Wishes::default()));
    let mut options = options(10, 0);
    options.limits.traps_per_step = 1;
    let mut task = restore(&options, Listing::wishing(&wishes), vec![]);
    let mut shell = Shell::default();
    wishes.lock().unwrap().trap_at_firing = vec![0];
    feed(&mut task, &[event("k", 1), event("k", 12)], &mut shell);
    assert_eq!((shell.results.len(), shell.dead.len()), (0, 0));
    assert_eq!(shell.back_offs.len(), 1);
    let mut again = restore(&options, Box::default(), shell.changelog.clone());
    assert_eq!(again.position(), offset(2));
    let mut effects = Vec::new();
    again.resume(&mut effects);
    shell.execute(effects);
    assert_eq!(shell.results.len(), 1);
    assert_eq!(shell.results[0].rows, "0");
    // The same without a restore.
    wishes.lock().unwrap().trap_at_firing.clear();
    let mut effects = Vec::new();
    task.resume(&mut effects);
    assert_eq!(effects.len(), 1);
}

#[test]
fn a_back_off_keeps_nothing_of_the_call() {
    let wishes = std::sync::Arc::new(std::sync::Mutex::new(Wishes {
        failures: vec![retry()],
        ..Wishes::default()
    }));
    let mut task = restore(&options(10, 0), Listing::wishing(&wishes), vec![]);
    let mut shell = Shell::default();
    feed(&mut task, &[event("k", 1)], &mut shell);
    assert_eq!(
        (task.position(), task.stream_time(), shell.commits),
        (offset(0), None, 0)
    );
}

#[test]
fn the_commits_of_an_owner_that_lost_the_task_are_passed_over() {
    let mut shell = written(2);
    let mut zombie = Shell::default();
    let mut task = restore(&options(10, 1), Box::default(), vec![]);
    feed(&mut task, &[event("z", 1), event("z", 2), event("z", 3)], &mut zombie);
    shell.changelog.extend(zombie.changelog);
    let mut task = restore(&options(10, 3), Box::default(), shell.changelog);
    assert_eq!(task.position(), offset(2));
    let panes = task.panes(None, 10).unwrap();
    assert_eq!(panes.iter().map(|pane| &pane.key[..]).collect::<Vec<_>>(), [b"k"]);
    let mut effects = Vec::new();
    task.resume(&mut effects);
    assert_eq!(effects, []);
}

#[test]
fn a_changelog_of_other_windows_or_a_later_owner_is_refused() {
    let shell = written(5);
    assert!(refusal(options(10, 5), shell.changelog.clone()).is_none());
    assert!(matches!(
        refusal(options(11, 5), shell.changelog.clone()),
        Some(RestoreError::OtherWindows)
    ));
    assert!(matches!(
        refusal(options(10, 4), shell.changelog),
        Some(RestoreError::Fenced { .. })
    ));
}

#[test]
fn records_that_are_none_of_a_changelog_are_refused() {
    for (key, value) in [
        (&[][..], None),
        (&[9][..], Some(&[1][..])),
        (&[0][..], None),
        (&[0][..], Some(&[1, 2][..])),
        (&[1, 0][..], None),
        (&[1, 0, 0, 0, 0, 0, 0, 0, 0][..], Some(&[7][..])),
        (&[1, 0xff, 0, 0, 0, 0, 0, 0, 0][..], None),
    ] {
        let record = ChangelogRecord {
            key: Bytes::from_static(key),
            value: value.map(Bytes::from_static),
        };
        let refused = refusal(options(10, 0), vec![record]);
        assert!(matches!(refused, Some(RestoreError::Changelog(_))), "{key:?} {value:?}");
    }
}

#[test]
fn a_store_that_holds_the_beginning_needs_only_the_rest() {
    let events = [event("k", 1), event("k", 2), event("k", 13), event("k", 14)];
    let mut shell = Shell::default();
    let mut task = restore(&options(10, 0), Box::default(), vec![]);
    for end in [2, 4] {
        let mut effects = Vec::new();
        task.on_rows(&crate::doubles::batch(&events, end - 2, end), offset(end), &mut effects);
        shell.execute(effects);
    }
    for kept in 0..=shell.changelog.len() {
        let mut store = MemoryStore::new();
        store.apply(&shell.changelog[..kept]).unwrap();
        let mut restoration = Restoration::new(options(10, 0), Box::new(store)).unwrap();
        for record in &shell.changelog[kept..] {
            restoration.apply(record.clone()).unwrap();
        }
        let restored = restoration.finish(Box::<Listing>::default()).unwrap();
        assert_eq!(restored.position(), task.position());
        assert_eq!(restored.panes(None, 10).unwrap(), task.panes(None, 10).unwrap());
    }
}

/// A store that outlives its task.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<MemoryStore>>);

impl Store for Kept {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        self.0.lock().unwrap().get(key)
    }

    fn scan(&self, from: &[u8], to: &[u8], limit: ScanLimit) -> Result<Vec<(Bytes, Bytes)>, StoreError> {
        self.0.lock().unwrap().scan(from, to, limit)
    }

    fn apply(&mut self, changes: &[ChangelogRecord]) -> Result<(), StoreError> {
        self.0.lock().unwrap().apply(changes)
    }

    fn committed(&mut self, changelog_end: Offset) -> Result<(), StoreError> {
        self.0.lock().unwrap().committed(changelog_end)
    }
}

#[test]
fn a_store_that_holds_everything_needs_nothing_of_the_changelog() {
    let store = Kept::default();
    let restored = || {
        let restoration = Restoration::new(options(10, 0), Box::new(store.clone())).unwrap();
        restoration.finish(Box::<Listing>::default()).unwrap()
    };
    let mut shell = Shell::default();
    let mut task = restored();
    feed(&mut task, &[event("k", 1), event("k", 2), event("k", 13)], &mut shell);
    task.on_committed(offset(shell.changelog.len())).unwrap();
    let again = restored();
    assert_eq!((again.position(), again.counters()), (task.position(), task.counters()));
    assert_eq!(again.stream_time(), task.stream_time());
    assert_eq!(again.panes(None, 10).unwrap(), task.panes(None, 10).unwrap());
}

/// A store of which only the progress can be read.
struct Damaged;

impl Store for Damaged {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        if key == ChangelogKey::Progress.encode() {
            return Ok(None);
        }
        Err(StoreError("a block is damaged".into()))
    }

    fn scan(&self, _: &[u8], _: &[u8], _: ScanLimit) -> Result<Vec<(Bytes, Bytes)>, StoreError> {
        Err(StoreError("a block is damaged".into()))
    }

    fn apply(&mut self, _: &[ChangelogRecord]) -> Result<(), StoreError> {
        Ok(())
    }

    fn committed(&mut self, _: Offset) -> Result<(), StoreError> {
        Ok(())
    }
}

#[test]
fn a_store_that_cannot_be_read_is_no_reason_to_stop_for_good() {
    let restoration = Restoration::new(options(10, 0), Box::new(Damaged)).unwrap();
    let mut task = restoration.finish(Box::<Listing>::default()).unwrap();
    let mut shell = Shell::default();
    feed(&mut task, &[event("k", 1)], &mut shell);
    assert_eq!((shell.stopped, shell.commits), (None, 0));
    assert!(shell.store_failed.unwrap().contains("a block is damaged"));
    assert!(matches!(task.state(), TaskState::Stopped { .. }));
    assert_eq!(task.position(), offset(0));
}

#[test]
fn panes_are_read_page_by_page() {
    let mut shell = Shell::default();
    let mut task = restore(&options(10, 0), Box::default(), vec![]);
    feed(
        &mut task,
        &[event("a", 1), event("b", 1), event("", 1), event("ab", 1)],
        &mut shell,
    );
    let mut keys = Vec::new();
    let mut after: Option<(model::Timestamp, Vec<u8>)> = None;
    loop {
        let page = task
            .panes(after.as_ref().map(|(start, key)| (*start, &key[..])), 1)
            .unwrap();
        let Some(pane) = page.into_iter().next() else { break };
        keys.push(String::from_utf8(pane.key.to_vec()).unwrap());
        after = Some((pane.window.start, pane.key.to_vec()));
    }
    assert_eq!(keys, ["", "a", "ab", "b"]);
}
