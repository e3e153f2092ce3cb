//! Zigzag variable-length integers as records use them: seven bits a byte, least significant group first.

/// The longest encoding of an i32.
pub(super) const VARINT_BYTES_MAX: usize = 5;
const VARLONG_BYTES_MAX: usize = 10;

/// Takes an i64 off the front of `input`; `None` if it is cut short or too long.
#[inline]
pub(super) fn take_varlong(input: &mut &[u8]) -> Option<i64> {
    let first = *input.first()?;
    if first & 0x80 == 0 {
        *input = &input[1..];
        let bits = u64::from(first);
        return Some((bits >> 1).cast_signed() ^ -(bits & 1).cast_signed());
    }
    let mut bits = 0u64;
    for (at, byte) in input.iter().take(VARLONG_BYTES_MAX).enumerate() {
        let group = u64::from(byte & 0x7f);
        if at == VARLONG_BYTES_MAX - 1 && group > 1 {
            return None;
        }
        bits |= group << (7 * at);
        if byte & 0x80 == 0 {
            *input = &input[at + 1..];
            return Some((bits >> 1).cast_signed() ^ -(bits & 1).cast_signed());
        }
    }
    None
}

/// Takes an i32 off the front of `input`; `None` if it is cut short, too long or too great.
#[inline]
pub(super) fn take_varint(input: &mut &[u8]) -> Option<i32> {
    // One byte holds nearly every delta, length and count.
    let first = *input.first()?;
    if first & 0x80 == 0 {
        *input = &input[1..];
        let bits = u32::from(first);
        return Some((bits >> 1).cast_signed() ^ -(bits & 1).cast_signed());
    }
    let mut bits = 0u32;
    for (at, byte) in input.iter().take(VARINT_BYTES_MAX).enumerate() {
        let group = u32::from(byte & 0x7f);
        if at == VARINT_BYTES_MAX - 1 && group > 0x0f {
            return None;
        }
        bits |= group << (7 * at);
        if byte & 0x80 == 0 {
            *input = &input[at + 1..];
            return Some((bits >> 1).cast_signed() ^ -(bits & 1).cast_signed());
        }
    }
    None
}

pub(super) fn put_varlong(output: &mut Vec<u8>, value: i64) {
    let mut bits = ((value << 1) ^ (value >> 63)).cast_unsigned();
    while bits >= 0x80 {
        output.push(low_byte(bits) | 0x80);
        bits >>= 7;
    }
    output.push(low_byte(bits));
}

pub(super) fn put_varint(output: &mut Vec<u8>, value: i32) {
    put_varlong(output, i64::from(value));
}

/// How many bytes [`put_varlong`] writes for `value`.
pub(super) fn varlong_bytes(value: i64) -> usize {
    let bits = ((value << 1) ^ (value >> 63)).cast_unsigned();
    (64 - (bits | 1).leading_zeros() as usize).div_ceil(7)
}

fn low_byte(bits: u64) -> u8 {
    bits.to_le_bytes()[0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_varlong_survives_and_has_the_length_foretold(value: i64) {
            let mut bytes = Vec::new();
            put_varlong(&mut bytes, value);
            prop_assert_eq!(bytes.len(), varlong_bytes(value));
            let mut input = &bytes[..];
            prop_assert_eq!(take_varlong(&mut input), Some(value));
            prop_assert!(input.is_empty());
        }

        #[test]
        fn a_varint_survives(value: i32) {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, value);
            prop_assert_eq!(take_varint(&mut &bytes[..]), Some(value));
        }
    }

    #[test]
    fn a_varint_greater_than_32_bits_is_refused() {
        assert_eq!(take_varint(&mut &[0xff, 0xff, 0xff, 0xff, 0x1f][..]), None);
        assert_eq!(take_varint(&mut &[0x80, 0x80, 0x80, 0x80, 0x80, 0x00][..]), None);
        assert_eq!(take_varlong(&mut &[0xff; 10][..]), None);
        assert_eq!(take_varint(&mut &[0x80][..]), None);
    }
}
