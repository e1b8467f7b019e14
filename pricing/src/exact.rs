//! Exact arithmetic. It returns `None` instead of a rounded result.

use rust_decimal::Decimal;

/// `a` × `b`. `None` if `Decimal` would round.
pub(crate) fn times(a: Decimal, b: Decimal) -> Option<Decimal> {
    let (a, b) = (a.normalize(), b.normalize());
    exact(a.mantissa().checked_mul(b.mantissa())?, a.scale().checked_add(b.scale())?)
}

/// `a` + `b`. `None` if `Decimal` would round.
pub(crate) fn plus(a: Decimal, b: Decimal) -> Option<Decimal> {
    let scale = a.scale().max(b.scale());
    let at_scale = |value: Decimal| {
        let factor = 10_i128.checked_pow(scale.checked_sub(value.scale())?)?;
        value.mantissa().checked_mul(factor)
    };
    exact(at_scale(a)?.checked_add(at_scale(b)?)?, scale)
}

fn exact(mantissa: i128, scale: u32) -> Option<Decimal> {
    Some(Decimal::try_from_i128_with_scale(mantissa, scale).ok()?.normalize())
}
