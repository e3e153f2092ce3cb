//! Processors in a node in process, with native plugins: what a real module cannot be made to do at the right moment.
//! Restarts, kills and the rest are in tests/acceptance/processors.py.

pub(crate) mod node;

use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use model::Offset;
use plugin::Digest;
use plugin::deployment::{
    DEPLOYMENTS_TOPIC, Deployment, EmitSpec, From, ProcessorName, WindowKind, WindowSpec, encode_value,
};
use plugin::running::{TaskPhase, TaskStatus};
use streams::{ChangelogRecord, ScanLimit, Store as _, StoreError};

use super::changelog::Ids;
use super::local_store::{LocalStore, Stores, StoresSettings};
use node::{TestNode, topic_name};

/// Only there so that a hang becomes an error.
const WAIT_MAX: Duration = Duration::from_secs(60);
const ALL: ScanLimit = ScanLimit {
    entries: 10,
    bytes: usize::MAX,
};

fn deployment(name: &str, module: Digest) -> Deployment {
    Deployment {
        version: 1,
        module,
        input: topic_name(&format!("{name}-in")),
        from: From::Earliest,
        output: topic_name(&format!("{name}-out")),
        window: WindowSpec {
            kind: WindowKind::Tumbling,
            size_ms: 60_000,
            advance_ms: None,
            grace_ms: 0,
        },
        emit: EmitSpec::Update,
        config: BTreeMap::new(),
        paused: false,
    }
}

async fn deploy(node: &TestNode, name: &str, deployment: &Deployment) -> Offset {
    let key = format!("processor/{name}");
    node.send(DEPLOYMENTS_TOPIC, &key, Some(encode_value(deployment))).await
}

async fn row(node: &TestNode, name: &str, value: &'static str) {
    let value = Some(Bytes::from_static(value.as_bytes()));
    node.send(&format!("{name}-in"), "k", value).await;
}

async fn await_status(node: &TestNode, name: &str, wished: impl Fn(&TaskStatus) -> bool) -> TaskStatus {
    let name = ProcessorName::new(name).unwrap();
    loop {
        let status = node.plugins.running().status(&name);
        let found = status.and_then(|status| status.tasks.into_iter().find(&wished));
        match found {
            Some(task) => return task,
            None => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

/// A node with the processor `p` that has counted one row; what runs it, and what its task is about.
async fn counted(folder: &Path) -> (TestNode, Digest, Ids) {
    let node = TestNode::start(folder);
    node.topics_of("p");
    let module = node.upload("count").await;
    deploy(&node, "p", &deployment("p", module)).await;
    row(&node, "p", "1").await;
    node.await_values("p-out", &["1"]).await;
    await_status(&node, "p", |task| task.processed == 1).await;
    let ids = node.ids("p");
    (node, module, ids)
}

pub(crate) fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async { tokio::time::timeout(WAIT_MAX, test).await.expect("the test hangs") });
}

#[test]
fn counts_go_on_where_the_last_node_left_them() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let (node, ..) = counted(folder.path()).await;
        row(&node, "p", "1").await;
        node.await_values("p-out", &["1", "2"]).await;
        await_status(&node, "p", |task| {
            task.processed == 2 && task.phase == TaskPhase::Running
        })
        .await;
        node.stop().await;
        let node = TestNode::start(folder.path());
        node.topics_of("p");
        row(&node, "p", "1").await;
        node.await_values("p-out", &["1", "2", "3"]).await;
        node.stop().await;
    });
}

#[test]
fn a_task_that_panics_stops_alone() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let node = TestNode::start(folder.path());
        node.topics_of("bad");
        node.topics_of("good");
        let (bad, good) = (node.upload("panics").await, node.upload("count").await);
        let mut deployed = deployment("bad", bad);
        deploy(&node, "bad", &deployed).await;
        deploy(&node, "good", &deployment("good", good)).await;
        row(&node, "bad", "poke").await;
        let stopped = await_status(&node, "bad", |task| matches!(task.phase, TaskPhase::Stopped { .. })).await;
        let reason = "the task panicked: poked".to_owned();
        assert_eq!(stopped.phase, TaskPhase::Stopped { reason });
        row(&node, "good", "poke").await;
        node.await_values("good-out", &["1"]).await;
        // What is deployed anew starts anew.
        deployed.module = good;
        deployed.version = 2;
        deploy(&node, "bad", &deployed).await;
        node.await_values("bad-out", &["1"]).await;
        node.stop().await;
    });
}

#[test]
fn a_plugin_that_asks_for_a_retry_gets_it_and_one_that_gives_up_stops() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let node = TestNode::start(folder.path());
        node.topics_of("r");
        node.topics_of("g");
        let (retries, gives_up) = (node.upload("retries").await, node.upload("gives up").await);
        deploy(&node, "r", &deployment("r", retries)).await;
        deploy(&node, "g", &deployment("g", gives_up)).await;
        row(&node, "r", "poke").await;
        node.await_values("r-out", &["1"]).await;
        row(&node, "g", "poke").await;
        let stopped = await_status(&node, "g", |task| matches!(task.phase, TaskPhase::Stopped { .. })).await;
        let reason = "poked".to_owned();
        assert_eq!(stopped.phase, TaskPhase::Stopped { reason });
        let name = ProcessorName::new("g").unwrap();
        let logs = node.plugins.running().logs(&name).unwrap().entries(0, usize::MAX);
        assert!(
            logs.iter().any(|entry| entry.message.contains("stopped: poked")),
            "{logs:?}"
        );
        node.stop().await;
    });
}

