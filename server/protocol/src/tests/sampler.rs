//! Random encodings of a message, made from its notation alone and not by the generated code, so that the two check
//! each other. An encoding is canonical: what is read from it must be written as the same bytes.

use crate::generator::schema::{Field, FixedType, Message, Type, Versions};
use crate::schema::LengthKind;

/// What the sampler has written.
#[derive(Default)]
pub(super) struct Sample {
    pub(super) bytes: Vec<u8>,
    /// Where length fields begin, in the order in which a reader meets them.
    pub(super) lengths: Vec<(usize, LengthKind)>,
}

pub(super) struct Sampler<'m> {
    message: &'m Message,
    version: i16,
    flexible: bool,
    entropy: u64,
}

/// Tags beyond all that schemas know.
const UNKNOWN_TAG_FIRST: u32 = 1000;
/// Sometimes bytes are so many that a writer makes a segment of them.
const LARGE_BYTES: usize = 5000;

impl<'m> Sampler<'m> {
    pub(super) fn new(message: &'m Message, version: i16, seed: u64) -> Self {
        let flexible = contains(message.flexible, version);
        Sampler {
            message,
            version,
            flexible,
            entropy: seed | 1,
        }
    }

    pub(super) fn sample(mut self) -> Sample {
        let mut out = Sample::default();
        self.structure(&self.message.fields, false, 0, &mut out);
        out
    }

