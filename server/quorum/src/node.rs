//! One node of the quorum, synchronous: inputs change its log and state, and what they led to counts once it is synced.
//!
//! The order within an operation: decide on the image, check each record by reading it back, replay, append. What does
//! not replay never reaches the log; what cannot be appended is taken back. While a batch is being synced, what is
//! decided waits and becomes one batch behind it.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use metadata::image::Endpoint;
use metadata::{
    Controller, ControllerOptions, Delta, Entropy, Image, OpContext, Outcome, Refusal, Replay, SealedRecord,
};
use model::{ControllerEpoch, DirectoryId, ErrorCode, Monotonic, Offset, Timestamp, Uuid};
use protocol::internal_records::control::ControlRecord;
use protocol::internal_records::metadata::{MetadataRecord, NoOpRecord};
use protocol::messages::controller_registration_request::{self, ControllerRegistrationRequest};
use protocol::{Request, Response};
use raft::{
    ControlRecordError, Effect, KRaftVersion, NotLeader, QuorumRecords, Raft, ReplicaKey, SnapshotId, VoterSetSource,
};
use storage::{Disk, SyncDone, SyncHandle};

use crate::metadata_log::{Loaded, MetadataLog, MetadataLogError, MetadataLogOptions, SnapshotJob, WrittenSnapshot};
use crate::snapshot_file::SnapshotError;

mod unwritten;

use unwritten::Unwritten;

/// How often old snapshots and their log are looked at.
const CLEAN_INTERVAL: Duration = Duration::from_secs(60);

/// What a node is told by its configuration.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    pub controller: ControllerOptions,
    /// Of the metadata directory.
    pub directory_id: DirectoryId,
    /// Drawn anew for each process.
    pub incarnation_id: Uuid,
    /// Where the controller listens, as others reach it.
    pub endpoints: Vec<Endpoint>,
    pub log: MetadataLogOptions,
    /// `metadata.log.max.record.bytes.between.snapshots`
    pub snapshot_after_bytes: u64,
    /// `metadata.log.max.snapshot.interval.ms`
    pub snapshot_after: Duration,
    /// `metadata.max.idle.interval.ms`
    pub no_op_interval: Duration,
}

impl NodeOptions {
    /// Kafka's defaults for everything that has one.
    #[must_use]
    pub fn new(controller: ControllerOptions, directory_id: DirectoryId, incarnation_id: Uuid) -> Self {
        NodeOptions {
            controller,
            directory_id,
            incarnation_id,
            endpoints: Vec::new(),
            log: MetadataLogOptions::default(),
            snapshot_after_bytes: 20 << 20,
            snapshot_after: Duration::from_secs(3600),
            no_op_interval: Duration::from_millis(500),
        }
    }
}

