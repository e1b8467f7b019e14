//! Writes rows as a price file.

use std::fmt::{self, Write as _};

use jiff::civil::Date;

use crate::off_peak::OffPeak;
use crate::rates::{Rates, list_price};
use crate::row::{
    CacheWithoutRate, ModalityWithoutRate, RateCard, Row, ServiceTier, Threshold, When,
};

/// A price file with `rows`. `about` becomes comment lines at its start. All rows follow the same
/// rules and have the same currency. `None` if decimal text cannot hold a price.
pub(crate) fn write(rows: &[Row], version: Date, about: &str) -> Option<String> {
    let mut text = String::new();
    for line in about.lines() {
        writeln!(text, "# {line}").ok()?;
    }
    writeln!(text, "version: {version}").ok()?;
    if let Some(row) = rows.first() {
        writeln!(text, "currency: {}", row.currency).ok()?;
        if row.cache_without_rate == CacheWithoutRate::Input {
            text.push_str("cache_without_rate: input\n");
        }
        if row.modality_without_rate == ModalityWithoutRate::Text {
            text.push_str("modality_without_rate: text\n");
        }
    }
    text.push_str(if rows.is_empty() { "models: []\n" } else { "models:\n" });
    rows.iter().try_for_each(|one| row(one, &mut text)).ok()?;
    Some(text)
}

fn row(row: &Row, text: &mut String) -> fmt::Result {
    writeln!(text, "- model: {}", quoted(&row.model))?;
    if let Some(provider) = &row.provider {
        writeln!(text, "  provider: {}", quoted(provider))?;
    }
    if !row.aliases.is_empty() {
        let aliases: Vec<_> = row.aliases.iter().map(|alias| quoted(alias)).collect();
        writeln!(text, "  aliases: [{}]", aliases.join(", "))?;
    }
    if let Some(from) = row.from {
        writeln!(text, "  from: {from}")?;
    }
    if let Some(until) = row.until {
        writeln!(text, "  until: {until}")?;
    }
    if row.input_only {
        text.push_str("  input_only: true\n");
    }
    card(&row.card, "  ", text)?;
    if !row.long_context.is_empty() {
        text.push_str("  long_context:\n");
    }
    for long in &row.long_context {
        match long.threshold {
            Threshold::Over(tokens) => writeln!(text, "  - over: {tokens}")?,
            Threshold::AtLeast(tokens) => writeln!(text, "  - at_least: {tokens}")?,
        }
        card(&long.card, "    ", text)?;
    }
    if let Some(hours) = &row.off_peak {
        off_peak(hours, text)?;
    }
    when(&row.when, text)
}

fn card(card: &RateCard, indent: &str, text: &mut String) -> fmt::Result {
    writeln!(text, "{indent}rates: {}", rates(&card.rates)?)?;
    let tiers = ServiceTier::ALL.map(|tier| (tier, card.tiers.rates(tier)));
    if tiers.iter().any(|(_, rates)| rates.is_some()) {
        writeln!(text, "{indent}tiers:")?;
    }
    for (tier, of_tier) in tiers {
        if let Some(of_tier) = of_tier {
            writeln!(text, "{indent}  {}: {}", tier.as_str(), rates(of_tier)?)?;
        }
    }
    Ok(())
}

fn off_peak(off_peak: &OffPeak, text: &mut String) -> fmt::Result {
    writeln!(text, "  off_peak:\n    rates: {}\n    windows:", rates(&off_peak.rates)?)?;
    for window in &off_peak.windows {
        let days: Vec<_> = window.days.iter().map(|day| day.as_str()).collect();
        let hours: Vec<_> = window.hours.iter().map(|hours| format!("\"{hours}\"")).collect();
        writeln!(text, "    - days: [{}]\n      hours: [{}]", days.join(", "), hours.join(", "))?;
    }
    Ok(())
}

fn when(when: &When, text: &mut String) -> fmt::Result {
    if !when.is_empty() {
        text.push_str("  when:\n");
    }
    for (condition, words) in when {
        writeln!(text, "    {}:", condition.as_str())?;
        for (word, effect) in words {
            let mut said = Vec::new();
            if let Some(times) = effect.times {
                said.push(format!("times: {}", times.normalize()));
            }
            if !effect.rates.is_empty() {
                said.push(format!("rates: {}", rates(&effect.rates)?));
            }
            writeln!(text, "      {}: {{{}}}", quoted(word), said.join(", "))?;
        }
    }
    Ok(())
}

fn rates(rates: &Rates) -> Result<String, fmt::Error> {
    let mut said = Vec::new();
    for (meter, rate) in rates.iter() {
        said.push(format!("{meter}: {}", list_price(meter, rate).ok_or(fmt::Error)?));
    }
    Ok(format!("{{{}}}", said.join(", ")))
}

/// A JSON string, which YAML reads as the same text.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
