//! Parquet's hybrid encoding of small numbers: runs of one number, and groups of eight in packed bits. It is
//! written as runs only, and read as runs, whatever it is.

/// Bits of the numbers of so many texts: at least one.
pub(crate) fn bits_of(texts: usize) -> u8 {
    let bits = usize::BITS - texts.saturating_sub(1).leading_zeros();
    u8::try_from(bits.clamp(1, u32::BITS)).unwrap_or(1)
}

/// Adds a run of one number.
pub(crate) fn push_run(out: &mut Vec<u8>, bits: u8, number: u32, times: usize) {
    let mut header = (times as u64) << 1;
    while header >= 0x80 {
        out.push(header.to_le_bytes()[0] | 0x80);
        header >>= 7;
    }
    out.push(header.to_le_bytes()[0]);
    out.extend(number.to_le_bytes().iter().take(width_of(bits)));
}

/// Bytes of a number in a run.
fn width_of(bits: u8) -> usize {
    usize::from(bits).div_ceil(8)
}

/// The runs of `count` numbers, each of which has so many `bits`. `None` if there are not so many.
pub(crate) fn runs(mut bytes: &[u8], bits: u8, count: usize) -> Option<Vec<(u32, usize)>> {
    let mut runs: Vec<(u32, usize)> = Vec::new();
    let mut left = count;
    let mut push = |number: u32, times: usize| match runs.last_mut() {
        Some((last, before)) if *last == number => *before += times,
        _ if times == 0 => {}
        _ => runs.push((number, times)),
    };
    while left > 0 {
        let header = varint(&mut bytes)?;
        let of_header = usize::try_from(header >> 1).ok()?;
        if header & 1 == 0 {
            let (number, rest) = bytes.split_at_checked(width_of(bits))?;
            bytes = rest;
            let times = of_header.min(left);
            push(little_endian(number), times);
            left -= times;
            continue;
        }
        let (packed, rest) = bytes.split_at_checked(of_header.checked_mul(usize::from(bits))?)?;
        bytes = rest;
        let times = of_header.checked_mul(8)?.min(left);
        for at in 0..times {
            push(packed_at(packed, bits, at), 1);
        }
        left -= times;
    }
    Some(runs)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..63).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn little_endian(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

/// Number `at` of packed bits.
fn packed_at(packed: &[u8], bits: u8, at: usize) -> u32 {
    let first = at * usize::from(bits);
    let end = first + usize::from(bits);
    let held = packed.get(first / 8..end.div_ceil(8)).unwrap_or_default();
    let number = held.iter().rev().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    let mask = (1_u64 << bits) - 1;
    u32::try_from(number >> (first % 8) & mask).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_groups_are_read_as_runs() {
        // Parquet's own example: the numbers from 0 to 7 in three bits each, in a group of eight.
        let packed = [3, 0b1000_1000, 0b1100_0110, 0b1111_1010];
        let numbers: Vec<_> = (0..8).map(|number| (number, 1)).collect();
        assert_eq!(runs(&packed, 3, 8), Some(numbers.clone()));
        assert_eq!(runs(&packed, 3, 5).as_deref(), numbers.get(..5));
        assert_eq!(runs(&packed, 3, 9), None);
        assert_eq!(runs(&packed[..3], 3, 8), None);
    }

    #[test]
    fn runs_are_read_as_they_were_written() {
        for (bits, number) in [(1, 1), (7, 100), (9, 511), (32, u32::MAX)] {
            let mut out = Vec::new();
            push_run(&mut out, bits, number, 3);
            push_run(&mut out, bits, 0, 40_000);
            assert_eq!(runs(&out, bits, 40_003), Some(vec![(number, 3), (0, 40_000)]));
            assert_eq!(runs(&out, bits, 2), Some(vec![(number, 2)]));
            assert_eq!(runs(&out, bits, 50_000), None);
        }
        assert_eq!([0, 1, 2, 3, 256, 257].map(bits_of), [1, 1, 1, 2, 8, 9]);
        assert_eq!(runs(&[0, 0, 0], 8, 1), None);
    }
}
