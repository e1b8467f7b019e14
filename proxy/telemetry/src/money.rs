//! Money as a float, for metrics and for geometry. Bills and records keep the decimal.

use rust_decimal::Decimal;

/// Bits by which a remainder below 10^28 can be shifted within 128 bits.
const STEP: u32 = 34;
/// Up to this size every whole number is a float.
const EXACT_SIZE_MAX: u128 = 1 << 53;
/// Up to this one every power of ten is a float.
const EXACT_DIVISOR_MAX: u128 = 10_u128.pow(22);
/// The bias of a float's exponent.
const BIAS: i32 = 1023;
/// The bits of a float behind its exponent.
const MANTISSA_BITS: u32 = 52;

/// The float that is nearest to `amount`, ties to even: what its text would be read as.
///
/// Every decimal has one, since their range is far inside that of floats.
pub fn nearest(amount: Decimal) -> f64 {
    let size = amount.mantissa().unsigned_abs();
    let float = match amount.scale() {
        0 => rounded(size, 0, false),
        scale => divided(size, 10_u128.pow(scale)),
    };
    if amount.is_sign_negative() { -float } else { float }
}

/// `size / divisor`, of which the first is below 2^96 and the second a power of ten up to 10^28.
const fn divided(size: u128, divisor: u128) -> f64 {
    if size <= EXACT_SIZE_MAX && divisor <= EXACT_DIVISOR_MAX {
        // Both are floats as they are, so that only the quotient is rounded.
        #[expect(clippy::cast_precision_loss, reason = "none is lost")]
        return size as f64 / divisor as f64;
    }
    if size == 0 {
        return 0.0;
    }
    // Two digits of a long division: of the first there are at least 34 bits.
    let shift = size.leading_zeros();
    let (first, rest) = ((size << shift) / divisor, (size << shift) % divisor);
    let (second, rest) = ((rest << STEP) / divisor, (rest << STEP) % divisor);
    #[expect(clippy::cast_possible_wrap, reason = "at most 128")]
    let power = -(shift as i32);
    if first >> (u128::BITS - STEP) == 0 {
        rounded(first << STEP | second, power - STEP as i32, rest > 0)
    } else {
        // The first alone has more bits than a float.
        rounded(first, power, second > 0 || rest > 0)
    }
}

/// `bits × 2^power`; `more` says that a part of the last bit is missing.
#[expect(clippy::cast_precision_loss, reason = "this is where it is rounded, and once")]
const fn rounded(bits: u128, power: i32, more: bool) -> f64 {
    // A float takes 53 bits. 64 leave eleven to round by; whatever is below them makes the last of
    // those odd, so that no tie is seen where there is none.
    let surplus = 64_u32.saturating_sub(bits.leading_zeros());
    let below = bits & ((1 << surplus) - 1);
    #[expect(clippy::cast_possible_truncation, reason = "64 bits are left")]
    let top = (bits >> surplus) as u64 | (more || below > 0) as u64;
    #[expect(clippy::cast_possible_wrap, reason = "at most 64")]
    let power = power + surplus as i32;
    top as f64 * two_to(power)
}

/// `2^power`, which for the powers of decimals is a normal number.
#[expect(clippy::cast_sign_loss, reason = "far above the least power")]
const fn two_to(power: i32) -> f64 {
    f64::from_bits(((BIAS + power) as u64) << MANTISSA_BITS)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The nearest float, as the standard library reads a text.
    fn read(amount: Decimal) -> u64 {
        amount.to_string().parse::<f64>().unwrap().to_bits()
    }

    #[test]
    fn amounts_at_the_ends_of_the_range_become_floats() {
        for text in [
            "0",
            "-0.00",
            "0.0000000000000000000000000000",
            "0.0000000000000000000000000001",
            "-0.0000000000000000000000000003",
            "79228162514264337593543950335",
            "-79228162514264337593543950335",
            "7.9228162514264337593543950335",
            "0.1",
            "0.00012340",
            "1.005",
            "9007199254740993",
            "9007199254740992.5",
            "9007199254740991.5",
            "4503599627370497.5",
            "4503599627370496.5000000000001",
        ] {
            let amount: Decimal = text.parse().unwrap();
            let (float, read) = (nearest(amount), read(amount));
            assert!(float.to_bits() == read || float == 0.0, "{text}: {float}");
        }
    }

    proptest! {
        #[test]
        fn the_float_is_the_one_that_the_text_is_read_as(
            high in any::<u32>(),
            low in any::<u64>(),
            shift in 0..96_u32,
            scale in 0..=28_u32,
            is_negative in any::<bool>(),
        ) {
            let size = (i128::from(high) << 64 | i128::from(low)) >> shift;
            let size = if is_negative { -size } else { size };
            let amount = Decimal::from_i128_with_scale(size, scale);
            let (float, read) = (nearest(amount).to_bits(), read(amount));
            prop_assert!(float == read || size == 0, "{}: {} and {}", amount, float, read);
        }
    }
}
