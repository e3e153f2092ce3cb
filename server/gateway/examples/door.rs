//! The HTTP door before any Kafka cluster: `door BOOTSTRAP [PORT]`, for tests of the door by itself. Ends with its input.
//! There is no node behind it that could run plugins, so it takes no modules.

use std::sync::Arc;
use std::time::Duration;

use client::{Client, Options};
use gateway::{Build, GatewayParts, Limits, Readiness};
use model::TopicName;
use plugin::running::{Deployed, DeploymentError, Followed, ProcessorStatus};
use plugin::{
    Deployment, Digest, Host, Logs, Measurements, Module, ModuleError, ModuleInfo, ProcessorName, RunningPlugins,
    TopicPlugins,
};
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// Runs nothing, and knows of nothing.
struct NoPlugins;

impl Host for NoPlugins {
    fn load(&self, _: &[u8]) -> Result<Arc<dyn Module>, ModuleError> {
        Err(ModuleError::Compile("no plugins are run behind this door".to_owned()))
    }
}

impl RunningPlugins for NoPlugins {
    fn followed(&self) -> Followed {
        Followed::default()
    }

    fn modules(&self) -> Vec<ModuleInfo> {
        Vec::new()
    }

    fn module(&self, _: &Digest) -> Option<ModuleInfo> {
        None
    }

    fn load(&self, digest: &Digest) -> Result<Arc<dyn Module>, DeploymentError> {
        Err(DeploymentError::UnknownModule(*digest))
    }

    fn check(&self, _: &ProcessorName, deployment: &Deployment) -> Result<(), DeploymentError> {
        Err(DeploymentError::UnknownModule(deployment.module))
    }

    fn processors(&self) -> Vec<Deployed> {
        Vec::new()
    }

    fn processor(&self, _: &ProcessorName) -> Option<Deployed> {
        None
    }

    fn status(&self, _: &ProcessorName) -> Option<ProcessorStatus> {
        None
    }

    fn logs(&self, _: &ProcessorName) -> Option<Arc<Logs>> {
        None
    }

    fn measurements(&self, _: &ProcessorName) -> Option<Arc<Measurements>> {
        None
    }

    fn topic_plugins(&self, _: &TopicName) -> Option<Arc<TopicPlugins>> {
        None
    }

    fn is_caught_up(&self) -> bool {
        true
    }

    fn is_changelog_key(&self, _: &[u8]) -> bool {
        false
    }

    fn users(&self, _: &Digest) -> Vec<String> {
        Vec::new()
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let bootstrap = arguments.next().ok_or("usage: door BOOTSTRAP [PORT]")?;
    let port = arguments.next().unwrap_or_else(|| "0".to_owned()).parse::<u16>()?;
    let (readiness_sender, readiness) = watch::channel(Readiness::Starting("the cluster".to_owned()));
    let options = Options {
        call_wait_max: Duration::from_secs(10),
        ..Options::default()
    };
    let client = Client::connect(&[bootstrap], options).await?;
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    eprintln!("http://{}", listener.local_addr()?);
    let parts = GatewayParts {
        client,
        plugins: Arc::new(NoPlugins),
        host: Arc::new(NoPlugins),
        compaction: Arc::new(|_| std::collections::BTreeMap::new()),
        figures: Arc::new(Vec::new),
        build: Build {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: "unknown".to_owned(),
        },
        readiness,
        limits: Limits::default(),
        allowed_hosts: vec!["door.example".to_owned()],
    };
    readiness_sender.send_replace(Readiness::Ready);
    let (stop_sender, stop) = watch::channel(false);
    let serving = tokio::spawn(gateway::serve(vec![listener], parts, stop));
    let mut input = Vec::new();
    tokio::io::stdin().read_to_end(&mut input).await?;
    stop_sender.send_replace(true);
    serving.await??;
    Ok(())
}
