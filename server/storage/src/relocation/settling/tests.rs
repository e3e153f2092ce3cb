//! Verdicts, one line a case.

use super::super::note::MoveNote;
use super::*;

const A: Uuid = Uuid::from_bytes([0xa; 16]);
const B: Uuid = Uuid::from_bytes([0xb; 16]);
const C: Uuid = Uuid::from_bytes([0xc; 16]);

fn note(id: u8, from: Uuid, to: Uuid) -> Noted {
    Noted::Move(MoveNote {
        id: Uuid::from_bytes([id; 16]),
        from,
        to,
    })
}

fn judged(holders: &[(Uuid, Noted)], missing: &[Uuid], assigned: Uuid) -> String {
    let holders: Vec<Holder> = holders
        .iter()
        .map(|(directory, noted)| Holder {
            directory: *directory,
            noted: *noted,
        })
        .collect();
    match judge(&holders, |id| !missing.contains(&id), Some(assigned)) {
        Judgement::Nowhere => "nowhere".to_owned(),
        Judgement::Unreadable => "unreadable".to_owned(),
        Judgement::WaitsFor(id) => format!("waits for {:x}", id.as_bytes()[0]),
        Judgement::At {
            log,
            aside,
            note_is_over,
        } => {
            let name = |at: usize| format!("{:x}", holders[at].directory.as_bytes()[0]);
            let aside: Vec<String> = aside
                .iter()
                .map(|(at, kind)| format!(" {:?} {}", kind, name(*at)))
                .collect();
            let kept = if note_is_over { "" } else { ", note kept" };
            format!("{}{}{kept}", name(log), aside.concat())
        }
    }
}

#[test]
fn the_log_is_where_the_move_has_got_to() {
    let (leaving, arrived) = (note(1, A, B), note(1, A, B));
    assert_eq!(judged(&[], &[], A), "nowhere");
    assert_eq!(judged(&[(A, Noted::Nothing)], &[], A), "a");
    // Between steps 2 and 3.
    assert_eq!(judged(&[(A, leaving)], &[], A), "a");
    // Between 3 and 4, in either order of the directories.
    assert_eq!(judged(&[(A, leaving), (B, arrived)], &[], A), "b Deleted a");
    assert_eq!(judged(&[(B, arrived), (A, leaving)], &[], A), "b Deleted a");
    // Between 4 and 5.
    assert_eq!(judged(&[(B, arrived)], &[], A), "b");
    // Withdrawn after step 3, and another one begun since.
    assert_eq!(judged(&[(A, Noted::Nothing), (B, arrived)], &[], A), "a Stray b");
    assert_eq!(judged(&[(A, note(2, A, B)), (B, arrived)], &[], A), "a Stray b");
    assert_eq!(judged(&[(A, note(2, A, C)), (B, arrived)], &[], A), "a Stray b");
}

#[test]
fn what_a_missing_directory_would_have_to_tell_is_not_guessed() {
    let moving = note(1, A, B);
    assert_eq!(judged(&[(A, moving)], &[B], A), "waits for b");
    assert_eq!(judged(&[(A, moving)], &[B], B), "waits for b");
    assert_eq!(judged(&[(B, moving)], &[A], A), "waits for a");
    // The controller knows that it was over.
    assert_eq!(judged(&[(B, moving)], &[A], B), "b, note kept");
    assert_eq!(judged(&[(A, Noted::Nothing)], &[B], A), "a");
}

#[test]
fn damaged_notes_decide_nothing() {
    assert_eq!(judged(&[(A, Noted::Damaged)], &[], A), "a");
    let arrived = note(1, A, B);
    assert_eq!(judged(&[(A, Noted::Damaged), (B, arrived)], &[], A), "unreadable");
    assert_eq!(judged(&[(A, arrived), (B, Noted::Damaged)], &[], A), "unreadable");
}

#[test]
fn folders_without_notes_are_left_as_they_are() {
    assert_eq!(
        judged(&[(A, Noted::Nothing), (B, Noted::Nothing)], &[], A),
        "a, note kept"
    );
}
