//! Dates in price files.

use std::fmt;

use jiff::civil::Date;
use serde::de::{Deserializer, Error, Visitor};

/// A date, such as 2026-11-20, and nothing else: no time of the day, no number.
pub(super) fn date<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Date>, D::Error> {
    struct Written;

    impl Visitor<'_> for Written {
        type Value = Date;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a date like 2026-11-20")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Date, E> {
            // The parser also takes other forms of dates, and drops a time behind one.
            let has_form = text.len() == "2026-11-20".len()
                && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
            let date = text.parse().ok().filter(|_| has_form);
            date.ok_or_else(|| {
                E::custom(format_args!("{text:?} is not a date; expected one like 2026-11-20"))
            })
        }
    }

    deserializer.deserialize_str(Written).map(Some)
}
