//! What generated code refers to.

pub(crate) use std::ops::RangeInclusive;

pub(crate) use bytes::Bytes;
pub(crate) use model::Uuid;

pub(crate) use crate::json::{Json, Object, to_json};
pub(crate) use crate::message::{check_decode, check_encode};
pub(crate) use crate::tagged_fields::TaggedFields;
pub(crate) use crate::{DecodeError, DecodeProblem, EncodeError, Message, Reader, Text, UnknownTaggedFields, Writer};
