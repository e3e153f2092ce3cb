//! A client of the HTTP door of a node: one request a connection, an answer that is JSON or a problem document.
//!
//! What an answer may take is bounded in bytes, and in time until it is there; a stream may stay open.

use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use clap::Args;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, USER_AGENT};
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

/// Largest answer that is read, in bytes.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// Of a problem's errors, how many are shown.
const ERRORS_SHOWN_MAX: usize = 5;
const PORT_DEFAULT: u16 = 80;

/// Which door.
#[derive(Args, Debug, Clone)]
pub(crate) struct DoorArgs {
    /// The HTTP door of a node.
    #[arg(
        long,
        global = true,
        value_name = "URL",
        env = "MILLSTREAM_URL",
        default_value = "http://127.0.0.1:8080",
        value_parser = door_url
    )]
    pub(crate) http: Uri,
}

/// Why a request has no answer that could be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    #[error("{url} cannot be reached")]
    Connect {
        url: String,
        #[source]
        cause: std::io::Error,
    },
    #[error("{url} did not answer within {} s", limit.as_secs())]
    Timeout { url: String, limit: Duration },
    /// What the other side says went wrong, in a line.
    #[error("{0}")]
    Refused(String),
}

/// What is sent along.
pub(crate) enum Payload {
    Nothing,
    Json(Value),
    Module(Bytes),
}

/// The door that requests go to.
pub(crate) struct Door {
    url: Uri,
    timeout: Duration,
}

impl Door {
    pub(crate) fn new(url: Uri, timeout: Duration) -> Self {
        Door { url, timeout }
    }

    pub(crate) async fn get(&self, path: &str) -> anyhow::Result<Value> {
        Ok(self.send(Method::GET, path, Payload::Nothing).await?.1)
    }

    /// The status, and the body: null if there is none.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        payload: Payload,
    ) -> anyhow::Result<(StatusCode, Value)> {
        let whole = async {
            let response = self.exchange(method, path, payload, "application/json").await?;
            let status = response.status();
            let body = collect(response).await?;
            let body = if body.is_empty() {
                Value::Null
            } else {
                serde_json::from_slice(&body).context("the answer is no JSON")?
            };
            Ok((status, body))
        };
        let late = || HttpError::Timeout {
            url: self.url.to_string(),
            limit: self.timeout,
        };
        tokio::time::timeout(self.timeout, whole).await.map_err(|_| late())?
    }

    /// Opens a stream of events; its beginning must come in time, the rest may take for ever.
    pub(crate) async fn open(&self, path: &str) -> anyhow::Result<Incoming> {
        let begin = self.exchange(Method::GET, path, Payload::Nothing, "text/event-stream");
        let late = || HttpError::Timeout {
            url: self.url.to_string(),
            limit: self.timeout,
        };
        let response = tokio::time::timeout(self.timeout, begin).await.map_err(|_| late())??;
        Ok(response.into_body())
    }

    /// One request on a connection of its own; any status from 400 on is an error.
    async fn exchange(
        &self,
        method: Method,
        path: &str,
        payload: Payload,
        accept: &str,
    ) -> anyhow::Result<Response<Incoming>> {
        let authority = self.url.authority().context("the URL names no host")?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        let address = (host, authority.port_u16().unwrap_or(PORT_DEFAULT));
        let socket = TcpStream::connect(address).await.map_err(|cause| HttpError::Connect {
            url: self.url.to_string(),
            cause,
        })?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(socket))
            .await
            .context("opening the connection")?;
        // What goes wrong with the connection is told by the answer that does not come.
        tokio::spawn(connection);
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, authority.as_str())
            .header(USER_AGENT, concat!("millstream/", env!("CARGO_PKG_VERSION")))
            .header(ACCEPT, accept);
        let body = match payload {
            Payload::Nothing => {
                // The door wants a content type that a page could not send unasked, with or without a body.
                request = request.header(CONTENT_TYPE, "application/json");
                Bytes::new()
            }
            Payload::Json(value) => {
                request = request.header(CONTENT_TYPE, "application/json");
                Bytes::from(value.to_string())
            }
            Payload::Module(bytes) => {
                request = request.header(CONTENT_TYPE, "application/wasm");
                bytes
            }
        };
        let request = request.body(Full::new(body)).context("making the request")?;
        let response = sender.send_request(request).await.context("waiting for the answer")?;
        let status = response.status();
        if status.as_u16() < 400 {
            return Ok(response);
        }
        let body = collect(response).await.unwrap_or_default();
        Err(HttpError::Refused(refusal(status, &body)).into())
    }
}

