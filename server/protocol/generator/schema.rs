//! A message's schema in memory.

/// An inclusive range of versions; `None` where the notation says `none`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Versions {
    pub(crate) first: i16,
    pub(crate) last: i16,
}

impl Versions {
    /// The versions that are in both.
    pub(crate) fn and(self, other: Versions) -> Option<Versions> {
        let (first, last) = (self.first.max(other.first), self.last.min(other.last));
        (first <= last).then_some(Versions { first, last })
    }

    /// The versions before `other` begins.
    pub(crate) fn before(self, other: Versions) -> Option<Versions> {
        if other.first <= self.first {
            return None;
        }
        Some(Versions {
            first: self.first,
            last: self.last.min(other.first - 1),
        })
    }

    pub(crate) fn contains(self, version: i16) -> bool {
        self.first <= version && version <= self.last
    }
}

pub(crate) struct Message {
    /// `request`, `response`, `header`, `data`, `metadata`, `coordinator-key` or `coordinator-value`.
    pub(crate) kind: String,
    pub(crate) name: String,
    /// The API key, or the type of a log record.
    pub(crate) key: Option<i16>,
    /// `None` for a message that no version has any more.
    pub(crate) versions: Option<Versions>,
    pub(crate) flexible: Option<Versions>,
    pub(crate) listeners: Vec<String>,
    pub(crate) latest_unstable: bool,
    pub(crate) fields: Vec<Field>,
    pub(crate) common_structs: Vec<CommonStruct>,
}

/// A struct that several fields use.
pub(crate) struct CommonStruct {
    pub(crate) name: String,
    pub(crate) versions: Versions,
    pub(crate) fields: Vec<Field>,
}

pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) kind: Type,
    pub(crate) versions: Option<Versions>,
    pub(crate) tag: Option<u32>,
    pub(crate) tagged: Option<Versions>,
    pub(crate) nullable: Option<Versions>,
    /// Set where the field's own lengths never are compact.
    pub(crate) never_flexible: bool,
    pub(crate) default: Option<String>,
    pub(crate) ignorable: bool,
    /// The line of the notation, for the field's documentation.
    pub(crate) facts: String,
    /// Those of the struct that the field defines.
    pub(crate) fields: Vec<Field>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    /// A number, bool or uuid, by the schema's name for it.
    Fixed(&'static FixedType),
    String,
    Bytes,
    Records,
    Struct(String),
    Array(Box<Type>),
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FixedType {
    pub(crate) name: &'static str,
    pub(crate) rust: &'static str,
    /// The method of `Reader` that reads it.
    pub(crate) read: &'static str,
    pub(crate) bytes: usize,
}

pub(crate) const FIXED_TYPES: [FixedType; 9] = [
    FixedType {
        name: "bool",
        rust: "bool",
        read: "bool",
        bytes: 1,
    },
    FixedType {
        name: "int8",
        rust: "i8",
        read: "i8",
        bytes: 1,
    },
    FixedType {
        name: "int16",
        rust: "i16",
        read: "i16",
        bytes: 2,
    },
    FixedType {
        name: "uint16",
        rust: "u16",
        read: "u16",
        bytes: 2,
    },
    FixedType {
        name: "int32",
        rust: "i32",
        read: "i32",
        bytes: 4,
    },
    FixedType {
        name: "uint32",
        rust: "u32",
        read: "u32",
        bytes: 4,
    },
    FixedType {
        name: "int64",
        rust: "i64",
        read: "i64",
        bytes: 8,
    },
    FixedType {
        name: "float64",
        rust: "f64",
        read: "f64",
        bytes: 8,
    },
    FixedType {
        name: "uuid",
        rust: "Uuid",
        read: "uuid",
        bytes: 16,
    },
];
