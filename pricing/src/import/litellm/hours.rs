//! LiteLLM's hours of the day in UTC. Their weekdays may belong to another time zone.

use taximeter_json::Value;

use crate::import::json::Members;
use crate::off_peak::{Day, Hours, Window};

/// Minutes of a day.
const DAY: u16 = 24 * 60;

/// Why the windows cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// They have a wrong form.
    Wrong,
    /// Their weekdays belong to an unknown time zone.
    Zone,
}

/// The windows of an object with `hours_utc` or `windows`.
pub(super) fn windows(members: &Members<'_>) -> Result<Vec<Window>, Fault> {
    let ahead = match members.text("weekday_timezone").as_deref() {
        None | Some("UTC" | "Etc/UTC") => 0,
        // These zones have the same offset all year.
        Some("Asia/Shanghai" | "Asia/Singapore" | "Asia/Hong_Kong") => 8 * 60,
        Some(_) => return Err(Fault::Zone),
    };
    let mut windows = Vec::new();
    if let Some(hours) = members.get("hours_utc") {
        add(hours, Day::ALL.to_vec(), ahead, &mut windows)?;
    }
    for window in
        members.get("windows").map_or(Ok(Vec::new()), |list| list.elements().ok_or(Fault::Wrong))?
    {
        let window = Members::of(window).ok_or(Fault::Wrong)?;
        let days = window.get("weekdays").map_or(Ok(Day::ALL.to_vec()), weekdays)?;
        add(window.get("hours_utc").ok_or(Fault::Wrong)?, days, ahead, &mut windows)?;
    }
    if windows.is_empty() { Err(Fault::Wrong) } else { Ok(windows) }
}

/// Weekdays by number. 1 is Monday.
fn weekdays(list: Value<'_>) -> Result<Vec<Day>, Fault> {
    let days = list.elements().ok_or(Fault::Wrong)?;
    let day = |number: Value<'_>| {
        let number: usize = number.as_str().parse().ok()?;
        Day::ALL.get(number.checked_sub(1)?).copied()
    };
    days.into_iter().map(|number| day(number).ok_or(Fault::Wrong)).collect()
}

/// Adds one text of hours, or a list of texts.
fn add(
    hours: Value<'_>,
    days: Vec<Day>,
    ahead: u16,
    windows: &mut Vec<Window>,
) -> Result<(), Fault> {
    let texts = match hours.text() {
        Some(text) => vec![text],
        None => {
            let texts = hours.elements().ok_or(Fault::Wrong)?;
            texts
                .into_iter()
                .map(|item| item.text().ok_or(Fault::Wrong))
                .collect::<Result<_, _>>()?
        }
    };
    let mut same_day = Vec::new();
    let mut day_before = Vec::new();
    for text in texts {
        let (from, until) = text.split_once('-').ok_or(Fault::Wrong)?;
        let (from, until) = (minute(from)?, minute(until)?);
        let parts = match until {
            0 => vec![(from, DAY)],
            until if from < until => vec![(from, until)],
            // Over midnight. The file does not say to which of the two days the hours belong, so
            // this is allowed only if all days are alike.
            until if days.len() == Day::ALL.len() => vec![(from, DAY), (0, until)],
            _ => return Err(Fault::Wrong),
        };
        // At the end of a UTC day, the next weekday of the zone has already begun.
        let turn = DAY - ahead;
        for (from, until) in parts {
            same_day.extend(between(from, until.min(turn)));
            day_before.extend(between(from.max(turn), until));
        }
    }
    let before = days.iter().map(|day| {
        let at = Day::ALL.iter().position(|known| known == day).unwrap_or_default();
        Day::ALL.iter().copied().cycle().nth(at + Day::ALL.len() - 1).unwrap_or(*day)
    });
    let before = before.collect();
    for (days, hours) in [(days, same_day), (before, day_before)] {
        if !hours.is_empty() {
            windows.push(Window { days, hours });
        }
    }
    Ok(())
}

fn between(from: u16, until: u16) -> Option<Hours> {
    (from < until).then_some(Hours { from, until })
}

fn minute(text: &str) -> Result<u16, Fault> {
    let parts = text
        .trim()
        .split_once(':')
        .and_then(|(hour, minute)| Some((hour.parse::<u16>().ok()?, minute.parse::<u16>().ok()?)));
    let minute = parts
        .filter(|(_, minute)| *minute < 60)
        .and_then(|(hour, minute)| hour.checked_mul(60)?.checked_add(minute));
    minute.filter(|minute| *minute <= DAY).map(|minute| minute % DAY).ok_or(Fault::Wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(json: &str) -> Result<Vec<String>, Fault> {
        let value = Value::checked(json);
        let windows = windows(&Members::of(value).unwrap())?;
        Ok(windows.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn hours_are_of_every_day_unless_told() {
        let week = "mon tue wed thu fri sat sun";
        for (hours, expected) in [
            (r#""16:30-00:30""#, "16:30-24:00, 00:00-00:30"),
            (r#""00:00-00:00""#, "00:00-24:00"),
            (r#"["01:00-02:00","10:00-24:00"]"#, "01:00-02:00, 10:00-24:00"),
        ] {
            let found = shown(&format!(r#"{{"hours_utc":{hours}}}"#)).unwrap();
            assert_eq!(found, [format!("{week} {expected}")]);
        }
        let window = r#"{"windows":[{"hours_utc":"10:00-00:00","weekdays":[1,7]}]}"#;
        assert_eq!(shown(window).unwrap(), ["mon sun 10:00-24:00"]);
    }

    #[test]
    fn weekdays_of_a_zone_ahead_begin_on_the_day_before() {
        let window = r#"{"weekday_timezone":"Asia/Shanghai",
            "windows":[{"hours_utc":["00:00-01:00","10:00-00:00"],"weekdays":[1,2]}]}"#;
        assert_eq!(
            shown(window).unwrap(),
            ["mon tue 00:00-01:00, 10:00-16:00", "sun mon 16:00-24:00"]
        );
    }

    #[test]
    fn hours_that_are_none_are_a_fault() {
        for wrong in [
            "{}",
            r#"{"hours_utc":"1-2"}"#,
            r#"{"hours_utc":"25:00-26:00"}"#,
            r#"{"hours_utc":7}"#,
            r#"{"windows":[{"weekdays":[1]}]}"#,
            r#"{"windows":[{"hours_utc":"01:00-02:00","weekdays":[0]}]}"#,
        ] {
            assert_eq!(shown(wrong), Err(Fault::Wrong), "{wrong}");
        }
        let moon = r#"{"hours_utc":"01:00-02:00","weekday_timezone":"Moon/Tycho"}"#;
        assert_eq!(shown(moon), Err(Fault::Zone));
    }
}
