//! A broker's life in its cluster: register, catch up, be unfenced, beat, and leave in order (KIP-631).
//!
//! ```text
//! register ──> catch up (beat every 10 ms, fenced) ──> running (beat every 2 s) ──> want to shut down ──> leave
//! ```

use std::sync::Arc;
use std::time::Duration;

use model::{ErrorCode, Uuid};
use protocol::messages::broker_heartbeat_request::BrokerHeartbeatRequest;
use protocol::messages::broker_heartbeat_response::BrokerHeartbeatResponse;
use protocol::messages::broker_registration_request::{BrokerRegistrationRequest, Feature, Listener};
use protocol::{Request, Response, Text};
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use crate::node::Broker;

/// How often a broker beats until it has caught up with the metadata log.
const CATCH_UP_BEAT: Duration = Duration::from_millis(10);
/// How long to wait before a failed registration or beat is tried again.
const RETRY_WAIT: Duration = Duration::from_secs(2);
/// `initial.broker.registration.timeout.ms`
const REGISTRATION_WAIT_MAX: Duration = Duration::from_secs(60);
/// How long a broker waits for leave to go; after that it goes without.
const SHUTDOWN_WAIT_MAX: Duration = Duration::from_secs(10);

/// A listener as other nodes and clients are told of it.
#[derive(Clone, Debug)]
pub struct Advertised {
    pub name: String,
    pub host: String,
    pub port: u16,
    /// Kafka's number: 0 is plaintext.
    pub security_protocol: i16,
}

