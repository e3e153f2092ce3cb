//! What is known about one key, and the words that the tables of `keys/` are written in.

use super::check::Check;

/// The types of Kafka's configuration definitions. The number is the one that DescribeConfigs gives (KIP-569).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Boolean,
    String,
    Int,
    Short,
    Long,
    Double,
    /// Comma-separated.
    List,
    /// The name of a Java class: kept as text, nothing is loaded.
    Class,
    /// Never shown again.
    Password,
}

impl Kind {
    /// The number on the wire; 0 stands for a key that nobody knows.
    #[must_use]
    pub const fn code(self) -> i8 {
        match self {
            Kind::Boolean => 1,
            Kind::String => 2,
            Kind::Int => 3,
            Kind::Short => 4,
            Kind::Long => 5,
            Kind::Double => 6,
            Kind::List => 7,
            Kind::Class => 8,
            Kind::Password => 9,
        }
    }

    /// As Kafka's messages name it: `LONG`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Boolean => "BOOLEAN",
            Kind::String => "STRING",
            Kind::Int => "INT",
            Kind::Short => "SHORT",
            Kind::Long => "LONG",
            Kind::Double => "DOUBLE",
            Kind::List => "LIST",
            Kind::Class => "CLASS",
            Kind::Password => "PASSWORD",
        }
    }
}

/// What holds where nobody said anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DefaultValue {
    /// There is none: a configuration without the key is refused.
    Required,
    /// There is none, and the key may stay away.
    Unset,
    Text(&'static str),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Importance {
    High,
    Medium,
    Low,
}

/// Whether a broker key may change while the broker runs (KIP-226).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UpdateMode {
    ReadOnly,
    /// Only for one broker, by its id.
    PerBroker,
    /// For one broker or, as a default, for all.
    ClusterWide,
}

/// What the key does here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    InEffect,
    /// Read, checked and described, but nothing follows from it yet.
    NotYet,
    /// Concerns the Java virtual machine or Java classes.
    NoMeaning,
}

/// One key of one scope.
#[derive(Clone, Copy, Debug)]
pub struct KeyDefinition {
    pub name: &'static str,
    pub kind: Kind,
    pub default: DefaultValue,
    pub check: Check,
    pub importance: Importance,
    pub update: UpdateMode,
    /// Not shown by DescribeConfigs unless somebody set it.
    pub internal: bool,
    pub standing: Standing,
    /// For keys of topics and groups: the broker keys that give the default, the first that is set wins.
    pub synonyms: &'static [Synonym],
    /// One sentence for whoever asks DescribeConfigs for documentation.
    pub documentation: &'static str,
}

/// A broker key that gives a topic's or group's default.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Synonym {
    pub name: &'static str,
    /// What the value is multiplied by, for synonyms in hours and minutes.
    pub factor: i64,
}

/// A synonym in the same unit.
pub(super) const fn same(name: &'static str) -> Synonym {
    Synonym { name, factor: 1 }
}

pub(super) const fn minutes(name: &'static str) -> Synonym {
    Synonym { name, factor: 60_000 }
}

pub(super) const fn hours(name: &'static str) -> Synonym {
    Synonym {
        name,
        factor: 3_600_000,
    }
}

impl KeyDefinition {
    const fn new(name: &'static str, kind: Kind) -> Self {
        KeyDefinition {
            name,
            kind,
            default: DefaultValue::Unset,
            check: Check::Any,
            importance: Importance::Medium,
            update: UpdateMode::ReadOnly,
            internal: false,
            standing: Standing::NotYet,
            synonyms: &[],
            documentation: "",
        }
    }

    pub(super) const fn required(mut self) -> Self {
        self.default = DefaultValue::Required;
        self
    }

    pub(super) const fn default(mut self, text: &'static str) -> Self {
        self.default = DefaultValue::Text(text);
        self
    }

    pub(super) const fn check(mut self, check: Check) -> Self {
        self.check = check;
        self
    }

    pub(super) const fn at_least(self, least: i64) -> Self {
        self.check(Check::AtLeast(least))
    }

    pub(super) const fn between(self, least: i64, most: i64) -> Self {
        self.check(Check::Between(least, most))
    }

    pub(super) const fn high(mut self) -> Self {
        self.importance = Importance::High;
        self
    }

    pub(super) const fn low(mut self) -> Self {
        self.importance = Importance::Low;
        self
    }

    pub(super) const fn per_broker(mut self) -> Self {
        self.update = UpdateMode::PerBroker;
        self
    }

    pub(super) const fn cluster_wide(mut self) -> Self {
        self.update = UpdateMode::ClusterWide;
        self
    }

    pub(super) const fn internal(mut self) -> Self {
        self.internal = true;
        self
    }

    pub(super) const fn in_effect(mut self) -> Self {
        self.standing = Standing::InEffect;
        self
    }

    pub(super) const fn no_meaning(mut self) -> Self {
        self.standing = Standing::NoMeaning;
        self
    }

    pub(super) const fn synonyms(mut self, synonyms: &'static [Synonym]) -> Self {
        self.synonyms = synonyms;
        self
    }

    pub(super) const fn doc(mut self, sentence: &'static str) -> Self {
        self.documentation = sentence;
        self
    }

    /// Whether Apache Kafka does not have it: such keys never stand in the cluster metadata.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.name.starts_with("millstream.")
    }

    /// Whether its values may not be shown.
    #[must_use]
    pub const fn is_sensitive(&self) -> bool {
        matches!(self.kind, Kind::Password)
    }

    /// The default, if there is one.
    #[must_use]
    pub const fn default_text(&self) -> Option<&'static str> {
        match self.default {
            DefaultValue::Text(text) => Some(text),
            DefaultValue::Required | DefaultValue::Unset => None,
        }
    }
}

macro_rules! constructors {
    ($($function:ident $kind:ident),*) => {
        $(pub(super) const fn $function(name: &'static str) -> KeyDefinition {
            KeyDefinition::new(name, Kind::$kind)
        })*
    };
}

constructors!(
    boolean Boolean, short Short, int Int, long Long, double Double, string String, list List, class Class,
    password Password
);
