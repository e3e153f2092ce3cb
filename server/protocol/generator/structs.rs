//! The structs that a message consists of, and the least that each takes on the wire.

use crate::generator::schema::{Field, Message, Type, Versions};

/// A struct to generate. The message itself is the first.
pub(crate) struct Struct<'m> {
    pub(crate) name: &'m str,
    /// Where in the message it is, for errors: `FetchRequest.Topics`.
    pub(crate) path: String,
    /// The versions in which it occurs.
    pub(crate) versions: Versions,
    pub(crate) fields: &'m [Field],
}

/// A message with its structs by name.
pub(crate) struct Structs<'m> {
    pub(crate) list: Vec<Struct<'m>>,
    flexible: Option<Versions>,
}

impl<'m> Structs<'m> {
    pub(crate) fn of(message: &'m Message, versions: Versions) -> Self {
        let mut list = vec![Struct {
            name: &message.name,
            path: message.name.clone(),
            versions,
            fields: &message.fields,
        }];
        add_inner(&mut list, &message.fields, &message.name, versions);
        for common in &message.common_structs {
            let Some(versions) = versions.and(common.versions) else {
                continue;
            };
            let path = format!("{}.{}", message.name, common.name);
            list.push(Struct {
                name: &common.name,
                path: path.clone(),
                versions,
                fields: &common.fields,
            });
            add_inner(&mut list, &common.fields, &path, versions);
        }
        for (at, one) in list.iter().enumerate() {
            let twice = list[..at].iter().any(|other| other.name == one.name);
            assert!(!twice, "{} defines {} twice", message.name, one.name);
        }
        Structs {
            list,
            flexible: message.flexible,
        }
    }

    /// No encoding of an element of this type is shorter; at least 1, so that a count is bounded by the bytes left.
    pub(crate) fn element_bytes_min(&self, kind: &Type) -> usize {
        let least = match kind {
            Type::Struct(name) => {
                let found = self
                    .list
                    .iter()
                    .find(|one| one.name == name)
                    .expect("the struct is defined");
                (found.versions.first..=found.versions.last)
                    .map(|version| self.bytes_min(kind, version))
                    .min()
            }
            other => Some(self.bytes_min(other, 0)),
        };
        least.unwrap_or_default().max(1)
    }

    fn bytes_min(&self, kind: &Type, version: i16) -> usize {
        let flexible = self.flexible.is_some_and(|versions| versions.contains(version));
        match kind {
            Type::Fixed(fixed) => fixed.bytes,
            Type::String => {
                if flexible {
                    1
                } else {
                    2
                }
            }
            Type::Bytes | Type::Records | Type::Array(_) => {
                if flexible {
                    1
                } else {
                    4
                }
            }
            Type::Struct(name) => {
                let found = self
                    .list
                    .iter()
                    .find(|one| one.name == name)
                    .expect("the struct is defined");
                let is_present = |field: &&Field| {
                    field.versions.is_some_and(|versions| versions.contains(version))
                        && !field.tagged.is_some_and(|tagged| tagged.contains(version))
                };
                let fields: usize = found
                    .fields
                    .iter()
                    .filter(is_present)
                    .map(|field| match field.kind {
                        Type::Struct(_) if field.nullable.is_some() => 1,
                        _ => self.bytes_min(&field.kind, version),
                    })
                    .sum();
                fields + usize::from(flexible)
            }
        }
    }
}

fn add_inner<'m>(list: &mut Vec<Struct<'m>>, fields: &'m [Field], path: &str, versions: Versions) {
    for field in fields.iter().filter(|field| !field.fields.is_empty()) {
        let Some(versions) = field.versions.and_then(|own| versions.and(own)) else {
            continue;
        };
        let path = format!("{path}.{}", field.name);
        let name = match &field.kind {
            Type::Struct(name) => name,
            Type::Array(element) => match element.as_ref() {
                Type::Struct(name) => name,
                other => panic!("{path} has fields but is an array of {other:?}"),
            },
            other => panic!("{path} has fields but is a {other:?}"),
        };
        list.push(Struct {
            name,
            path: path.clone(),
            versions,
            fields: &field.fields,
        });
        add_inner(list, &field.fields, &path, versions);
    }
}
