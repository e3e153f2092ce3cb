//! A string of the wire.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// UTF-8 text that is cheap to clone. It owns its bytes, so a name that is kept does not keep the frame it came in, and
/// it turns into the `Arc<str>` of a `model` name without a copy. The empty text allocates nothing.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Text(Option<Arc<str>>);

impl Text {
    #[must_use]
    pub const fn new() -> Self {
        Text(None)
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }
}

/// As `str`, which [`Borrow`] demands.
impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl Borrow<str> for Text {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Text((!text.is_empty()).then(|| Arc::from(text)))
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Text((!text.is_empty()).then(|| Arc::from(text)))
    }
}

impl From<&String> for Text {
    fn from(text: &String) -> Self {
        Text::from(text.as_str())
    }
}

impl From<Cow<'_, str>> for Text {
    fn from(text: Cow<'_, str>) -> Self {
        match text {
            Cow::Borrowed(text) => text.into(),
            Cow::Owned(text) => text.into(),
        }
    }
}

impl From<Arc<str>> for Text {
    fn from(text: Arc<str>) -> Self {
        Text((!text.is_empty()).then_some(text))
    }
}

impl From<Text> for Arc<str> {
    fn from(text: Text) -> Self {
        text.0.unwrap_or_default()
    }
}

impl From<Text> for String {
    fn from(text: Text) -> Self {
        text.as_str().to_owned()
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_empty_text_equals_the_default_however_it_was_made() {
        for empty in [
            Text::from(""),
            Text::from(String::new()),
            Text::from(Arc::<str>::from("")),
        ] {
            assert_eq!(empty, Text::new());
        }
    }

    #[test]
    fn text_is_found_in_maps_by_str() {
        let map = std::collections::BTreeMap::from([(Text::from(""), 0), (Text::from("a"), 1), (Text::from("b"), 2)]);
        assert_eq!((map.get(""), map.get("b")), (Some(&0), Some(&2)));
        let hash = |value: &dyn Fn(&mut std::hash::DefaultHasher)| {
            let mut hasher = std::hash::DefaultHasher::new();
            value(&mut hasher);
            hasher.finish()
        };
        for text in ["", "a"] {
            assert_eq!(
                hash(&|hasher| Text::from(text).hash(hasher)),
                hash(&|hasher| text.hash(hasher))
            );
        }
    }
}
