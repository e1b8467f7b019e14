//! Names of meters and units in FOCUS.

/// `SkuMeter`: what is counted, in words.
pub(super) fn meter(meter: &str, unit: &str) -> String {
    match (meter, unit) {
        ("cache_read", "tokens") => "Cached Input Tokens".to_owned(),
        ("cache_write", "tokens") => "Cache Write Tokens".to_owned(),
        ("cache_write_long", "tokens") => "Long Cache Write Tokens".to_owned(),
        ("gpu", "gpu_hours") => "GPU Hours".to_owned(),
        ("gpu_idle", "gpu_hours") => "Idle GPU Hours".to_owned(),
        (meter, unit) if meter == unit || meter.ends_with(&format!("_{unit}")) => title(meter),
        (meter, unit) => format!("{} {}", title(meter), title(unit)),
    }
}

/// A unit in the format of FOCUS: capitalised words in the plural.
pub(super) fn unit(unit: &str) -> String {
    if unit == "gpu_hours" { "GPU-Hours".to_owned() } else { title(unit) }
}

/// `audio_seconds` → `Audio Seconds`. Every character but letters and digits separates words, so
/// the result always has the format of FOCUS.
fn title(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for word in name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()) {
        if !out.is_empty() {
            out.push(' ');
        }
        let (first, rest) = word.split_at(1);
        out.push_str(&first.to_ascii_uppercase());
        out.push_str(rest);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meters_read_as_words() {
        assert_eq!(meter("input", "tokens"), "Input Tokens");
        assert_eq!(meter("cache_read", "tokens"), "Cached Input Tokens");
        assert_eq!(meter("audio_seconds", "seconds"), "Audio Seconds");
        assert_eq!(meter("web_search", "calls"), "Web Search Calls");
        assert_eq!(meter("gpu_idle", "gpu_hours"), "Idle GPU Hours");
        assert_eq!((unit("tokens"), unit("gpu_hours")), ("Tokens".into(), "GPU-Hours".into()));
    }
}
