//! Which time a command is about, as its arguments say.

use clap::Args;
use jiff::Timestamp;
use jiff::civil::Date;
use taximeter_billing::{Moment, Month, Period, PeriodError, Zone, day};
use taximeter_config::Config;

/// Which time it is about
#[derive(Debug, Clone, Args)]
pub(super) struct PeriodArgs {
    /// Calendar month [default: the current one]
    #[arg(long, value_name = "YYYY-MM", conflicts_with_all = ["day", "from"])]
    month: Option<Month>,

    /// Calendar day
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = day, conflicts_with = "from")]
    day: Option<Date>,

    /// Start, included: a date or an RFC 3339 time
    #[arg(long, value_name = "TIME")]
    from: Option<Moment>,

    /// End, not included [default: now]
    #[arg(long, value_name = "TIME", requires = "from")]
    to: Option<Moment>,

    #[command(flatten)]
    pub(super) zone: ZoneArgs,
}

/// Whose clocks and calendar
#[derive(Debug, Clone, Args)]
pub(super) struct ZoneArgs {
    /// Time zone of months, days and hours, such as Europe/Berlin [default: billing.zone of the
    /// configuration, else UTC]
    #[arg(long, value_name = "NAME")]
    zone: Option<Zone>,
}

impl PeriodArgs {
    /// The period; without any argument, the current month.
    ///
    /// Errors: it is empty, or there is none.
    pub(super) fn period(&self, zone: &Zone, now: Timestamp) -> Result<Period, PeriodError> {
        match (self.month, self.day, self.from) {
            (Some(month), ..) => month.period(zone),
            (None, Some(day), _) => Period::day(day, zone),
            (None, None, Some(from)) => {
                let to = self.to.map_or(Ok(now), |to| to.at(zone))?;
                Period::new(from.at(zone)?, to)
            }
            (None, None, None) => Period::month_of(now, zone),
        }
    }
}

impl ZoneArgs {
    /// The zone that was named; `None` when none was.
    pub(super) const fn named(&self) -> Option<&Zone> {
        self.zone.as_ref()
    }

    /// The zone: the one that was named, or the configuration's.
    pub(super) fn zone(&self, config: Option<&Config>) -> Zone {
        self.zone.clone().unwrap_or_else(|| configured_zone(config))
    }
}

/// The zone that a configuration names, else UTC.
pub(super) fn configured_zone(config: Option<&Config>) -> Zone {
    config.and_then(|config| Zone::new(config.billing.zone.clone())).unwrap_or_default()
}
