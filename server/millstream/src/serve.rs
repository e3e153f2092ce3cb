//! `serve`: one node from start to stop, both roles in one process.
//!
//! ```text
//! start: sockets ─> directories ─> controller quorum ─> broker registers, catches up ─> doors open
//! stop:  tasks finish their step ─> leave the cluster ─> doors close ─> logs close ─> quorum closes ─> directories marked as clean
//! ```

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use broker::{
    BrokerParts, ClientDoor, Clock, ControllerClient, LogDirectories, Plugins, PluginsParts, Registration,
    RunningBroker,
};
use client::Client;
use gateway::{Build, GatewayParts, Limits, Readiness};
use metadata::image::FeaturesImage;
use network::{Dispatch, Listener};
use quorum::{ControllerDispatch, ImageStream, Quorum};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tracing::{error, info, warn};

use crate::config::{NodeConfig, ServeArgs};
use crate::directories::{Directories, draw};
use crate::doors::Doors;
use crate::in_process::InProcessController;
use crate::node::{self, QuorumParts};
use crate::plugin_host::LazyHost;
use crate::{figures, output, telemetry};

/// How many threads may wait for disks at a time.
const BLOCKING_THREADS_MAX: usize = 64;
/// How many steps of the metadata log wait for the broker; the quorum folds what comes meanwhile into one.
const METADATA_UPDATES_MAX: usize = 1;
/// Below the data directory: the native code of modules.
const COMPILED_FOLDER: &str = "compiled";
/// The commit that this was built from, where the build was told.
const COMMIT: Option<&str> = option_env!("MILLSTREAM_COMMIT");
/// With fewer open files a node is not of much use.
const FILES_MIN: u64 = 4096;
/// How long the last tasks may take when the node has stopped.
const RUNTIME_WAIT_MAX: Duration = Duration::from_secs(5);

/// Runs a node until it is told to stop.
pub(crate) fn run(args: ServeArgs) -> anyhow::Result<()> {
    telemetry::install();
    let config = NodeConfig::load(args)?;
    raise_file_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .build()
        .context("starting the runtime")?;
    let result = runtime.block_on(serve(config));
    runtime.shutdown_timeout(RUNTIME_WAIT_MAX);
    result
}

/// Lets the node have as many files open as the system would give it: each segment has three, each connection one.
fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current < limit.maximum || limit.maximum.is_none() {
        let raised = Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            warn!(%error, current = limit.current, maximum = limit.maximum, "the limit of open files stays where it is");
        }
    }
    let limit = getrlimit(Resource::Nofile).current;
    if let Some(limit) = limit.filter(|limit| *limit < FILES_MIN) {
        warn!(
            limit,
            "few files may be open (ulimit -n): each partition takes one and each older segment three, each connection one"
        );
    }
}

async fn serve(config: NodeConfig) -> anyhow::Result<()> {
    let NodeConfig {
        static_configs,
        settings,
        data_directory,
    } = config;
    let clock = Clock::start();
    let doors = Doors::bind(&settings).await?;
    let advertised = doors.advertised(&settings)?;
    let found = Directories::open(&settings, |paths, metadata_directory| {
        node::format(
            &settings,
            paths,
            metadata_directory,
            &advertised.controller,
            clock.now(),
        )
    })?;
    let quorum = node::start_quorum(QuorumParts {
        settings: &settings,
        static_configs: static_configs.clone(),
        cluster_id: &found.cluster_id,
        disk: found.metadata_disk,
        metadata_directory: &found.metadata_directory,
        directory_id: found.metadata_directory_id,
        endpoints: &advertised.controller,
    })?;
    let controller = Arc::new(ControllerDispatch::new(quorum.handle()));
    let channel = InProcessController {
        controller: controller.clone(),
        handle: quorum.handle(),
        listener: settings
            .listeners
            .controller_names
            .first()
            .map_or("CONTROLLER", String::as_str)
            .into(),
        node_id: settings.node_id.get(),
    };
    let directories = LogDirectories::new(found.opened, settings.topic_defaults.file_delete_delay)?;
    let directories = Arc::new(directories.with(found.missing, &found.metadata_directory));
    let bootstrap = advertised
        .broker
        .first()
        .map_or_else(String::new, |it| format!("{}:{}", it.host, it.port));
    let registration = Registration {
        incarnation_id: draw()?,
        listeners: advertised.broker,
        features: FeaturesImage::SUPPORTED.to_vec(),
        rack: settings.rack.clone(),
        log_directories: directories.ids(),
        previous_broker_epoch: directories.previous_broker_epoch(),
    };
    let (node_id, inter_broker_name) = (settings.node_id, settings.listeners.inter_broker_name.clone());
    let parts = BrokerParts {
        cluster_id: found.cluster_id,
        clock,
        static_configs,
        settings,
        controller: ControllerClient::new(Arc::new(channel)),
        directories: directories.clone(),
    };
    let (sender, updates) = mpsc::channel(METADATA_UPDATES_MAX);
    tokio::spawn(hand_on(quorum.handle().subscribe(), sender));
    // The controller answers from the start: tools may ask it while the broker catches up.
    let mut open = OpenDoors::new();
    open.serve(doors.controller, &controller);
    let broker = broker::start(parts, registration, updates).await?;
    let door = Arc::new(ClientDoor::new(broker.broker().clone()));
    open.serve(doors.broker, &door);
    let listener = inter_broker_name.as_str().into();
    let client = Client::in_process(
        door,
        node_id,
        client::Options {
            listener,
            ..client::Options::default()
        },
    );
    let host = Arc::new(LazyHost::new(data_directory.join(COMPILED_FOLDER)));
    let plugins = Plugins::start(
        broker.broker(),
        PluginsParts {
            client: client.clone(),
            host: host.clone(),
            data_directory,
        },
    );
    let greeting = greeting(&bootstrap, &doors.http);
    open.serve_http(
        doors.http,
        GatewayParts {
            client,
            plugins: plugins.running(),
            host,
            figures: figures::of(broker.broker()),
            compaction: figures::compaction(broker.broker()),
            build: Build {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                commit: COMMIT.unwrap_or("unknown").to_owned(),
            },
            readiness: open.readiness.subscribe(),
            limits: Limits::default(),
            allowed_hosts: Vec::new(),
        },
    );
    info!("ready");
    output::tell(&greeting);
    let mut node = Node {
        quorum,
        broker,
        plugins,
        open,
        directories,
    };
    node.until_stopped().await?;
    node.stop().await
}

