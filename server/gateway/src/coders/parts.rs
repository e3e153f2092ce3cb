//! One batch of items as calls that a plugin can bear, and the search for the item that it breaks at.

use std::ops::Range;

use plugin::serde::check_items;
use plugin::{Trap, TrapKind};

/// Most items of one call: a call has ten milliseconds.
const CALL_ITEMS_MAX: usize = 1024;
/// Most bytes of one call; a single item may have more.
const CALL_BYTES_MAX: usize = 256 * 1024;
/// How many calls of one batch may trap; past it, what is left is not tried.
const TRAPS_MAX: usize = 64;

/// Why an item is not served.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum ItemError {
    #[error("the plugin refuses it: {0}")]
    Refused(String),
    #[error("the plugin breaks at it: {0}")]
    Trapped(String),
    #[error("the plugin has broken {TRAPS_MAX} times in this batch")]
    NotTried,
}

/// Calls for all items, whose sizes are given, and puts the answers in their order.
pub(super) fn in_parts<T>(
    sizes: &[usize],
    mut call: impl FnMut(Range<usize>) -> Result<Vec<Result<T, String>>, Trap>,
) -> Vec<Result<T, ItemError>> {
    let mut answers = Vec::with_capacity(sizes.len());
    // The next part is the last one here.
    let mut waiting = cut(sizes);
    waiting.reverse();
    let mut traps = 0;
    // The deadline says little on a busy machine: an item that is alone has a second chance.
    let mut has_second_chance = true;
    while let Some(part) = waiting.pop() {
        if traps == TRAPS_MAX {
            answers.extend(part.map(|_| Err(ItemError::NotTried)));
            continue;
        }
        let answered = call(part.clone()).and_then(|answered| {
            check_items(answered.len(), part.len())?;
            Ok(answered)
        });
        match answered {
            Ok(answered) => answers.extend(answered.into_iter().map(|answer| answer.map_err(ItemError::Refused))),
            Err(trap) => {
                traps += 1;
                if part.len() > 1 {
                    let middle = part.start + part.len() / 2;
                    waiting.push(middle..part.end);
                    waiting.push(part.start..middle);
                } else if trap.kind == TrapKind::Interrupted && has_second_chance {
                    has_second_chance = false;
                    waiting.push(part);
                    continue;
                } else {
                    answers.push(Err(ItemError::Trapped(trap.reason)));
                }
            }
        }
        has_second_chance = true;
    }
    answers
}

fn cut(sizes: &[usize]) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (item, size) in sizes.iter().enumerate() {
        let is_full = item - start == CALL_ITEMS_MAX || bytes + size > CALL_BYTES_MAX;
        if is_full && item > start {
            parts.push(start..item);
            (start, bytes) = (item, 0);
        }
        bytes += size;
    }
    if start < sizes.len() {
        parts.push(start..sizes.len());
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trap(kind: TrapKind) -> Trap {
        Trap::new(kind, "broken")
    }

    fn serve(items: Range<usize>) -> Vec<Result<usize, String>> {
        items.map(Ok).collect()
    }

    #[test]
    fn parts_hold_every_item_once_and_no_part_is_too_large() {
        let sizes = [vec![10; 3000], vec![CALL_BYTES_MAX + 1, 0, CALL_BYTES_MAX, 1]].concat();
        let parts = cut(&sizes);
        let joined: Vec<usize> = parts.iter().cloned().flatten().collect();
        assert_eq!(joined, (0..sizes.len()).collect::<Vec<_>>());
        for part in &parts {
            let bytes: usize = sizes[part.clone()].iter().sum();
            assert!(
                part.len() <= CALL_ITEMS_MAX && (bytes <= CALL_BYTES_MAX || part.len() == 1),
                "{part:?}"
            );
        }
        assert_eq!(cut(&[]), []);
    }

    #[test]
    fn the_item_that_breaks_the_plugin_is_found_and_the_others_are_served() {
        let sizes = vec![1; 1500];
        let mut calls = 0;
        let answers = in_parts(&sizes, |part| {
            calls += 1;
            if part.contains(&700) {
                Err(trap(TrapKind::Fault))
            } else {
                Ok(serve(part))
            }
        });
        for (item, answer) in answers.iter().enumerate() {
            match item {
                700 => assert_eq!(*answer, Err(ItemError::Trapped("broken".into()))),
                _ => assert_eq!(*answer, Ok(item)),
            }
        }
        assert!(calls < 30, "{calls}");
    }

    #[test]
    fn a_plugin_that_always_breaks_is_not_called_for_ever() {
        let mut calls = 0;
        let answers = in_parts::<usize>(&vec![1; 20_000], |_| {
            calls += 1;
            Err(trap(TrapKind::Fault))
        });
        assert_eq!((answers.len(), calls), (20_000, TRAPS_MAX));
        assert_eq!(answers[19_999], Err(ItemError::NotTried));
    }

    #[test]
    fn an_interrupted_item_is_tried_once_more_alone() {
        let mut calls = 0;
        let answers = in_parts(&[1], |part| {
            calls += 1;
            if calls == 1 {
                Err(trap(TrapKind::Interrupted))
            } else {
                Ok(serve(part))
            }
        });
        assert_eq!((answers, calls), (vec![Ok(0)], 2));
        let mut calls = 0;
        let answers = in_parts::<usize>(&[1], |_| {
            calls += 1;
            Err(trap(TrapKind::Interrupted))
        });
        assert_eq!((answers, calls), (vec![Err(ItemError::Trapped("broken".into()))], 2));
    }

    #[test]
    fn too_few_answers_are_none() {
        let answers = in_parts(&[1, 1], |part| {
            let mut answers = serve(part);
            if answers.len() > 1 {
                answers.pop();
            }
            Ok(answers)
        });
        assert_eq!(answers, [Ok(0), Ok(1)]);
    }
}
