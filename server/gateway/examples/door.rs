//! The HTTP door before any Kafka cluster: `door BOOTSTRAP [PORT]`, for tests of the door by itself. Ends with its input.

use std::time::Duration;

use client::{Client, Options};
use gateway::{Build, GatewayParts, Limits, Readiness};
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio::sync::watch;

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