/// What a broker tells the controller of itself.
#[derive(Clone, Debug)]
pub struct Registration {
    /// New for each process.
    pub incarnation_id: Uuid,
    pub listeners: Vec<Advertised>,
    /// Name, least and greatest level of each feature.
    pub features: Vec<(&'static str, i16, i16)>,
    pub rack: Option<String>,
    pub log_directories: Vec<Uuid>,
    /// The epoch under which it was shut down in order; none after a crash.
    pub previous_broker_epoch: Option<i64>,
}

/// Why a broker does not become part of its cluster.
#[derive(Debug, thiserror::Error)]
pub enum RegistrationError {
    #[error("the controller refused broker {broker_id}: {code}")]
    Refused { broker_id: i32, code: ErrorCode },
    #[error("the controller did not register broker {broker_id} within {} s", REGISTRATION_WAIT_MAX.as_secs())]
    Timeout { broker_id: i32 },
}

/// Registers; returns the broker epoch.
///
/// # Errors
/// If the controller refuses for good, or does not answer in time.
pub(crate) async fn register(broker: &Arc<Broker>, registration: &Registration) -> Result<i64, RegistrationError> {
    let broker_id = broker.id().get();
    let deadline = Instant::now() + REGISTRATION_WAIT_MAX;
    loop {
        match broker
            .controller()
            .call(Request::from(registration_request(broker, registration)))
            .await
        {
            Ok(Response::BrokerRegistration(response)) => match ErrorCode::from_code(response.error_code) {
                Some(ErrorCode::None) => {
                    info!(broker_id, broker_epoch = response.broker_epoch, "registered");
                    return Ok(response.broker_epoch);
                }
                // The former incarnation's session may have to end first.
                Some(ErrorCode::DuplicateBrokerRegistration | ErrorCode::NotController) => {
                    warn!(broker_id, code = response.error_code, "registration postponed");
                }
                code => {
                    let code = code.unwrap_or(ErrorCode::UnknownServerError);
                    return Err(RegistrationError::Refused { broker_id, code });
                }
            },
            Ok(_) => {
                return Err(RegistrationError::Refused {
                    broker_id,
                    code: ErrorCode::UnknownServerError,
                });
            }
            Err(error) => warn!(broker_id, %error, "registration failed"),
        }
        if Instant::now() + RETRY_WAIT > deadline {
            return Err(RegistrationError::Timeout { broker_id });
        }
        sleep(RETRY_WAIT).await;
    }
}

fn registration_request(broker: &Arc<Broker>, registration: &Registration) -> BrokerRegistrationRequest {
    let listeners = registration.listeners.iter().map(|listener| Listener {
        name: Text::from(listener.name.as_str()),
        host: Text::from(listener.host.as_str()),
        port: listener.port,
        security_protocol: listener.security_protocol,
        ..Default::default()
    });
    let features = registration.features.iter().map(|(name, min, max)| Feature {
        name: Text::from(*name),
        min_supported_version: *min,
        max_supported_version: *max,
        ..Default::default()
    });
    BrokerRegistrationRequest {
        broker_id: broker.id().get(),
        cluster_id: Text::from(broker.cluster_id()),
        incarnation_id: registration.incarnation_id,
        listeners: listeners.collect(),
        features: features.collect(),
        rack: registration.rack.as_deref().map(Text::from),
        is_migrating_zk_broker: false,
        log_dirs: registration.log_directories.clone(),
        previous_broker_epoch: registration.previous_broker_epoch.unwrap_or(-1),
        ..Default::default()
    }
}

/// Beats until the metadata log has been read up to the registration, then until the controller has lifted the fence.
pub(crate) async fn catch_up(broker: &Arc<Broker>) {
    loop {
        let caught_up = beat(broker, true, false)
            .await
            .is_some_and(|response| response.is_caught_up);
        if caught_up && broker.metadata_offset() >= broker.epoch() {
            break;
        }
        sleep(CATCH_UP_BEAT).await;
    }
    while beat(broker, false, false)
        .await
        .is_none_or(|response| response.is_fenced)
    {
        sleep(CATCH_UP_BEAT).await;
    }
}

/// Beats for as long as the task lives.
pub(crate) async fn keep_beating(broker: Arc<Broker>) {
    loop {
        sleep(broker.settings().heartbeat.interval).await;
        if beat(&broker, false, false)
            .await
            .is_none_or(|response| response.is_fenced)
        {
            warn!(
                broker_id = broker.id().get(),
                "fenced by the controller or out of its reach"
            );
        }
    }
}

/// Beats until the controller has heard which directories have failed.
pub(crate) async fn tell_of_failure(broker: &Arc<Broker>) {
    while beat(broker, false, false).await.is_none() {
        sleep(RETRY_WAIT).await;
    }
}

/// Asks for leave to go and waits until it is given, for a while.
pub(crate) async fn leave(broker: &Arc<Broker>) {
    let deadline = Instant::now() + SHUTDOWN_WAIT_MAX;
    while Instant::now() < deadline {
        match beat(broker, false, true).await {
            Some(response) if response.should_shut_down => return,
            Some(_) => sleep(CATCH_UP_BEAT).await,
            None => return,
        }
    }
}

/// One beat; `None` where it was not heard or refused.
async fn beat(broker: &Arc<Broker>, want_fence: bool, want_shut_down: bool) -> Option<BrokerHeartbeatResponse> {
    let request = BrokerHeartbeatRequest {
        broker_id: broker.id().get(),
        broker_epoch: broker.epoch(),
        current_metadata_offset: broker.metadata_offset(),
        want_fence,
        want_shut_down,
        offline_log_dirs: broker.directories().offline_ids(),
        cordoned_log_dirs: (!want_fence).then(Vec::new),
        ..Default::default()
    };
    match broker.controller().call(Request::from(request)).await {
        Ok(Response::BrokerHeartbeat(response)) if response.error_code == ErrorCode::None.code() => Some(response),
        Ok(Response::BrokerHeartbeat(response)) => {
            warn!(
                broker_id = broker.id().get(),
                code = response.error_code,
                "heartbeat refused"
            );
            None
        }
        Ok(_) => None,
        Err(error) => {
            warn!(broker_id = broker.id().get(), %error, "heartbeat failed");
            None
        }
    }
}
