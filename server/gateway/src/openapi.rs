//! The OpenAPI document: its frame is here, the rest comes from the routes.

use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{ComponentsBuilder, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder};

use crate::format::Format;
use crate::routes;

const DESCRIPTION: &str = "Topics, records, groups and plugins over HTTP. Errors are problem documents (RFC 9457) with a stable \
    `code`. Numbers in records keep every digit: JSON values are stored and shown as the text that was sent.";
const TAGS: &[(&str, &str)] = &[
    ("cluster", "The cluster and its brokers"),
    ("topics", "Topics and their configuration"),
    ("records", "Writing and reading"),
    ("groups", "Consumer groups"),
    (
        "modules",
        "WebAssembly modules, and the plugins of a topic that are made of them",
    ),
    ("processors", "Windowed processors: deployed, watched, paused"),
    ("operations", "Health, metrics and this document"),
];

/// What is said beside the routes.
pub(crate) fn frame() -> OpenApi {
    let info = InfoBuilder::new()
        .title("Millstream")
        .description(Some(DESCRIPTION))
        .version(env!("CARGO_PKG_VERSION"))
        .license(Some(
            LicenseBuilder::new()
                .name("Apache-2.0")
                .identifier(Some("Apache-2.0"))
                .build(),
        ));
    let tags = TAGS
        .iter()
        .map(|(name, description)| TagBuilder::new().name(*name).description(Some(*description)).build());
    OpenApiBuilder::new()
        .info(info.build())
        // Only parameters refer to it, and their schemas are not gathered.
        .components(Some(ComponentsBuilder::new().schema_from::<Format>().build()))
        .tags(Some(tags.collect::<Vec<_>>()))
        .build()
}

/// What this door serves, as an OpenAPI 3.1.0 document.
#[must_use]
pub fn openapi() -> OpenApi {
    let (_, document) = routes::documented().split_for_parts();
    document
}

/// The document as text, as it is served and as it is kept in `openapi/millstream.json`.
#[must_use]
pub fn openapi_text() -> String {
    let mut text = openapi().to_pretty_json().expect("the document is plain data");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// `UPDATE=1` writes the file anew.
    #[test]
    fn the_committed_document_is_the_one_that_is_served() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../openapi/millstream.json");
        let text = openapi_text();
        if std::env::var_os("UPDATE").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, &text).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            kept == text,
            "openapi/millstream.json is not what the routes say: `cargo xtask openapi` writes it"
        );
    }

    fn references<'a>(value: &'a serde_json::Value, found: &mut Vec<&'a str>) {
        match value {
            serde_json::Value::Object(members) => {
                found.extend(members.get("$ref").and_then(|reference| reference.as_str()));
                members.values().for_each(|member| references(member, found));
            }
            serde_json::Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }

    #[test]
    fn everything_that_is_referred_to_is_there() {
        let document: serde_json::Value = serde_json::from_str(&openapi_text()).unwrap();
        let mut found = Vec::new();
        references(&document, &mut found);
        assert!(found.len() > 20, "{found:?}");
        for reference in found {
            let place = reference.strip_prefix('#').unwrap();
            assert!(document.pointer(place).is_some(), "{reference}");
        }
    }

    #[test]
    fn the_document_is_of_version_3_1_and_every_operation_has_a_name_of_its_own() {
        let document: serde_json::Value = serde_json::from_str(&openapi_text()).unwrap();
        assert_eq!(document["openapi"], "3.1.0");
        let mut names = std::collections::BTreeSet::new();
        for (path, item) in document["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                let name = operation["operationId"].as_str().unwrap();
                assert!(names.insert(name.to_owned()), "{method} {path}");
                assert!(operation["summary"].is_string(), "{method} {path}");
            }
        }
    }
}