/// Where the node is found, and how to write and read a first record by HTTP.
fn greeting(bootstrap: &str, http: &[TcpListener]) -> String {
    let mut text = format!("Kafka clients: {bootstrap}");
    if let Some(address) = http.first().and_then(|listener| listener.local_addr().ok()) {
        let topics = format!("http://{address}/api/v1/topics");
        let json = "-H 'content-type: application/json'";
        text.push_str(&format!(
            "\nHTTP: http://{address}, described at http://{address}/docs\nPage: http://{address}/ui/\n\n  \
             curl {json} -d '{{\"name\":\"hello\",\"partitions\":3}}' {topics}\n  \
             curl {json} -d '{{\"records\":[{{\"key\":\"a\",\"value\":{{\"n\":1}}}}]}}' {topics}/hello/records\n  \
             curl '{topics}/hello/records?from=earliest&limit=10'\n"
        ));
    }
    text
}

/// Hands each committed image to the broker.
async fn hand_on(mut images: ImageStream, broker: mpsc::Sender<broker::MetadataUpdate>) {
    while let Some(published) = images.next().await {
        if broker.send((published.delta, published.image)).await.is_err() {
            return;
        }
    }
}

/// The listeners that serve, and the switch that closes them.
struct OpenDoors {
    stop: watch::Sender<bool>,
    readiness: watch::Sender<Readiness>,
    serving: JoinSet<()>,
}

impl OpenDoors {
    fn new() -> Self {
        OpenDoors {
            stop: watch::Sender::new(false),
            readiness: watch::Sender::new(Readiness::Starting("the broker is joining the cluster".to_owned())),
            serving: JoinSet::new(),
        }
    }

    fn serve<N: Dispatch>(&mut self, listeners: Vec<Listener>, node: &Arc<N>) {
        for listener in listeners {
            let address = listener
                .local_address()
                .map(|address| address.to_string())
                .unwrap_or_default();
            info!(listener = listener.name(), address, "listening");
            self.serving.spawn(listener.serve(node.clone(), self.stop.subscribe()));
        }
    }

    fn serve_http(&mut self, listeners: Vec<TcpListener>, parts: GatewayParts) {
        self.readiness.send_replace(Readiness::Ready);
        let stop = self.stop.subscribe();
        self.serving.spawn(async move {
            if let Err(error) = gateway::serve(listeners, parts, stop).await {
                error!(%error, "the HTTP door cannot be opened");
            }
        });
    }

    /// Ends every connection.
    async fn close(&mut self) {
        self.readiness.send_replace(Readiness::Stopping);
        self.stop.send_replace(true);
        while self.serving.join_next().await.is_some() {}
    }
}

/// A node that serves.
struct Node {
    quorum: Quorum,
    broker: RunningBroker,
    plugins: Plugins,
    open: OpenDoors,
    directories: Arc<LogDirectories>,
}

impl Node {
    /// Returns when somebody asks the node to stop.
    ///
    /// # Errors
    /// If a part of the node cannot go on.
    async fn until_stopped(&mut self) -> anyhow::Result<()> {
        let mut terminate = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
        let mut interrupt = signal(SignalKind::interrupt()).context("listening for SIGINT")?;
        tokio::select! {
            _ = terminate.recv() => info!("told to stop"),
            _ = interrupt.recv() => info!("interrupted: stopping"),
            why = self.broker.failed() => anyhow::bail!("the broker cannot go on: {why}"),
            error = self.quorum.ended() => return Err(error).context("the controller quorum cannot go on"),
        }
        Ok(())
    }

    async fn stop(mut self) -> anyhow::Result<()> {
        self.plugins.stop().await;
        self.broker.leave().await;
        self.open.close().await;
        let closed = self.broker.stop().await;
        self.quorum.stop().await.context("closing the metadata log")?;
        match closed {
            Ok(broker_epoch) => {
                self.directories.mark_clean(broker_epoch)?;
                info!("stopped in good order");
                Ok(())
            }
            Err(error) => {
                error!("the logs were not closed in good order: the next start looks them over");
                Err(error.into())
            }
        }
    }
}
