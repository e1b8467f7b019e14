//! The rules between one limit and another.

use crate::limits::{Limits, RawLimits};
use crate::mistake::Invalid;
use crate::numbers::Whole;
use crate::reader::{Location, Optional, Reader, Spanned};

/// The limits. Reports those that contradict each other.
pub(super) fn limits(raw: RawLimits, reader: &mut Reader<'_>) -> Limits {
    let default = Limits::default();
    let target = given("uri_bytes_max", &raw.uri_bytes_max, default.uri_bytes_max);
    let head = given("header_bytes_max", &raw.header_bytes_max, default.header_bytes_max);
    ordered(&target, &head, reader);
    let body = given("body_bytes_max", &raw.body_bytes_max, default.body_bytes_max);
    let bodies = &raw.bodies_total_bytes_max;
    let bodies = given("bodies_total_bytes_max", bodies, Limits::BODIES_TOTAL_BYTES);
    ordered(&body, &bodies, reader);
    Limits::of(raw)
}

/// A limit: what the file says, or its default.
struct Given<'raw> {
    name: &'static str,
    bytes: u64,
    /// Where the file has it, and how it is written there.
    written: Option<(&'raw Location, &'raw str)>,
    /// Whether the file has it, and it cannot be read. That is reported already.
    is_wrong: bool,
}

fn given<'raw, const MIN: u64, const MAX: u64>(
    name: &'static str,
    raw: &'raw Optional<Spanned<Whole<MIN, MAX>>>,
    default: usize,
) -> Given<'raw> {
    let given = raw.as_ref().given();
    Given {
        name,
        bytes: given.map_or(default as u64, |number| number.value.get()),
        written: given.map(|number| (&number.location, &*number.written)),
        is_wrong: matches!(raw, Optional::Wrong),
    }
}

/// Reports when `part` is more than `whole`, at the one that the file gives.
fn ordered(part: &Given<'_>, whole: &Given<'_>, reader: &mut Reader<'_>) {
    if part.bytes <= whole.bytes || part.is_wrong || whole.is_wrong {
        return;
    }
    let (location, written, why) = match (part.written, whole.written) {
        (Some((location, written)), _) => {
            let most = format!("at most `{}`, which is {}", whole.name, whole.bytes);
            (location, written, Invalid::new("is too large", most))
        }
        (None, Some((location, written))) => {
            let least = format!("at least `{}`, which is {}", part.name, part.bytes);
            (location, written, Invalid::new("is too small", least))
        }
        (None, None) => return,
    };
    reader.invalid::<Whole<0, 0>>(location, written, &why);
}
