//! How far a name is from one that is known, for "did you mean".

/// Beyond this no name is compared: the work is bounded, and nothing so long is near a name that somebody chose.
pub const COMPARED_BYTES_MAX: usize = 128;

/// How many insertions, deletions, substitutions and exchanges of neighbours lead from one name to the other; `None`
/// where one is longer than [`COMPARED_BYTES_MAX`]. In bytes: names here are ASCII, others count a little further.
#[must_use]
pub fn distance(from: &str, to: &str) -> Option<usize> {
    let (from, to) = (from.as_bytes(), to.as_bytes());
    if from.len().max(to.len()) > COMPARED_BYTES_MAX {
        return None;
    }
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for row in 1..=from.len() {
        let mut line = vec![row; to.len() + 1];
        for column in 1..=to.len() {
            let change = usize::from(from[row - 1] != to[column - 1]);
            line[column] = (last[column] + 1)
                .min(line[column - 1] + 1)
                .min(last[column - 1] + change);
            let exchanged = row > 1 && column > 1 && from[row - 1] == to[column - 2] && from[row - 2] == to[column - 1];
            if exchanged {
                line[column] = line[column].min(before_last[column - 2] + 1);
            }
        }
        before_last = std::mem::replace(&mut last, line);
    }
    Some(last[to.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_counts_changes() {
        let of = [
            ("", "abc", 3),
            ("abc", "abc", 0),
            ("feild", "field", 1),
            ("a", "b", 1),
            ("ab", "b", 1),
            ("abcd", "badc", 2),
        ];
        for (from, to, expected) in of {
            assert_eq!(distance(from, to), Some(expected), "{from} {to}");
            assert_eq!(distance(to, from), Some(expected), "{to} {from}");
        }
    }

    #[test]
    fn long_names_are_not_compared() {
        let long = "x".repeat(COMPARED_BYTES_MAX + 1);
        assert_eq!(distance(&long, "x"), None);
        assert_eq!(distance("x", &long), None);
    }
}
