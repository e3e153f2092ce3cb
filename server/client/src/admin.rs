//! What operators do: look at the cluster, make and change topics, configurations, offsets and groups.
//!
//! Each call is one operation with a typed outcome. What may be repeated without harm is repeated while errors may pass;
//! an unknown topic or group is an answer, not something to wait for.

mod cluster;
mod configs;
mod groups;
mod offsets;
#[cfg(test)]
mod tests;
mod topics;

pub(crate) use groups::commit_request;

pub use cluster::Cluster;
pub use configs::{ConfigChange, ConfigEntry, ConfigResource, ConfigSource, ConfigSynonym, ConfigType};
pub use groups::{CommittedOffset, GroupDescription, GroupListing, GroupMemberDescription};
pub use offsets::{ListedOffset, ListedOffsets, OffsetSpec};
pub use topics::{CreatedTopic, NewTopic};

use model::ErrorCode;
use protocol::{Request, Response};

use crate::retry::Retry;
use crate::{CallContext, Client, Error, Target};

/// Takes the variant out of an answer, or returns the error that the answer is of another kind.
macro_rules! answer_of {
    ($response:expr, $api:ident) => {
        match $response {
            protocol::Response::$api(response) => response,
            _ => return Err($crate::routing::unexpected(protocol::ApiKey::$api)),
        }
    };
}
pub(crate) use answer_of;

impl Client {
    /// Calls until an answer comes for which `read` has no error that may pass.
    async fn administer<T>(
        &self,
        context: &CallContext,
        target: Target,
        request: impl Into<Request>,
        read: impl Fn(Response) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let request = request.into();
        let mut retry = Retry::within(self.options().call_wait_max);
        loop {
            let result = match self.call(context, target.clone(), request.clone()).await {
                Ok(response) => read(response).inspect_err(|error| self.doubt(&target, error)),
                Err(error) => Err(error),
            };
            match result {
                Err(error) if may_pass(&error) => {
                    if !retry.pause().await {
                        return Err(error);
                    }
                    tracing::debug!(%error, "trying again");
                }
                done => return done,
            }
        }
    }
}

fn may_pass(error: &Error) -> bool {
    let is_answer = matches!(
        error.code(),
        ErrorCode::UnknownTopicOrPartition | ErrorCode::UnknownTopicId | ErrorCode::RequestTimedOut
    );
    error.is_retriable() && !is_answer
}
