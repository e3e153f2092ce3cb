//! What leaves together, in which order, and how much may be owed.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
use std::io::{self, IoSlice};
use std::task::Waker;

use protocol::messages::describe_cluster_response::DescribeClusterResponse;
use tokio::io::AsyncWrite;
use tokio::sync::oneshot;

use super::*;
use crate::frame::write_frames;

const FILLER_BYTES: usize = 30_000;

fn asked(correlation_id: i32) -> Asked {
    Asked {
        api_key: ApiKey::DescribeCluster,
        version: 0,
        correlation_id,
    }
}

fn response() -> Answer {
    Answer::now(DescribeClusterResponse::default())
}

fn large_response() -> Answer {
    let filler = "x".repeat(FILLER_BYTES);
    Answer::now(DescribeClusterResponse {
        cluster_id: filler.as_str().into(),
        error_message: Some(filler.as_str().into()),
        ..Default::default()
    })
}

/// An answer that comes when the sender is used.
fn later() -> (oneshot::Sender<Answer>, Answer) {
    let (release, released) = oneshot::channel();
    let answer = async move { released.await.unwrap_or(Answer::Close) };
    (release, Answer::Later(Box::pin(answer)))
}

fn push_later(answers: &mut Answers, ids: std::ops::Range<i32>) -> Vec<oneshot::Sender<Answer>> {
    ids.map(|id| {
        let (release, answer) = later();
        answers.push(asked(id), answer);
        release
    })
    .collect()
}

fn release(sender: oneshot::Sender<Answer>) {
    assert!(sender.send(response()).is_ok());
}

fn take(answers: &mut Answers) -> Poll<Outgoing> {
    answers.poll_ready(&mut Context::from_waker(Waker::noop()))
}

fn taken(answers: &mut Answers) -> Outgoing {
    match take(answers) {
        Poll::Ready(outgoing) => outgoing,
        Poll::Pending => panic!("nothing was ready"),
    }
}

fn ids(outgoing: &Outgoing) -> Vec<i32> {
    let id = |pieces: &Vec<Bytes>| i32::from_be_bytes(*pieces.concat().first_chunk().unwrap());
    outgoing.frames.iter().map(id).collect()
}

#[test]
fn answers_that_get_ready_out_of_order_leave_in_order() {
    let mut answers = Answers::default();
    let mut senders = push_later(&mut answers, 0..4);
    let last = senders.pop().unwrap();
    let first = senders.remove(0);
    senders.into_iter().rev().for_each(release);
    assert!(take(&mut answers).is_pending());
    release(first);
    assert_eq!(ids(&taken(&mut answers)), [0, 1, 2]);
    assert!(take(&mut answers).is_pending());
    release(last);
    assert_eq!(ids(&taken(&mut answers)), [3]);
    assert!(answers.is_empty());
}

#[test]
fn an_answer_that_is_put_off_twice_is_waited_for() {
    let mut answers = Answers::default();
    let (outer, answer) = later();
    answers.push(asked(0), answer);
    let (inner, answer) = later();
    assert!(outer.send(answer).is_ok());
    assert!(take(&mut answers).is_pending());
    release(inner);
    assert_eq!(ids(&taken(&mut answers)), [0]);
}

#[tokio::test]
async fn what_is_ready_together_leaves_in_one_write() {
    let mut answers = Answers::default();
    push_later(&mut answers, 0..ANSWERS_PER_WRITE_MAX as i32)
        .into_iter()
        .for_each(release);
    let outgoing = taken(&mut answers);
    let mut wire = Counting::default();
    write_frames(&mut wire, &outgoing.frames).await.unwrap();
    assert_eq!((outgoing.frames.len(), wire.writes), (ANSWERS_PER_WRITE_MAX, 1));
    let frame_bytes = outgoing.frames[0].concat().len();
    assert_eq!(wire.bytes.len(), ANSWERS_PER_WRITE_MAX * (4 + frame_bytes));
}

#[test]
fn a_write_takes_so_many_answers_and_no_more() {
    let mut answers = Answers::default();
    let all = ANSWERS_PER_WRITE_MAX as i32 + 3;
    push_later(&mut answers, 0..all).into_iter().for_each(release);
    assert_eq!(taken(&mut answers).frames.len(), ANSWERS_PER_WRITE_MAX);
    assert_eq!(ids(&taken(&mut answers)), [all - 3, all - 2, all - 1]);
}

#[test]
fn a_write_that_is_long_enough_takes_no_further_answer() {
    let mut answers = Answers::default();
    for id in 0..3 {
        answers.push(asked(id), large_response());
    }
    let fitting = BYTES_PER_WRITE_MAX.div_ceil(2 * FILLER_BYTES);
    assert_eq!(taken(&mut answers).frames.len(), fitting);
    assert_eq!(taken(&mut answers).frames.len(), 3 - fitting);
}

#[test]
fn few_answers_may_be_ready_behind_one_that_is_not() {
    let mut answers = Answers::default();
    let first = push_later(&mut answers, 0..1).remove(0);
    for id in 1..=READY_ANSWERS_MAX as i32 {
        assert!(answers.has_room(), "{id}");
        answers.push(asked(id), response());
    }
    assert!(!answers.has_room());
    release(first);
    assert_eq!(taken(&mut answers).frames.len(), 1 + READY_ANSWERS_MAX);
    assert!(answers.has_room());
}

#[test]
fn many_answers_may_come_later() {
    let mut answers = Answers::default();
    let mut senders = push_later(&mut answers, 0..LATER_ANSWERS_MAX as i32 - 1);
    assert!(answers.has_room());
    senders.extend(push_later(&mut answers, 0..1));
    assert!(!answers.has_room());
    release(senders.remove(0));
    assert_eq!(taken(&mut answers).frames.len(), 1);
    assert!(answers.has_room());
}

#[test]
fn an_end_comes_after_what_was_answered_before_it() {
    let mut answers = Answers::default();
    answers.push(asked(0), response());
    answers.push(asked(1), Answer::Nothing);
    answers.push(asked(2), response());
    answers.push(asked(3), Answer::Close);
    answers.push(asked(4), response());
    let outgoing = taken(&mut answers);
    assert_eq!(ids(&outgoing), [0, 2]);
    assert!(matches!(outgoing.next, Next::Close));
}

/// Takes all it is given, and counts how often.
#[derive(Default)]
struct Counting {
    bytes: Vec<u8>,
    writes: usize,
}

impl AsyncWrite for Counting {
    fn poll_write(self: std::pin::Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: std::pin::Pin<&mut Self>,
        _context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.writes += 1;
        slices.iter().for_each(|slice| self.bytes.extend_from_slice(slice));
        Poll::Ready(Ok(slices.iter().map(|slice| slice.len()).sum()))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: std::pin::Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: std::pin::Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
