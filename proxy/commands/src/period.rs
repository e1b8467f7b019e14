//! The arguments that choose a period.

use clap::Args;
use jiff::Timestamp;
use jiff::civil::Date;
use taximeter_billing::{Moment, Month, Period, PeriodError, Zone, day};
use taximeter_config::Config;

/// The period
#[derive(Debug, Clone, Args)]
pub(super) struct PeriodArgs {
    /// Calendar month [default: the current one]
    #[arg(long, value_name = "YYYY-MM", conflicts_with_all = ["day", "from"])]
    month: Option<Month>,

    /// Calendar day
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = day, conflicts_with = "from")]
    day: Option<Date>,

    /// Start of the period, included: a date or an RFC 3339 time
    #[arg(long, value_name = "TIME")]
    from: Option<Moment>,

    /// End of the period, not included [default: now]
    #[arg(long, value_name = "TIME", requires = "from")]
    to: Option<Moment>,

    #[command(flatten)]
    pub(super) zone: ZoneArgs,
}

/// The time zone
#[derive(Debug, Clone, Args)]
pub(super) struct ZoneArgs {
    /// Time zone of months, days and hours, such as Europe/Berlin [default: billing.zone of the
    /// configuration, else UTC]
    #[arg(long, value_name = "NAME")]
    zone: Option<Zone>,
}

impl PeriodArgs {
    /// The period. Without any argument, it is the current month.
    ///
    /// Errors: the period is empty or not valid, or it has not begun.
    pub(super) fn period(&self, zone: &Zone, now: Timestamp) -> Result<Period, PeriodError> {
        match (self.month, self.day, self.from) {
            (Some(month), ..) => month.period(zone)?.begun(now),
            (None, Some(day), _) => Period::day(day, zone)?.begun(now),
            (None, None, Some(from)) => {
                let from = from.at(zone)?;
                if from > now {
                    return Err(PeriodError::Future { from, now });
                }
                Period::new(from, self.to.map_or(Ok(now), |to| to.at(zone))?)
            }
            (None, None, None) => Period::month_of(now, zone),
        }
    }
}

impl ZoneArgs {
    /// The time zone in the arguments, if there is one.
    pub(super) const fn named(&self) -> Option<&Zone> {
        self.zone.as_ref()
    }

    /// The time zone in the arguments, else that of the configuration.
    pub(super) fn zone(&self, config: Option<&Config>) -> Zone {
        self.zone.clone().unwrap_or_else(|| configured_zone(config))
    }
}

/// The `billing.zone` of a configuration, else UTC.
pub(super) fn configured_zone(config: Option<&Config>) -> Zone {
    config.and_then(|config| Zone::new(config.billing.zone.clone())).unwrap_or_default()
}