#[test]
fn a_store_that_is_ahead_of_its_changelog_is_wiped() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let (node, _, ids) = counted(folder.path()).await;
        node.stop().await;
        // A count that the changelog knows nothing of.
        let stores = Stores::new(folder.path().join("stores"), StoresSettings::default());
        let (name, partition) = (ProcessorName::new("p").unwrap(), model::PartitionIndex::new(0));
        let mut store = stores.open(&name, partition, ids).unwrap();
        assert!(store.end().is_some(), "the task has written its store");
        let (key, value) = store.scan(&[1], &[2], ALL).unwrap().remove(0);
        let value = Some(Bytes::from([&value[..9], b"700"].concat()));
        store.apply(&[ChangelogRecord { key, value }]).unwrap();
        store.committed(Offset::new(1_000)).unwrap();
        drop((store, stores));
        let node = TestNode::start(folder.path());
        node.topics_of("p");
        row(&node, "p", "1").await;
        node.await_values("p-out", &["1", "2"]).await;
        node.stop().await;
    });
}

#[test]
fn a_topic_that_is_made_anew_does_not_meet_old_state_however_often_it_is_tried() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let is_refused =
            |task: &TaskStatus| matches!(&task.phase, TaskPhase::Stopped { reason } if reason.contains("made anew"));
        let (node, module, _) = counted(folder.path()).await;
        node.topic_anew("p-in");
        await_status(&node, "p", is_refused).await;
        // Resumed, with the store that the attempt before has left.
        let mut again = deployment("p", module);
        again.version = 2;
        deploy(&node, "p", &again).await;
        let name = ProcessorName::new("p").unwrap();
        let starts = |text: &str| text == "version 2 starts";
        let has_started = || {
            let logs = node.plugins.running().logs(&name);
            logs.is_some_and(|logs| logs.entries(0, usize::MAX).iter().any(|entry| starts(&entry.message)))
        };
        while !has_started() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        await_status(&node, "p", is_refused).await;
        node.stop().await;
        for _ in 0..2 {
            let node = TestNode::start(folder.path());
            node.topic_anew("p-in");
            node.topics_of("p");
            await_status(&node, "p", is_refused).await;
            row(&node, "p", "1").await;
            node.await_values("p-out", &["1"]).await;
            node.stop().await;
        }
    });
}

/// The tables of the first keyspace; those of 0 are the database's own.
const TABLES: &str = "stores/keyspaces/1/tables";
/// In the block of a table's first entries.
const DAMAGED_AT: usize = 60;

/// Damages the tables of the store of `p`: where it is to open, only its panes.
fn damage(folder: &Path, ids: Ids, is_open: bool, is_damaged: impl Fn(Result<LocalStore, StoreError>) -> bool) {
    let stores = || Stores::new(folder.join("stores"), StoresSettings::default());
    let open = |stores: &Stores| {
        let (name, partition) = (ProcessorName::new("p").unwrap(), model::PartitionIndex::new(0));
        stores.open(&name, partition, ids)
    };
    let first = stores();
    let mut store = open(&first).unwrap();
    let progress = streams::changelog::ChangelogKey::Progress.encode();
    let value = store.get(&progress).unwrap();
    store.write_tables();
    if is_open {
        // What an open and a restore read is written again, and so is in memory.
        store.apply(&[ChangelogRecord { key: progress, value }]).unwrap();
        store.committed(store.end().unwrap()).unwrap();
    }
    drop((store, first));
    let mut damaged = 0;
    for table in std::fs::read_dir(folder.join(TABLES)).unwrap() {
        let path = table.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[DAMAGED_AT] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        damaged += 1;
    }
    assert!(damaged > 0, "there is no table");
    let again = stores();
    assert!(is_damaged(open(&again)), "the store is as it was");
}

fn a_task_outlives_its_store(folder: &Path, damage: impl Fn(Ids)) {
    run(async {
        let (node, _, ids) = counted(folder).await;
        node.stop().await;
        damage(ids);
        let node = TestNode::start(folder);
        node.topics_of("p");
        row(&node, "p", "1").await;
        node.await_values("p-out", &["1", "2"]).await;
        await_status(&node, "p", |task| {
            task.processed == 2 && task.phase == TaskPhase::Running
        })
        .await;
        node.stop().await;
    });
}

#[test]
fn a_store_that_is_damaged_where_a_task_reads_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    a_task_outlives_its_store(folder.path(), |ids| {
        let is_damaged = |opened: Result<LocalStore, StoreError>| opened.unwrap().scan(&[1], &[2], ALL).is_err();
        damage(folder.path(), ids, true, is_damaged);
    });
}

#[test]
fn a_store_that_is_damaged_where_it_says_how_far_it_goes_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    a_task_outlives_its_store(folder.path(), |ids| {
        damage(folder.path(), ids, false, |opened| opened.is_err())
    });
}

#[test]
fn what_is_followed_has_found_where_it_begins() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let node = TestNode::start(folder.path());
        node.topics_of("p");
        let module = node.upload("count").await;
        row(&node, "p", "1").await;
        let mut latest = deployment("p", module);
        latest.from = From::Latest;
        // A first one, so that the topic has been read to its end.
        let offset = deploy(&node, "other", &deployment("other", module)).await;
        let running = node.plugins.running();
        let followed = async |offset: Offset| {
            while running.followed().deployments <= offset {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        followed(offset).await;
        let offset = deploy(&node, "p", &latest).await;
        followed(offset).await;
        row(&node, "p", "1").await;
        node.await_values("p-out", &["1"]).await;
        let task = await_status(&node, "p", |task| task.processed == 1).await;
        assert_eq!(task.position, Some(Offset::new(2)));
        node.stop().await;
    });
}
