//! The end of a name: the date of a snapshot, a variant, a fine-tuned model.

use std::borrow::Cow;

use super::parts::{Cuts, Kind, Name, TUNED, before, behind};
use super::platform::Platform;
use crate::rule::{PriceMatch, Rule};

/// Between the base of a fine-tuned model and the customer's number: Azure's and OpenAI's older way.
const TUNED_BEHIND: [&str; 2] = [".ft-", ":ft-"];

/// Snapshots that cost something else than the model without a date. They need rows of their own.
const OTHER_PRICES: [&str; 1] = ["gpt-4o-2024-05-13"];

/// Reads the end of a name that has no other parts.
pub(super) fn read<'a>(name: Name<'a>, platform: Platform) -> Name<'a> {
    if let Some(base) = tuned_base(&name.text) {
        let text = Cow::Owned(format!("{TUNED}{base}"));
        let tails = tails(&text, PriceMatch::EXACT, platform);
        return Name { kind: Kind::Tuned, tails, ..name.spelled_as(text, Rule::Tuned) };
    }
    if let Some(rest) = behind(&name.text, TUNED) {
        let mut all = Cuts::one(name.text.len(), PriceMatch::EXACT);
        if let Some(base) = rest.find(':') {
            let row = name.text.get(..TUNED.len().saturating_add(base)).unwrap_or_default();
            tails(row, Rule::Tuned.into(), platform).all().for_each(|(end, by)| all.push(end, by));
        } else {
            all = tails(&name.text, PriceMatch::EXACT, platform);
        }
        return Name { kind: Kind::Tuned, tails: all, ..name };
    }
    let tails = tails(&name.text, PriceMatch::EXACT, platform);
    let is_variant = tails.count == 1 && name.text.contains(':');
    let kind = if is_variant { Kind::Variant } else { name.kind };
    Name { kind, tails, ..name }
}

/// Whether a model is fine-tuned.
pub(super) fn is_tuned(model: &str) -> bool {
    behind(model, TUNED).is_some() || tuned_base(model).is_some()
}

/// The base of a fine-tuned model that stands before the mark.
fn tuned_base(model: &str) -> Option<&str> {
    let is_mark = |at: &usize| {
        let rest = model.get(*at..).unwrap_or_default();
        TUNED_BEHIND.iter().any(|mark| behind(rest, mark).is_some())
    };
    let begins = |(at, byte)| matches!(byte, b'.' | b':').then_some(at);
    let at = model.bytes().enumerate().skip(1).filter_map(begins).find(is_mark)?;
    model.get(..at)
}

/// The end of `text`, reached by `rules`, and the ends before what may be left out.
fn tails(text: &str, rules: PriceMatch, platform: Platform) -> Cuts {
    let mut cuts = Cuts::one(text.len(), rules);
    if let Some(model) = platform.latest.and_then(|latest| before(text, latest)) {
        cuts.cut(model.len(), Rule::Latest);
    } else if platform.has_dated_snapshots
        && !OTHER_PRICES.iter().any(|snapshot| before(text, snapshot).is_some())
        && let Some(model) = without_date(text)
    {
        cuts.cut(model.len(), Rule::Date);
    }
    cuts
}

/// `name` without `-YYYY-MM-DD` or `-YYYYMMDD` at its end.
pub(super) fn without_date(name: &str) -> Option<&str> {
    let split = |digits: &str| name.split_at_checked(name.len().checked_sub(digits.len())?);
    let (model, date) = split("-YYYY-MM-DD")
        .filter(|(_, date)| is_date(date, "-", "-"))
        .or_else(|| split("-YYYYMMDD").filter(|(_, date)| is_date(date, "-", "")))?;
    (!model.is_empty() && !date.is_empty()).then_some(model)
}

/// Whether `text` is a day of this century behind `before`, with `between` its parts.
pub(super) fn is_date(text: &str, before: &str, between: &str) -> bool {
    let parts = || {
        let (year, rest) = text.strip_prefix(before)?.split_at_checked(4)?;
        let (month, day) = rest.strip_prefix(between)?.split_at_checked(2)?;
        let day = day.strip_prefix(between)?;
        let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
        (year.starts_with("20")
            && day.len() == 2
            && [year, month, day].into_iter().all(is_number)
            && ("01"..="12").contains(&month)
            && ("01"..="31").contains(&day))
        .then_some(())
    };
    parts().is_some()
}
