//! The part of `docs/compatibility.md` that speaks of configuration.

use super::definition::{KeyDefinition, Standing};
use super::keys::{Scope, all};
use std::fmt::Write;

/// Markdown: the keys that are accepted without effect so far, and those that have no meaning here, scope by scope.
#[must_use]
pub fn compatibility_table() -> String {
    let mut text = String::new();
    let scopes = [
        (Scope::Broker, "Broker"),
        (Scope::Topic, "Topic"),
        (Scope::Group, "Group"),
        (Scope::ClientMetrics, "Client metrics"),
    ];
    for (scope, title) in scopes {
        let of = |standing: Standing| -> Vec<&'static KeyDefinition> {
            all(scope).filter(|key| key.standing == standing).collect()
        };
        let (total, not_yet, no_meaning) = (all(scope).count(), of(Standing::NotYet), of(Standing::NoMeaning));
        let in_effect = total - not_yet.len() - no_meaning.len();
        let _ = writeln!(text, "### {title} keys\n\n{in_effect} of {total} are in effect.\n");
        section(&mut text, "Not yet in effect", &not_yet);
        section(
            &mut text,
            "Without meaning here (the Java virtual machine's, or Java classes)",
            &no_meaning,
        );
    }
    text
}

fn section(text: &mut String, title: &str, keys: &[&KeyDefinition]) {
    if keys.is_empty() {
        return;
    }
    let _ = writeln!(text, "{title}:\n\n| key | default | what it is for |\n|---|---|---|");
    for key in keys {
        let default = match key.default_text() {
            None => "–".to_owned(),
            Some("") => "empty".to_owned(),
            Some(default) => format!("`{default}`"),
        };
        let _ = writeln!(text, "| `{}` | {default} | {} |", key.name, key.documentation);
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_without_effect_is_listed() {
        let table = compatibility_table();
        for key in [Scope::Broker, Scope::Topic, Scope::Group, Scope::ClientMetrics]
            .into_iter()
            .flat_map(all)
        {
            let is_listed = table.contains(&format!("| `{}` |", key.name));
            if key.standing != Standing::InEffect {
                assert!(is_listed, "{}", key.name);
            }
        }
    }
}
