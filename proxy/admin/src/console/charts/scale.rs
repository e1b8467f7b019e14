//! Axes of charts: from 0 to a round number, in round steps.

use rust_decimal::Decimal;

/// Most steps of an axis.
const STEPS_MAX: u64 = 4;

/// Round values from 0 to at least `largest`, at equal distances. If `largest` is not positive,
/// they end at 1.
pub(crate) fn ticks(largest: Decimal) -> Vec<Decimal> {
    let largest = if largest > Decimal::ZERO { largest } else { Decimal::ONE };
    let step = step(largest);
    let mut ticks = vec![Decimal::ZERO];
    while let Some(last) = ticks.last().copied().filter(|last| *last < largest) {
        // Near the end of what a number can be, the axis ends with it.
        ticks.push(last.checked_add(step).unwrap_or(Decimal::MAX));
    }
    ticks
}

/// The smallest round step (1, 2, 2.5 or 5 times a power of ten) that needs at most `STEPS_MAX`
/// steps.
fn step(largest: Decimal) -> Decimal {
    const ROUND: [i64; 4] = [10, 20, 25, 50];
    let needed = largest / Decimal::from(STEPS_MAX);
    let mut power = Decimal::from_i128_with_scale(1, 27);
    loop {
        for round in ROUND {
            match power.checked_mul(Decimal::from(round)) {
                Some(step) if step < needed => {}
                Some(step) => return step.normalize(),
                None => return needed,
            }
        }
        let Some(next) = power.checked_mul(Decimal::TEN) else { return needed };
        power = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_has_few_round_steps_and_room_for_all() {
        let shown = |largest: &str| {
            let ticks = ticks(Decimal::from_str_exact(largest).unwrap());
            ticks.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        for (largest, axis) in [
            ("0", "0 0.25 0.50 0.75 1.00"),
            ("1", "0 0.25 0.50 0.75 1.00"),
            ("4", "0 1 2 3 4"),
            ("4.1", "0 2 4 6"),
            ("93", "0 25 50 75 100"),
            ("0.00123", "0 0.0005 0.0010 0.0015"),
            ("730000", "0 200000 400000 600000 800000"),
        ] {
            assert_eq!(shown(largest), axis, "{largest}");
        }
    }

    #[test]
    fn the_largest_number_has_an_axis_too() {
        for largest in [Decimal::MAX, Decimal::from_i128_with_scale(1, 28), Decimal::MIN] {
            let ticks = ticks(largest);
            assert!(ticks.len() <= 6 && ticks.is_sorted(), "{ticks:?}");
        }
    }
}