async fn collect(response: Response<Incoming>) -> anyhow::Result<Bytes> {
    let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
    let body = body
        .map_err(|error| anyhow::anyhow!(error))
        .context("reading the answer")?;
    Ok(body.to_bytes())
}

/// An address of the door: plain HTTP, a host, and nothing behind it.
fn door_url(text: &str) -> Result<Uri, String> {
    let url: Uri = text.parse().map_err(|error| format!("it is no URL: {error}"))?;
    match url.scheme_str() {
        Some("http") => {}
        Some(other) => return Err(format!("{other}:// is not supported, only http://")),
        None => return Err("http://HOST:PORT is expected".to_owned()),
    }
    if url.path() != "/" || url.query().is_some() {
        return Err(format!("{} behind the host is not expected", url.path()));
    }
    Ok(url)
}

/// A problem document in one line: what happened, then what is wrong with each part.
fn refusal(status: StatusCode, body: &[u8]) -> String {
    let problem: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |name: &str| problem[name].as_str().filter(|text| !text.is_empty());
    let title = text("title").or(status.canonical_reason()).unwrap_or("refused");
    let mut line = match (text("detail"), text("code")) {
        (Some(detail), Some(code)) => format!("{detail} ({code}, {})", status.as_u16()),
        (Some(detail), None) => format!("{detail} ({})", status.as_u16()),
        (None, _) => format!("{title} ({})", status.as_u16()),
    };
    let errors = problem["errors"].as_array().map_or(&[][..], Vec::as_slice);
    for error in errors.iter().take(ERRORS_SHOWN_MAX) {
        let detail = error["detail"].as_str().or(error.as_str());
        let place = ["field", "pointer", "index"]
            .iter()
            .find_map(|name| match &error[*name] {
                Value::Null => None,
                Value::String(text) => Some(text.clone()),
                other => Some(other.to_string()),
            });
        let Some(detail) = detail.filter(|detail| text("detail") != Some(detail)) else {
            continue;
        };
        match place {
            Some(place) => line.push_str(&format!("; {place}: {detail}")),
            None => line.push_str(&format!("; {detail}")),
        }
    }
    if errors.len() > ERRORS_SHOWN_MAX {
        line.push_str(&format!("; and {} more", errors.len() - ERRORS_SHOWN_MAX));
    }
    line.replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(status: u16, body: &str) -> String {
        refusal(StatusCode::from_u16(status).unwrap(), body.as_bytes())
    }

    #[test]
    fn a_problem_is_shown_in_one_line() {
        let body = r#"{"title":"Conflict","status":409,"detail":"two\nlines","code":"module_in_use"}"#;
        assert_eq!(shown(409, body), "two lines (module_in_use, 409)");
        let body = r#"{"title":"Bad Request","detail":"a","code":"c","errors":[
            {"field":"window","detail":"b"},{"index":3,"detail":"d"},{"detail":"a"},"e"]}"#;
        assert_eq!(shown(400, body), "a (c, 400); window: b; 3: d; e");
    }

    #[test]
    fn an_answer_that_is_no_problem_shows_its_status() {
        assert_eq!(shown(502, "<html>"), "Bad Gateway (502)");
        assert_eq!(shown(418, ""), "I'm a teapot (418)");
    }

    #[test]
    fn only_plain_addresses_of_a_door_are_taken() {
        assert_eq!(door_url("http://[::1]:80/").unwrap().host(), Some("[::1]"));
        for bad in [
            "",
            "localhost:8080",
            "https://a",
            "http://a/b",
            "http://a/?b",
            "http://",
        ] {
            assert!(door_url(bad).is_err(), "{bad}");
        }
    }
}
