//! The answers that a connection still owes: they leave in the order of the requests, and those that are ready together
//! leave in one write.
//!
//! ```text
//!   oldest                                            newest
//!   | later | later | ready | later | … | ready |
//!     ^ waited for: when it is ready, it leaves with all behind it that are ready without a gap
//! ```
//! An answer that comes later ([`Answer::Later`]) is small while it waits, so many may: the more batches one sync of a
//! log serves, the fewer syncs there are. One that is ready behind such may hold a body, and only few may be.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Context, Poll};

use bytes::Bytes;
use protocol::header::encode_response_header;
use protocol::{ApiKey, EncodeError, Response, Writer};

use crate::dispatch::Answer;

/// How many requests of one connection may wait for answers that come later while the next is read. Java's producer
/// keeps five in flight, librdkafka's as many as it can.
const LATER_ANSWERS_MAX: usize = 64;
/// How many answers with their bodies may be ready behind one that is not.
const READY_ANSWERS_MAX: usize = 8;
/// How many answers leave in one write.
const ANSWERS_PER_WRITE_MAX: usize = 64;
/// With so many bytes a write takes no further answer. The first may be as long as it is.
const BYTES_PER_WRITE_MAX: usize = 64 * 1024;

/// Which request an answer is for, as its frame needs it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) api_key: ApiKey,
    pub(crate) version: i16,
    pub(crate) correlation_id: i32,
}

/// An answer cannot be brought into the form of the wire.
#[derive(Debug, thiserror::Error)]
#[error("encoding the answer to {api_key:?} version {version}")]
pub(crate) struct AnswerError {
    api_key: ApiKey,
    version: i16,
    source: EncodeError,
}

/// What follows once a write has been sent.
#[derive(Debug)]
pub(crate) enum Next {
    Serve,
    Close,
    Fail(AnswerError),
}

/// Answers that leave together.
#[derive(Debug)]
pub(crate) struct Outgoing {
    /// Without their lengths; the pieces of a frame are not copied together.
    pub(crate) frames: Vec<Vec<Bytes>>,
    pub(crate) next: Next,
    bytes: usize,
}

impl Outgoing {
    fn new() -> Self {
        Outgoing {
            frames: Vec::new(),
            next: Next::Serve,
            bytes: 0,
        }
    }

    fn add(&mut self, asked: Asked, settled: Settled) {
        match settled {
            Settled::Response(response) => match encode(asked, &response) {
                Ok(pieces) => {
                    self.bytes += pieces.iter().map(Bytes::len).sum::<usize>();
                    self.frames.push(pieces);
                }
                Err(error) => self.next = Next::Fail(error),
            },
            Settled::Nothing => {}
            Settled::Close => self.next = Next::Close,
        }
    }

    fn takes_more(&self) -> bool {
        matches!(self.next, Next::Serve)
            && self.frames.len() < ANSWERS_PER_WRITE_MAX
            && self.bytes < BYTES_PER_WRITE_MAX
    }
}

/// An answer that has come.
enum Settled {
    Response(Box<Response>),
    Nothing,
    Close,
}

struct Owed {
    asked: Asked,
    /// It was to come later when it was queued.
    is_later: bool,
    answer: Answer,
}

impl Owed {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Settled> {
        loop {
            match std::mem::replace(&mut self.answer, Answer::Nothing) {
                Answer::Response(response) => return Poll::Ready(Settled::Response(response)),
                Answer::Nothing => return Poll::Ready(Settled::Nothing),
                Answer::Close => return Poll::Ready(Settled::Close),
                Answer::Later(mut later) => match later.as_mut().poll(context) {
                    Poll::Ready(answer) => self.answer = answer,
                    Poll::Pending => {
                        self.answer = Answer::Later(later);
                        return Poll::Pending;
                    }
                },
            }
        }
    }
}

/// The queue of what is owed, in the order of the requests.
#[derive(Default)]
pub(crate) struct Answers {
    owed: VecDeque<Owed>,
    later: usize,
}

impl Answers {
    pub(crate) fn is_empty(&self) -> bool {
        self.owed.is_empty()
    }

    /// Whether another request may be started.
    pub(crate) fn has_room(&self) -> bool {
        self.later < LATER_ANSWERS_MAX && self.owed.len() - self.later < READY_ANSWERS_MAX
    }

    pub(crate) fn push(&mut self, asked: Asked, answer: Answer) {
        let is_later = matches!(answer, Answer::Later(_));
        self.later += usize::from(is_later);
        self.owed.push_back(Owed {
            asked,
            is_later,
            answer,
        });
    }

    /// Waits for the oldest answer, and takes with it those behind it that are ready too. Nothing is lost where it is
    /// dropped before it resolves. With nothing owed it never does.
    pub(crate) async fn take_ready(&mut self) -> Outgoing {
        poll_fn(|context| self.poll_ready(context)).await
    }

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Outgoing> {
        let owed = self.owed.len();
        let mut outgoing = Outgoing::new();
        while outgoing.takes_more()
            && let Some(first) = self.owed.front_mut()
            && let Poll::Ready(settled) = first.poll(context)
        {
            outgoing.add(first.asked, settled);
            self.later -= usize::from(first.is_later);
            self.owed.pop_front();
        }
        if self.owed.len() == owed {
            return Poll::Pending;
        }
        Poll::Ready(outgoing)
    }
}

fn encode(asked: Asked, response: &Response) -> Result<Vec<Bytes>, AnswerError> {
    let Asked {
        api_key,
        version,
        correlation_id,
    } = asked;
    let mut writer = Writer::new();
    encode_response_header(api_key, version, correlation_id, &mut writer)
        .and_then(|()| response.encode(&mut writer, version))
        .map_err(|source| AnswerError {
            api_key,
            version,
            source,
        })?;
    Ok(writer.finish())
}

#[cfg(test)]
mod tests;