/// Why a node cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    #[error(transparent)]
    Log(#[from] MetadataLogError),
    #[error(transparent)]
    Raft(#[from] raft::StartError),
    #[error("a control record of this node cannot be")]
    Control(#[from] ControlRecordError),
    #[error("writing a snapshot")]
    Snapshot(#[from] SnapshotError),
    #[error("the metadata log has no metadata.version that this node knows")]
    NoMetadataVersion,
    #[error("the controller task ended unexpectedly")]
    Panicked,
}

/// Both clocks at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) wall: Timestamp,
    pub(crate) monotonic: Monotonic,
}

/// An operation that has been decided: the response counts once everything below `after` is committed.
#[derive(Debug)]
pub(crate) struct Called {
    pub(crate) response: Response,
    pub(crate) after: Offset,
}

/// Whether this node decides, or waits for that.
enum Role {
    Waiting(Replay),
    Active(Controller),
}

pub(crate) struct Node<D: Disk> {
    options: NodeOptions,
    log: MetadataLog<D>,
    raft: Raft,
    quorum: QuorumRecords,
    bootstrap: Vec<MetadataRecord>,
    role: Role,
    /// Images that are appended and not yet committed, the oldest first. Bounded by what one sync covers.
    uncommitted: VecDeque<(Offset, Delta, Arc<Image>)>,
    /// What became committed since the last [`Node::take_committed`].
    committed: VecDeque<(Delta, Arc<Image>)>,
    unwritten: Unwritten,
    refused_after: Option<Offset>,
    high_watermark: Offset,
    latest: Arc<Image>,
    last_no_op: Monotonic,
    last_clean: Monotonic,
    snapshots: SnapshotState,
}

/// When the next snapshot is due.
struct SnapshotState {
    running: bool,
    requested: bool,
    since: Monotonic,
    log_size_bytes: u64,
}

impl<D: Disk> Node<D> {
    /// Opens the log, replays it and stands for election. With its first [`Node::begin_sync`] done it leads.
    pub(crate) fn open(disk: D, log_directory: &Path, options: NodeOptions, now: Moment) -> Result<Self, NodeError> {
        let (log, loaded) = MetadataLog::open(disk, log_directory, options.log, now.wall)?;
        let Loaded {
            replay,
            quorum,
            quorum_state,
            bootstrap,
        } = loaded;
        let mut effects = Vec::new();
        let (voters, source) = match quorum.voters.clone() {
            Some((voters, Some(offset))) => (voters, VoterSetSource::Log(offset)),
            Some((voters, None)) => (voters, source_of_snapshot(&log)),
            None => (raft::VoterSet::default(), VoterSetSource::Bootstrap),
        };
        let start = raft::Start {
            node: ReplicaKey {
                id: options.controller.node_id,
                directory: options.directory_id,
            },
            quorum_state,
            kraft_version: quorum.kraft_version.unwrap_or(KRaftVersion::Static),
            voters,
            voters_source: source,
            log_end: log.log_end_offset(),
            last_epoch: log.last_epoch(),
        };
        let raft = Raft::start(start, &mut effects)?;
        let log_size_bytes = log.log_size_bytes();
        let mut node = Node {
            latest: Arc::new(replay.image().clone()),
            role: Role::Waiting(replay),
            options,
            log,
            raft,
            quorum,
            bootstrap,
            uncommitted: VecDeque::new(),
            committed: VecDeque::new(),
            unwritten: Unwritten::default(),
            refused_after: None,
            high_watermark: Offset::ZERO,
            last_no_op: now.monotonic,
            last_clean: now.monotonic,
            snapshots: SnapshotState {
                running: false,
                requested: false,
                since: now.monotonic,
                log_size_bytes,
            },
        };
        node.options.controller.kraft_version = node.raft.kraft_version().level();
        node.execute(effects, now)?;
        Ok(node)
    }

    /// Carries out effects, and those that they lead to, in order.
    fn execute(&mut self, effects: Vec<Effect>, now: Moment) -> Result<(), NodeError> {
        let mut queue = VecDeque::from(effects);
        while let Some(effect) = queue.pop_front() {
            let mut more = Vec::new();
            match effect {
                Effect::SaveQuorumState(state) => {
                    let voters: Vec<ReplicaKey> = self.raft.voters().iter().map(|voter| voter.key).collect();
                    self.log.save_quorum_state(&state, self.raft.kraft_version(), &voters)?;
                    self.raft.on_quorum_state_saved(state.epoch, &mut more);
                }
                Effect::AppendControl { epoch, records } => self.append_control(epoch, &records, now, &mut more)?,
                // The shell asks by `begin_sync`.
                Effect::Sync => {}
                Effect::AdvanceHighWatermark(offset) => self.advance(offset),
                Effect::Lead { epoch } => {
                    tracing::info!(epoch = epoch.get(), "leads the controller quorum");
                    self.activate(now)?;
                }
                Effect::Resign { epoch } => {
                    tracing::info!(epoch = epoch.get(), "gives up leading the controller quorum")
                }
            }
            queue.extend(more);
        }
        Ok(())
    }

    fn append_control(
        &mut self,
        epoch: ControllerEpoch,
        records: &[ControlRecord],
        now: Moment,
        effects: &mut Vec<Effect>,
    ) -> Result<(), NodeError> {
        let first = self.log.log_end_offset();
        let end = self.log.append_control(epoch, records, now.wall)?;
        let mut offset = first;
        for record in records {
            self.quorum.see(Some(offset), record)?;
            offset = offset.plus(1);
        }
        match &mut self.role {
            Role::Waiting(replay) => replay.batch_ended(end, epoch, now.wall),
            Role::Active(controller) => controller.control_batch(end, epoch, now.wall),
        }
        self.raft.on_appended(end, effects);
        Ok(())
    }

    fn advance(&mut self, offset: Offset) {
        self.high_watermark = offset;
        while let Some((end, ..)) = self.uncommitted.front()
            && *end <= offset
            && let Some((_, delta, image)) = self.uncommitted.pop_front()
        {
            self.latest = image.clone();
            self.committed.push_back((delta, image));
        }
    }

    /// The start of this node's epoch is committed: it decides from here on.
    fn activate(&mut self, now: Moment) -> Result<(), NodeError> {
        let Role::Waiting(replay) = &mut self.role else {
            return Ok(());
        };
        let options = self.options.controller.clone();
        let controller = Controller::new(options, std::mem::take(replay), now.monotonic);
        let founding = controller.activate(&self.bootstrap);
        self.role = Role::Active(controller);
        self.last_no_op = now.monotonic;
        self.append(founding.records, now)?
            .map_err(|_| NodeError::NoMetadataVersion)?;
        let registration = self.registration();
        let controller = self.active().map_err(|_| NodeError::NoMetadataVersion)?;
        if controller.image().features.metadata_version().is_none() {
            return Err(NodeError::NoMetadataVersion);
        }
        // Levels before controllers could register do without.
        if let Ok(outcome) = controller.register_controller(&registration) {
            self.append(outcome.records, now)?
                .map_err(|_| NodeError::NoMetadataVersion)?;
        }
        Ok(())
    }

    fn registration(&self) -> ControllerRegistrationRequest {
        let listener = |endpoint: &Endpoint| controller_registration_request::Listener {
            name: endpoint.name.clone(),
            host: endpoint.host.clone(),
            port: endpoint.port,
            security_protocol: endpoint.security_protocol,
            ..Default::default()
        };
        let features = metadata::image::FeaturesImage::SUPPORTED.iter();
        ControllerRegistrationRequest {
            controller_id: self.options.controller.node_id.get(),
            incarnation_id: self.options.incarnation_id,
            listeners: self.options.endpoints.iter().map(listener).collect(),
            features: features
                .map(|(name, least, greatest)| controller_registration_request::Feature {
                    name: (*name).into(),
                    min_supported_version: *least,
                    max_supported_version: *greatest,
                    ..Default::default()
                })
                .collect(),
            ..ControllerRegistrationRequest::default()
        }
    }

    fn active(&mut self) -> Result<&mut Controller, NotLeader> {
        match &mut self.role {
            Role::Active(controller) => Ok(controller),
            Role::Waiting(_) => Err(NotLeader),
        }
    }

    /// Where the log will end with all that is decided.
    fn decided_end(&self) -> Offset {
        let unwritten = i64::try_from(self.unwritten.record_count()).expect("fewer than 2^63 records wait");
        self.log.log_end_offset().plus(unwritten)
    }

    /// Appends the records of one decision, at once or behind the sync that is awaited. The inner error says that nothing
    /// of it will be, and why.
    fn append(&mut self, records: Vec<MetadataRecord>, now: Moment) -> Result<Result<(), Refusal>, NodeError> {
        if records.is_empty() {
            return Ok(Ok(()));
        }
        let not_leading = Refusal {
            code: ErrorCode::NotController,
            message: None,
        };
        let end = self.decided_end();
        let (Ok(epoch), Role::Active(controller)) = (self.raft.append_epoch(), &mut self.role) else {
            return Ok(Err(not_leading));
        };
        let before = controller.checkpoint();
        let sealed = match replay_sealed(controller, records, end, epoch, now) {
            Ok(sealed) => sealed,
            Err(refusal) => {
                controller.restore(before);
                return Ok(Err(refusal));
            }
        };
        let end = controller.image().end_offset;
        if let Some((delta, image)) = controller.take_delta() {
            self.uncommitted.push_back((end, delta, Arc::new(image)));
        }
        let must_wait = !self.unwritten.is_empty() || !self.log.is_synced();
        self.unwritten.push(sealed, now.wall, before);
        if must_wait {
            return Ok(Ok(()));
        }
        self.write(now)
    }

    /// Writes the next batch. If the disk refuses it, it and all that was decided after it are taken back.
    fn write(&mut self, now: Moment) -> Result<Result<(), Refusal>, NodeError> {
        let Some(batch) = self.unwritten.pop() else {
            return Ok(Ok(()));
        };
        let Ok(epoch) = self.raft.append_epoch() else {
            return Ok(Ok(()));
        };
        let end = match self.log.append_data(epoch, &batch.records, batch.at) {
            Ok(end) => end,
            Err(error) => {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "an append to the metadata log failed"
                );
                self.take_back(batch.before);
                return Ok(Err(disk_refused()));
            }
        };
        let mut effects = Vec::new();
        self.raft.on_appended(end, &mut effects);
        self.execute(effects, now)?;
        Ok(Ok(()))
    }

    fn take_back(&mut self, before: Replay) {
        let end = self.log.log_end_offset();
        self.unwritten.clear();
        self.uncommitted.retain(|(offset, ..)| *offset <= end);
        self.refused_after = Some(end);
        if let Role::Active(controller) = &mut self.role {
            controller.restore(before);
        }
    }

    /// Where the log ended when the disk refused what was to follow: who waits for more is refused. Told once.
    pub(crate) fn take_refused_after(&mut self) -> Option<Offset> {
        self.refused_after.take()
    }

    /// Decides one request. `Err` of the inner result says why not.
    pub(crate) fn call(
        &mut self,
        request: &Request,
        version: i16,
        now: Moment,
        entropy: &mut dyn Entropy,
    ) -> Result<Result<Called, Refusal>, NodeError> {
        if let Request::DescribeQuorum(request) = request {
            let description = self.raft.describe();
            let response = crate::handlers::describe_quorum::answer(request, description, now.wall);
            return Ok(Ok(Called {
                response: response.into(),
                after: Offset::ZERO,
            }));
        }
        if grows(request) && !self.log.takes_growth() {
            return Ok(Err(disk_refused()));
        }
        let decided = match self.active() {
            Ok(controller) => decide(controller, request, version, now, entropy),
            Err(NotLeader) => Err(Refusal {
                code: ErrorCode::NotController,
                message: None,
            }),
        };
        let outcome = match decided {
            Ok(outcome) => outcome,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let appended = self.append(outcome.records, now)?;
        // Without records the answer may still rest on some that are not committed yet.
        let after = self.decided_end();
        Ok(appended.map(|()| Called {
            response: outcome.response,
            after,
        }))
    }

    /// What time brings: no-ops, brokers that are not heard of, old log that may go.
    pub(crate) fn tick(&mut self, now: Moment) -> Result<(), NodeError> {
        if self.active().is_err() {
            return Ok(());
        }
        while let Ok(controller) = self.active()
            && let Some(outcome) = controller.fence_stale_broker(now.monotonic)
        {
            tracing::warn!(
                broker_id = outcome.response.get(),
                "fences a broker that is not heard of any more"
            );
            if self.append(outcome.records, now)?.is_err() {
                break;
            }
        }
        if now.monotonic.since(self.last_no_op) >= self.options.no_op_interval {
            self.last_no_op = now.monotonic;
            // A refusal is a full disk, which is logged; the next one tries again.
            let _refused = self.append(vec![NoOpRecord::default().into()], now)?;
        }
        if now.monotonic.since(self.last_clean) >= CLEAN_INTERVAL {
            self.last_clean = now.monotonic;
            self.log.clean(self.high_watermark, now.wall)?;
        }
        Ok(())
    }

    /// A sync that has to run, if one has.
    pub(crate) fn begin_sync(&mut self) -> Option<SyncHandle<D>> {
        self.log.begin_sync()
    }

    pub(crate) fn synced(&mut self, done: SyncDone, now: Moment) -> Result<(), NodeError> {
        let synced = self.log.synced(done)?;
        let mut effects = Vec::new();
        self.raft.on_synced(synced, &mut effects);
        self.execute(effects, now)?;
        if self.log.is_synced() {
            // Those who wait for it are told by `take_refused_after`.
            let _refused = self.write(now)?;
        }
        Ok(())
    }

    /// Syncs on this thread until everything is committed.
    pub(crate) fn settle(&mut self, now: Moment) -> Result<(), NodeError> {
        while let Some(handle) = self.begin_sync() {
            self.synced(handle.run(), now)?;
        }
        Ok(())
    }

    pub(crate) fn kraft_version(&self) -> i16 {
        self.raft.kraft_version().level()
    }

    pub(crate) fn high_watermark(&self) -> Offset {
        self.high_watermark
    }

    /// What became committed since the last call, the oldest first.
    pub(crate) fn take_committed(&mut self) -> VecDeque<(Delta, Arc<Image>)> {
        std::mem::take(&mut self.committed)
    }

    /// Asks for a snapshot of what is committed now.
    pub(crate) fn request_snapshot(&mut self) {
        self.snapshots.requested = true;
    }

    /// A snapshot that has to be written, if one is due.
    pub(crate) fn begin_snapshot(&mut self, now: Moment) -> Option<SnapshotJob<D>> {
        let state = &self.snapshots;
        let grown = self.log.log_size_bytes().saturating_sub(state.log_size_bytes);
        let is_due = state.requested
            || grown >= self.options.snapshot_after_bytes
            || now.monotonic.since(state.since) >= self.options.snapshot_after;
        let newest = self.log.newest_snapshot().map_or(Offset::ZERO, |id| id.end_offset);
        if !is_due || state.running || self.latest.end_offset <= newest || self.latest.end_offset > self.high_watermark
        {
            return None;
        }
        self.snapshots = SnapshotState {
            running: true,
            requested: false,
            since: now.monotonic,
            log_size_bytes: self.log.log_size_bytes(),
        };
        Some(
            self.log
                .snapshot_job(Image::clone(&self.latest), self.quorum.clone(), now.wall),
        )
    }

    /// Takes in how a snapshot went. A failed one is tried again when the next is due.
    pub(crate) fn snapshot_done(
        &mut self,
        done: Result<WrittenSnapshot, SnapshotError>,
        now: Moment,
    ) -> Option<SnapshotId> {
        self.snapshots.running = false;
        match done {
            Ok(written) => {
                let id = written.id;
                tracing::info!(%id, "wrote a snapshot of the metadata");
                self.log.snapshot_written(written, now.wall);
                Some(id)
            }
            Err(error) => {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "a snapshot of the metadata failed"
                );
                None
            }
        }
    }

    /// Stops in good order; everything appended is synced.
    pub(crate) fn stop(mut self, now: Moment) -> Result<(), NodeError> {
        self.settle(now)?;
        let mut effects = Vec::new();
        self.raft.on_shutdown(&mut effects);
        self.execute(effects, now)?;
        self.log.close()?;
        Ok(())
    }
}

/// What those are told whose records the disk did not take.
pub(crate) fn disk_refused() -> Refusal {
    Refusal {
        code: ErrorCode::KafkaStorageError,
        message: Some("the controller's disk refused the write".to_owned()),
    }
}

/// Seals and replays the records of a batch that will begin at `log_end`.
fn replay_sealed(
    controller: &mut Controller,
    records: Vec<MetadataRecord>,
    log_end: Offset,
    epoch: ControllerEpoch,
    now: Moment,
) -> Result<Vec<SealedRecord>, Refusal> {
    let sealed = controller.seal(records).map_err(|error| impossible(&error))?;
    let count = i64::try_from(sealed.len()).expect("a batch has fewer than 2^63 records");
    let replayed = controller.replay(&sealed, log_end.plus(count), epoch, now.wall, now.monotonic);
    replayed.map_err(|error| impossible(&error))?;
    Ok(sealed)
}

fn impossible(error: &(dyn std::error::Error + 'static)) -> Refusal {
    tracing::error!(error, "a decision of the controller made records that cannot be");
    Refusal {
        code: ErrorCode::UnknownServerError,
        message: Some("the controller made a record that cannot be".to_owned()),
    }
}

/// Voters of the checkpoint that formatting wrote are still to be put into the log; those of a later snapshot were there.
fn source_of_snapshot<D: Disk>(log: &MetadataLog<D>) -> VoterSetSource {
    match log.newest_snapshot() {
        Some(id) => VoterSetSource::Log(id.end_offset),
        None => VoterSetSource::Bootstrap,
    }
}

/// Whether a request asks for more of what takes room: on a full disk the rest of it is kept for what makes room.
fn grows(request: &Request) -> bool {
    matches!(request, Request::CreateTopics(_) | Request::CreatePartitions(_))
}

fn decide(
    controller: &mut Controller,
    request: &Request,
    version: i16,
    now: Moment,
    entropy: &mut dyn Entropy,
) -> Result<Outcome<Response>, Refusal> {
    let mut context = OpContext {
        now: now.monotonic,
        entropy,
    };
    let context = &mut context;
    match request {
        Request::BrokerRegistration(request) => controller.register_broker(request, context).map(general),
        Request::BrokerHeartbeat(request) => controller.broker_heartbeat(request, context).map(general),
        Request::ControllerRegistration(request) => controller.register_controller(request).map(general),
        Request::CreateTopics(request) => controller.create_topics(request, context).map(general),
        Request::DeleteTopics(request) => controller.delete_topics(request, version).map(general),
        Request::CreatePartitions(request) => controller.create_partitions(request, context).map(general),
        Request::IncrementalAlterConfigs(request) => controller.incremental_alter_configs(request).map(general),
        Request::AlterPartitionReassignments(request) => Ok(general(controller.alter_partition_reassignments(request))),
        Request::ListPartitionReassignments(request) => Ok(general(controller.list_partition_reassignments(request))),
        Request::AllocateProducerIds(request) => controller.allocate_producer_ids(request).map(general),
        Request::AlterPartition(request) => controller.alter_partition(request, version).map(general),
        Request::AssignReplicasToDirs(request) => controller.assign_replicas_to_directories(request).map(general),
        _ => Err(Refusal {
            code: ErrorCode::UnsupportedVersion,
            message: None,
        }),
    }
}

fn general<R: Into<Response>>(outcome: Outcome<R>) -> Outcome<Response> {
    Outcome {
        records: outcome.records,
        response: outcome.response.into(),
    }
}

#[cfg(test)]
pub(crate) mod tests;
