//! One suite for every store, and what only a store on disk can do wrong.

use super::*;
use proptest::prelude::*;
use streams::MemoryStore;

const ALL: ScanLimit = ScanLimit {
    entries: usize::MAX,
    bytes: usize::MAX,
};

fn name(text: &str) -> ProcessorName {
    ProcessorName::new(text).unwrap()
}

fn ids(number: u8) -> Ids {
    Ids {
        changelog: TopicId::from_bytes([number; 16]),
        input: TopicId::from_bytes([9; 16]),
    }
}

fn stores(folder: &tempfile::TempDir) -> Stores {
    Stores::new(folder.path().join("stores"), StoresSettings::default())
}

fn open(stores: &Stores) -> LocalStore {
    stores.open(&name("p"), PartitionIndex::new(0), ids(1)).unwrap()
}

fn pane(key: &[u8]) -> Bytes {
    Bytes::from([PANES, key].concat())
}

fn put(key: &Bytes, value: &[u8]) -> ChangelogRecord {
    ChangelogRecord {
        key: key.clone(),
        value: Some(Bytes::copy_from_slice(value)),
    }
}

fn everything(store: &dyn Store) -> Vec<(Bytes, Bytes)> {
    store.scan(&[0], &[0xfe], ALL).unwrap()
}

/// What a task does to its store.
#[derive(Clone, Debug)]
enum Act {
    Put(u8, u8),
    Remove(u8),
    Commit,
    Reopen,
    Scan(u8, u8, usize, usize),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        4 => (0..12u8, any::<u8>()).prop_map(|(key, value)| Act::Put(key, value)),
        3 => (0..12u8).prop_map(Act::Remove),
        2 => Just(Act::Commit),
        1 => Just(Act::Reopen),
        4 => (0..12u8, 0..14u8, 0..5usize, 0..12usize).prop_map(|(from, to, entries, bytes)| Act::Scan(from, to, entries, bytes)),
    ];
    prop::collection::vec(act, 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Every store answers as the one in memory does. A store that is opened anew has what was committed, so there the
    /// pending changes are committed first.
    #[test]
    fn a_store_on_disk_is_told_from_one_in_memory_by_nobody(acts in acts()) {
        let folder = tempfile::tempdir().unwrap();
        let mut stores = stores(&folder);
        let mut on_disk = open(&stores);
        let mut in_memory = MemoryStore::new();
        let mut end = 0;
        for act in acts {
            match act {
                Act::Put(key, value) => {
                    let change = [put(&pane(&[key]), &[value])];
                    on_disk.apply(&change).unwrap();
                    in_memory.apply(&change).unwrap();
                }
                Act::Remove(key) => {
                    let change = [ChangelogRecord { key: pane(&[key]), value: None }];
                    on_disk.apply(&change).unwrap();
                    in_memory.apply(&change).unwrap();
                }
                Act::Commit => {
                    end += 1;
                    on_disk.committed(Offset::new(end)).unwrap();
                }
                Act::Reopen => {
                    end += 1;
                    on_disk.committed(Offset::new(end)).unwrap();
                    drop(on_disk);
                    stores = Stores::new(folder.path().join("stores"), StoresSettings::default());
                    on_disk = open(&stores);
                    prop_assert_eq!(on_disk.end(), Some(Offset::new(end)));
                }
                Act::Scan(from, to, entries, bytes) => {
                    let limit = ScanLimit { entries, bytes };
                    let (from, to) = (pane(&[from]), pane(&[to]));
                    prop_assert_eq!(on_disk.scan(&from, &to, limit).unwrap(), in_memory.scan(&from, &to, limit).unwrap());
                    prop_assert_eq!(on_disk.get(&from).unwrap(), in_memory.get(&from).unwrap());
                    prop_assert_eq!(on_disk.scan(PANES, &to, limit).unwrap(), in_memory.scan(PANES, &to, limit).unwrap());
                }
            }
        }
        prop_assert_eq!(everything(&on_disk), everything(&in_memory));
    }
}

#[test]
fn what_was_not_committed_is_not_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let first = stores(&folder);
    let mut store = open(&first);
    store.apply(&[put(&pane(b"a"), b"1")]).unwrap();
    store.committed(Offset::new(3)).unwrap();
    store.apply(&[put(&pane(b"b"), b"2")]).unwrap();
    assert_eq!(everything(&store).len(), 2);
    drop(store);
    drop(first);
    let store = open(&stores(&folder));
    assert_eq!((store.end(), everything(&store).len()), (Some(Offset::new(3)), 1));
}

#[test]
fn a_store_of_other_topics_is_wiped() {
    let folder = tempfile::tempdir().unwrap();
    let stores = stores(&folder);
    let mut store = open(&stores);
    store.apply(&[put(&pane(b"a"), b"1")]).unwrap();
    store.committed(Offset::new(3)).unwrap();
    drop(store);
    let of = |number| stores.open(&name("p"), PartitionIndex::new(0), ids(number)).unwrap();
    let other = of(2);
    assert_eq!((other.end(), everything(&other)), (None, vec![]));
    drop(other);
    let again = of(1);
    assert_eq!((again.end(), everything(&again)), (None, vec![]));
}

#[test]
fn tasks_do_not_see_each_other_and_leave_alone() {
    let folder = tempfile::tempdir().unwrap();
    let stores = stores(&folder);
    let of = |processor, partition| {
        let partition = PartitionIndex::new(partition);
        stores.open(&name(processor), partition, ids(1)).unwrap()
    };
    for (processor, partition) in [("p", 0), ("p", 1), ("p-2", 0)] {
        let mut store = of(processor, partition);
        assert_eq!(everything(&store), []);
        store.apply(&[put(&pane(b"a"), processor.as_bytes())]).unwrap();
        store.committed(Offset::new(1)).unwrap();
    }
    stores.keep_only(&[name("p")]).unwrap();
    assert_eq!(of("p", 1).end(), Some(Offset::new(1)));
    assert_eq!(of("p-2", 0).end(), None);
    stores.keep_only(&[]).unwrap();
    assert!(!folder.path().join("stores").exists());
}

#[test]
fn a_folder_that_is_no_database_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let first = stores(&folder);
    let mut store = open(&first);
    store.committed(Offset::new(1)).unwrap();
    drop(store);
    drop(first);
    for entry in fs::read_dir(folder.path().join("stores")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            fs::write(path, b"nonsense").unwrap();
        }
    }
    assert_eq!(open(&stores(&folder)).end(), None);
}
