//! Tagged fields (KIP-482): those that are known while they are written, and those that are not known at all.

use bytes::Bytes;

use crate::Writer;
use crate::primitives::put_unsigned_varint;

/// Tagged fields that the schema does not know, kept so that a message passed on loses nothing. Nearly always empty, and
/// then one pointer wide.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UnknownTaggedFields(
    #[expect(clippy::box_collection, reason = "one word in each struct")] Option<Box<Vec<UnknownTaggedField>>>,
);

#[derive(Clone, Debug, PartialEq)]
pub struct UnknownTaggedField {
    pub tag: u32,
    pub value: Bytes,
}

impl UnknownTaggedFields {
    #[must_use]
    pub fn as_slice(&self) -> &[UnknownTaggedField] {
        self.0.as_ref().map_or(&[], |fields| fields.as_slice())
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.as_slice().is_empty()
    }

    #[must_use]
    pub fn get(&self, tag: u32) -> Option<&Bytes> {
        self.as_slice()
            .iter()
            .find(|field| field.tag == tag)
            .map(|field| &field.value)
    }

    /// Adds a field behind all others: what is read is kept as it was, and put in order when it is written.
    pub(crate) fn append(&mut self, tag: u32, value: Bytes) {
        self.0.get_or_insert_default().push(UnknownTaggedField { tag, value });
    }

    /// Adds a field. The wire wants tags in ascending order, so a field goes behind those with tags up to its own.
    pub fn push(&mut self, tag: u32, value: Bytes) {
        let fields = self.0.get_or_insert_default();
        let at = fields.partition_point(|field| field.tag <= tag);
        fields.insert(at, UnknownTaggedField { tag, value });
    }
}

/// The known tagged fields of one struct while it is written; generated code adds them in ascending order.
pub(crate) struct TaggedFields {
    fields: Vec<(u32, Writer)>,
}

impl TaggedFields {
    pub(crate) const fn new() -> Self {
        TaggedFields { fields: Vec::new() }
    }

    /// The place to write the value of `tag` to.
    pub(crate) fn field(&mut self, tag: u32) -> &mut Writer {
        self.fields.push((tag, Writer::new()));
        &mut self.fields.last_mut().expect("pushed above").1
    }

    /// Writes count, then all fields in ascending order of their tags.
    pub(crate) fn write(self, unknown: &UnknownTaggedFields, writer: &mut Writer) {
        let mut unknown: Vec<&UnknownTaggedField> = unknown.as_slice().iter().collect();
        unknown.sort_by_key(|field| field.tag);
        let mut unknown = unknown.into_iter().peekable();
        put_unsigned_varint(writer.buffer(), (self.fields.len() + unknown.len()) as u32);
        for (tag, field) in self.fields {
            while let Some(before) = unknown.next_if(|other| other.tag < tag) {
                write_unknown(before, writer);
            }
            put_unsigned_varint(writer.buffer(), tag);
            put_unsigned_varint(writer.buffer(), field.len() as u32);
            writer.append(field);
        }
        unknown.for_each(|field| write_unknown(field, writer));
    }
}

fn write_unknown(field: &UnknownTaggedField, writer: &mut Writer) {
    put_unsigned_varint(writer.buffer(), field.tag);
    put_unsigned_varint(writer.buffer(), field.value.len() as u32);
    writer.raw(&field.value);
}