    /// xorshift64*
    fn random(&mut self) -> u64 {
        self.entropy ^= self.entropy >> 12;
        self.entropy ^= self.entropy << 25;
        self.entropy ^= self.entropy >> 27;
        self.entropy.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `limit`.
    fn below(&mut self, limit: u64) -> u64 {
        (self.random() >> 32) % limit
    }

    /// `set`: no field has its default, so that the struct as a whole has not.
    fn structure(&mut self, fields: &'m [Field], set: bool, depth: u64, out: &mut Sample) {
        let version = self.version;
        for field in fields.iter().filter(|field| contains(field.versions, version)) {
            if !contains(field.tagged, version) {
                self.value(field, set, depth, out);
            }
        }
        if self.flexible {
            self.tags(fields, depth, out);
        }
    }

    fn tags(&mut self, fields: &'m [Field], depth: u64, out: &mut Sample) {
        let version = self.version;
        let mut tagged: Vec<(u32, Sample)> = Vec::new();
        for field in fields.iter().filter(|field| contains(field.tagged, version)) {
            if self.below(2) == 0 {
                let mut value = Sample::default();
                self.value(field, true, depth, &mut value);
                tagged.push((field.tag.expect("a tag"), value));
            }
        }
        tagged.sort_by_key(|(tag, _)| *tag);
        for unknown in 0..self.below(6).saturating_sub(3) as u32 {
            let value = Sample {
                bytes: self.some_bytes(1),
                lengths: Vec::new(),
            };
            tagged.push((UNKNOWN_TAG_FIRST + unknown * 20_000, value));
        }
        out.lengths.push((out.bytes.len(), LengthKind::TaggedFieldCount));
        put_varint(&mut out.bytes, tagged.len() as u32);
        for (tag, value) in tagged {
            put_varint(&mut out.bytes, tag);
            out.lengths.push((out.bytes.len(), LengthKind::TaggedFieldSize));
            put_varint(&mut out.bytes, value.bytes.len() as u32);
            let start = out.bytes.len();
            out.bytes.extend(value.bytes);
            out.lengths
                .extend(value.lengths.into_iter().map(|(at, kind)| (start + at, kind)));
        }
    }

    fn value(&mut self, field: &'m Field, set: bool, depth: u64, out: &mut Sample) {
        let flexible = self.flexible && !field.never_flexible;
        let null_by_default = field.default.as_deref() == Some("null") || field.kind == Type::Records;
        let may_be_null = contains(field.nullable, self.version) && !(set && null_by_default);
        if may_be_null && self.below(4) == 0 {
            return null(&field.kind, flexible, out);
        }
        match &field.kind {
            Type::Fixed(fixed) => {
                let avoid = set.then(|| field.default.as_deref().unwrap_or("0"));
                self.fixed(fixed, avoid, out);
            }
            Type::String => self.text(usize::from(set), flexible, out),
            Type::Bytes | Type::Records => {
                let bytes = self.some_bytes(usize::from(set));
                put_length(bytes.len(), flexible, LengthKind::Bytes, out);
                out.bytes.extend(bytes);
            }
            Type::Struct(name) => {
                if contains(field.nullable, self.version) {
                    out.bytes.push(1);
                }
                let fields = self.fields_of(field, name);
                self.structure(fields, set, depth, out);
            }
            Type::Array(element) => {
                let count = self.below(4_u64.saturating_sub(depth).max(2)).max(u64::from(set));
                put_length(count as usize, flexible, LengthKind::Array, out);
                for _ in 0..count {
                    match element.as_ref() {
                        Type::Fixed(fixed) => self.fixed(fixed, None, out),
                        Type::String => self.text(0, flexible, out),
                        Type::Struct(name) => {
                            let fields = self.fields_of(field, name);
                            self.structure(fields, false, depth + 1, out);
                        }
                        other => panic!("an array of {other:?}"),
                    }
                }
            }
        }
    }

    /// Those that the field defines, or those of the common struct that it names.
    fn fields_of(&self, field: &'m Field, name: &str) -> &'m [Field] {
        if !field.fields.is_empty() {
            return &field.fields;
        }
        let common = self.message.common_structs.iter().find(|common| common.name == name);
        &common.unwrap_or_else(|| panic!("no struct {name}")).fields
    }

    fn fixed(&mut self, fixed: &FixedType, avoid: Option<&str>, out: &mut Sample) {
        if fixed.name == "bool" {
            let value = match avoid {
                Some(default) => default != "true",
                None => self.below(2) == 0,
            };
            return out.bytes.push(value.into());
        }
        let bytes = loop {
            let bytes: Vec<u8> = match fixed.name {
                // NaN is not equal to itself.
                "float64" => f64::from(self.random() as i32).to_be_bytes().into(),
                _ => (0..fixed.bytes).map(|_| self.random() as u8).collect(),
            };
            if avoid.is_none_or(|default| !is_number(&bytes, default)) {
                break bytes;
            }
        };
        out.bytes.extend(bytes);
    }

    fn text(&mut self, length_min: usize, flexible: bool, out: &mut Sample) {
        let length = match self.below(40) {
            0 => 200,
            other => length_min + (other % 7) as usize,
        };
        let text: String = (0..length)
            .map(|_| ['a', 'ö', '-', '7', '語'][self.below(5) as usize])
            .collect();
        if flexible {
            put_length(text.len(), true, LengthKind::String, out);
        } else {
            out.lengths.push((out.bytes.len(), LengthKind::String));
            out.bytes.extend((text.len() as i16).to_be_bytes());
        }
        out.bytes.extend(text.into_bytes());
    }

    fn some_bytes(&mut self, length_min: usize) -> Vec<u8> {
        let length = match self.below(60) {
            0 => LARGE_BYTES,
            other => length_min + (other % 9) as usize,
        };
        (0..length).map(|_| self.random() as u8).collect()
    }
}

fn contains(versions: Option<Versions>, version: i16) -> bool {
    versions.is_some_and(|versions| versions.contains(version))
}

/// Whether the big-endian bytes are the default written as text.
fn is_number(bytes: &[u8], text: &str) -> bool {
    let value: i128 = match text.strip_prefix("0x") {
        Some(hex) => i128::from_str_radix(hex, 16).expect("a number"),
        None => text.parse().expect("a number"),
    };
    value.to_be_bytes().ends_with(bytes)
}

fn null(kind: &Type, flexible: bool, out: &mut Sample) {
    let (kind, old) = match kind {
        Type::Struct(_) => return out.bytes.push(0xff),
        Type::String => (LengthKind::String, &[0xff; 2][..]),
        Type::Bytes | Type::Records => (LengthKind::Bytes, &[0xff; 4][..]),
        Type::Array(_) => (LengthKind::Array, &[0xff; 4][..]),
        Type::Fixed(fixed) => panic!("a null {}", fixed.name),
    };
    out.lengths.push((out.bytes.len(), kind));
    out.bytes.extend(if flexible { &[0] } else { old });
}

fn put_length(length: usize, flexible: bool, kind: LengthKind, out: &mut Sample) {
    out.lengths.push((out.bytes.len(), kind));
    if flexible {
        put_varint(&mut out.bytes, length as u32 + 1);
    } else {
        out.bytes.extend((length as i32).to_be_bytes());
    }
}

fn put_varint(bytes: &mut Vec<u8>, mut value: u32) {
    while value > 0x7f {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}
