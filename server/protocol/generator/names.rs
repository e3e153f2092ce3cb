//! Names: from the schemas' camel case to Rust's snake case.

/// `FetchRequest` becomes `fetch_request`, `KRaftVersion` becomes `kraft_version`, `TopicIDs` becomes `topic_ids`.
pub(crate) fn snake_case(name: &str) -> String {
    let name = name.replace("KRaft", "Kraft").replace("IDs", "Ids");
    let characters: Vec<char> = name.chars().collect();
    let mut out = String::with_capacity(name.len() + 8);
    for (at, character) in characters.iter().enumerate() {
        if character.is_ascii_uppercase() && at > 0 {
            let previous = characters[at - 1];
            let next_is_lower = characters.get(at + 1).is_some_and(char::is_ascii_lowercase);
            if previous.is_ascii_lowercase() || previous.is_ascii_digit() || next_is_lower {
                out.push('_');
            }
        }
        out.push(character.to_ascii_lowercase());
    }
    out
}
