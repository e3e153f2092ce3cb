//! The group coordinators of this node, and the way from a request to the one that it is for.
//!
//! A group belongs to one partition of `__consumer_offsets`, and to the broker that leads it. Requests that name several
//! groups are split by group and put together again in their order.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use coordinator::group::fan_out::{Targets, merge, split};
use coordinator::group::{GroupCall, GroupConfig, GroupRequest, GroupResponse, TopicLookup, request::refusal};
use model::{ErrorCode, PartitionIndex, Uuid};
use network::RequestContext;
use protocol::messages::list_groups_response::ListGroupsResponse;
use tokio::task::AbortHandle;

use super::group_coordinator::GroupCoordinator;
use crate::clock::Clock;
use crate::node::View;
use crate::partitions::Partition;

/// The topic whose partitions are the coordinators.
pub(crate) const OFFSETS_TOPIC: &str = "__consumer_offsets";

struct Running {
    coordinator: Arc<GroupCoordinator>,
    task: AbortHandle,
}

/// All group coordinators of this node.
pub(crate) struct Groups {
    config: GroupConfig,
    clock: Clock,
    running: RwLock<BTreeMap<PartitionIndex, Running>>,
}

/// What a call needs beside the request.
pub(crate) struct Caller<'a> {
    pub(crate) context: &'a RequestContext,
    pub(crate) view: &'a View,
}

impl TopicLookup for View {
    fn id(&self, name: &str) -> Option<Uuid> {
        self.image.topics.by_name(name).map(|topic| topic.id)
    }

    fn has_partition(&self, name: &str, partition: i32) -> bool {
        let index = PartitionIndex::from_wire(partition);
        index.is_some_and(|index| self.image.topics.partition(name, index).is_some())
    }

    fn name(&self, id: Uuid) -> Option<String> {
        self.image.topics.by_id(id).map(|topic| topic.name.as_str().to_owned())
    }
}

impl Groups {
    pub(crate) fn new(config: GroupConfig, clock: Clock) -> Self {
        Groups {
            config,
            clock,
            running: RwLock::default(),
        }
    }

    /// This node leads a partition of the groups' topic.
    pub(crate) fn start(&self, partition: Arc<Partition>) {
        let index = partition.index();
        let mut running = self.running.write().unwrap_or_else(PoisonError::into_inner);
        running.entry(index).or_insert_with(|| {
            let (coordinator, task) = GroupCoordinator::start(partition, self.config.clone(), self.clock.clone());
            Running {
                coordinator,
                task: task.abort_handle(),
            }
        });
    }

    /// This node does not lead that partition any more.
    pub(crate) fn stop(&self, index: PartitionIndex) {
        let mut running = self.running.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(Running { coordinator, task }) = running.remove(&index) {
            coordinator.resign();
            task.abort();
        }
    }

    /// This node does not lead the groups' topic any more.
    pub(crate) fn stop_all(&self) {
        let mut running = self.running.write().unwrap_or_else(PoisonError::into_inner);
        for Running { coordinator, task } in std::mem::take(&mut *running).into_values() {
            coordinator.resign();
            task.abort();
        }
    }

    pub(crate) fn topics_deleted(&self, topics: &[String]) {
        for coordinator in self.all() {
            coordinator.topics_deleted(topics);
        }
    }

    /// Answers any request of the group protocol.
    pub(crate) async fn call(&self, caller: Caller<'_>, request: GroupRequest) -> GroupResponse {
        let version = caller.context.api_version;
        let partitions = caller
            .view
            .image
            .topics
            .by_name(OFFSETS_TOPIC)
            .map_or(0, |topic| topic.partitions.len());
        let Some(partitions) = i32::try_from(partitions).ok().filter(|count| *count > 0) else {
            return match request {
                GroupRequest::ListGroups(_) => ListGroupsResponse::default().into(),
                request => refusal(&request, version, ErrorCode::NotCoordinator),
            };
        };
        let parts: Vec<(Option<Arc<GroupCoordinator>>, GroupRequest)> =
            match split(request.clone(), version, partitions) {
                Targets::Some(parts) => parts.into_iter().map(|(index, part)| (self.get(index), part)).collect(),
                Targets::AllLocal(part) => self.all().into_iter().map(|it| (Some(it), part.clone())).collect(),
            };
        let mut answers = Vec::with_capacity(parts.len());
        for (coordinator, part) in parts {
            answers.push(match coordinator {
                Some(coordinator) => self.ask(&caller, &coordinator, &part).await,
                None => refusal(&part, version, ErrorCode::NotCoordinator),
            });
        }
        merge(answers).unwrap_or_else(|| refusal(&request, version, ErrorCode::None))
    }

    async fn ask(
        &self,
        caller: &Caller<'_>,
        coordinator: &Arc<GroupCoordinator>,
        request: &GroupRequest,
    ) -> GroupResponse {
        let version = caller.context.api_version;
        let mut entropy = [0; 16];
        if getrandom::fill(&mut entropy).is_err() {
            return refusal(request, version, ErrorCode::UnknownServerError);
        }
        let answer = coordinator.hand_in(GroupCall {
            request,
            version,
            client_id: caller.context.client_id.as_deref().unwrap_or_default(),
            client_address: caller.context.client_address.ip(),
            entropy,
            topics: caller.view,
        });
        match answer {
            Ok(answer) => answer
                .await
                .unwrap_or_else(|_| refusal(request, version, ErrorCode::NotCoordinator)),
            Err(code) => refusal(request, version, code),
        }
    }

    fn get(&self, index: PartitionIndex) -> Option<Arc<GroupCoordinator>> {
        let running = self.running.read().unwrap_or_else(PoisonError::into_inner);
        running.get(&index).map(|running| running.coordinator.clone())
    }

    fn all(&self) -> Vec<Arc<GroupCoordinator>> {
        let running = self.running.read().unwrap_or_else(PoisonError::into_inner);
        running.values().map(|running| running.coordinator.clone()).collect()
    }
}
