//! Computes what a configuration adds to the cost of requests: shares of GPUs and monthly
//! allowances. Bills, exports and statements all use it, so that they show the same amounts.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use taximeter_billing::{
    Allowances, BillError, Credit, GpuShares, Hour, HourKey, Period, PeriodError, RequestRun,
    SplitBy, Unit, Zone, hour_of,
};
use taximeter_collections::Gather as _;
use taximeter_config::{Config, Upstream};
use taximeter_pricing::{Allowance, Dated, GpuPrice};

use crate::{Granularity, Store, StoreError};

/// The longest that a request may run (`limits.request_timeout_seconds`): those that were admitted
/// this long before a period may have run into it.
const RUN_MAX: SignedDuration = SignedDuration::from_hours(24);

/// The amounts that a configuration adds to the sums of the store. Without a configuration there
/// are none.
#[derive(Debug, Clone, Default)]
pub struct Terms {
    allowances: BTreeMap<String, Dated<Allowance>>,
    gpus: Vec<Gpus>,
}

/// What an upstream runs on for a time.
#[derive(Debug, Clone)]
struct Gpus {
    upstream: String,
    provider: String,
    price: GpuPrice,
}

/// The part of the ledger that is billed.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// The period of the bill.
    pub period: Period,
    /// The time zone of the months that allowances are for.
    pub zone: &'a Zone,
    /// The shortest calendar unit that the bill distinguishes; at most a month.
    pub unit: Unit,
    /// The tenant; `None` means all.
    pub tenant: Option<&'a str>,
    /// The current time. GPUs cost up to it.
    pub now: Timestamp,
    /// What the bill distinguishes of what clients say.
    pub split_by: &'a SplitBy,
}

impl<'a> Scope<'a> {
    /// For months in UTC, as exports have them.
    pub const fn in_utc(period: Period, tenant: Option<&'a str>, now: Timestamp) -> Self {
        static UTC: Zone = Zone::UTC;
        Self { period, zone: &UTC, unit: Unit::Month, tenant, now, split_by: SplitBy::NONE }
    }
}

/// The origin of an hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Requests and their corrections.
    Ledger,
    /// Shares of GPUs, and their idle time.
    Gpus,
}

impl Terms {
    /// The terms of a configuration.
    pub fn of(config: &Config) -> Self {
        let gpus = |upstream: &Upstream| {
            let (name, provider) = (upstream.name.clone(), upstream.provider.clone());
            let of = move |price: &GpuPrice| Gpus {
                upstream: name.clone(),
                provider: provider.clone(),
                price: price.clone(),
            };
            upstream.gpus.iter().map(of).collect::<Vec<_>>()
        };
        let tenants = config.tenants.list.iter();
        Self {
            allowances: tenants
                .filter_map(|tenant| Some((tenant.name.clone(), tenant.allowance.clone()?)))
                .gather(),
            gpus: config.upstreams.iter().flat_map(gpus).collect(),
        }
    }

    /// Whether there are GPUs. Their cost grows with time.
    pub const fn have_gpus(&self) -> bool {
        !self.gpus.is_empty()
    }

    /// Whether requests and their corrections are the only amounts.
    pub fn add_nothing(&self) -> bool {
        self.allowances.is_empty() && self.gpus.is_empty()
    }

    /// Whether a request to `upstream` that was admitted `at` pays a share of GPUs, whatever its
    /// record says.
    pub fn owes_share(&self, upstream: &str, at: Timestamp) -> bool {
        let at = hour_of(at);
        self.gpus.iter().any(|gpus| gpus.upstream == upstream && gpus.price.covers(at))
    }

    /// Calls `visit` with every hour that costs something, and returns the free part.
    ///
    /// Errors: `visit`'s own; the store's; sums that cannot be kept exactly; a period of too many
    /// parts.
    pub fn hours<E: From<StoreError> + From<BillError> + From<PeriodError>>(
        &self,
        store: &mut Store,
        scope: Scope<'_>,
        visit: impl FnMut(Origin, &HourKey, &Hour) -> Result<(), E>,
    ) -> Result<Vec<Credit>, E> {
        self.less_free(store, scope, None, visit)
    }

    /// The same, as finely as sums need it, which is much less to look at: of what owes no share of
    /// a GPU, and of tenants for whom nothing is free, one sum for each unit of the calendar, with
    /// the key of the first of its hours. What is before `cut` is in other sums than what is behind.
    ///
    /// Errors: as [`hours`](Self::hours).
    pub fn sums<E: From<StoreError> + From<BillError> + From<PeriodError>>(
        &self,
        store: &mut Store,
        scope: Scope<'_>,
        cut: Option<Timestamp>,
        mut visit: impl FnMut(&HourKey, &Hour) -> Result<(), E>,
    ) -> Result<Vec<Credit>, E> {
        let mut cuts = scope.period.starts(scope.unit, scope.zone)?;
        cuts.extend(cut);
        taximeter_collections::sort(&mut cuts);
        let owes_share = |key: &HourKey| self.gpus.iter().any(|gpus| gpus.upstream == key.upstream);
        let is_hourly =
            |key: &HourKey| owes_share(key) || self.allowances.contains_key(&key.tenant);
        let granularity = Granularity { cuts: &cuts, is_hourly: &is_hourly };
        self.less_free(store, scope, Some(granularity), |_, key, hour| visit(key, hour))
    }

    fn less_free<E: From<StoreError> + From<BillError> + From<PeriodError>>(
        &self,
        store: &mut Store,
        scope: Scope<'_>,
        granularity: Option<Granularity<'_>>,
        mut visit: impl FnMut(Origin, &HourKey, &Hour) -> Result<(), E>,
    ) -> Result<Vec<Credit>, E> {
        let (zone, of) = (scope.zone.clone(), self.allowances.clone());
        let mut allowances = Allowances::new(scope.period, zone, of);
        if let Some(before) = allowances.before() {
            let before = Scope { period: before, split_by: SplitBy::NONE, ..scope };
            self.owed(store, before, granularity, |_, key, hour| {
                Ok::<_, E>(allowances.add_before(key, hour)?)
            })?;
        }
        self.owed(store, scope, granularity, |origin, key, hour| {
            allowances.add(key, hour)?;
            visit(origin, key, hour)
        })?;
        Ok(allowances.credits()?)
    }

    /// Every hour in order where there is no `granularity`.
    fn owed<E: From<StoreError> + From<BillError> + From<PeriodError>>(
        &self,
        store: &mut Store,
        scope: Scope<'_>,
        granularity: Option<Granularity<'_>>,
        mut visit: impl FnMut(Origin, &HourKey, &Hour) -> Result<(), E>,
    ) -> Result<(), E> {
        let shares = self.shares(store, scope)?;
        for part in scope.period.parts(scope.unit, scope.zone)? {
            let visit = |key: &HourKey, hour: &Hour| match shares
                .iter()
                .find_map(|shares| shares.without_token_cost(key, hour))
            {
                Some((key, hour)) => visit(Origin::Ledger, &key, &hour),
                None => visit(Origin::Ledger, key, hour),
            };
            match granularity {
                _ if !scope.split_by.is_empty() => {
                    store.split_hours(part, scope.tenant, scope.split_by, visit)?;
                }
                None => store.hours(part, scope.tenant, visit)?,
                Some(granularity) => store.sums(part, scope.tenant, granularity, visit)?,
            }
        }
        for shares in shares {
            for (key, hour) in shares.finish()? {
                if scope.tenant.is_none_or(|tenant| tenant == key.tenant) {
                    visit(Origin::Gpus, &key, &hour)?;
                }
            }
        }
        Ok(())
    }

    /// The GPUs with all who used them, whoever is billed.
    fn shares(&self, store: &mut Store, scope: Scope<'_>) -> Result<Vec<GpuShares>, StoreError> {
        let Scope { period, zone, now, .. } = scope;
        let Ok(past) = Period::new(period.from(), period.to().min(now)) else {
            return Ok(Vec::new());
        };
        let shares = |gpus: &Gpus| {
            let price = gpus.price.clone();
            GpuShares::new(&gpus.upstream, &gpus.provider, price, past, zone.clone())
        };
        let mut shares: Vec<_> = self.gpus.iter().map(shares).collect();
        if shares.is_empty() {
            return Ok(shares);
        }
        let from = past.from().checked_sub(RUN_MAX).unwrap_or(Timestamp::MIN);
        let Ok(running) = Period::new(from, past.to()) else { return Ok(shares) };
        store.runs(running, |row, ended_at| {
            if !self.gpus.iter().any(|gpus| gpus.upstream == row.upstream) {
                return;
            }
            let run = RequestRun {
                started_at: row.started_at,
                ended_at,
                input_tokens: row.input_tokens,
                output_tokens: row.output_tokens,
            };
            let key = HourKey::split(row, scope.split_by);
            for shares in &mut shares {
                shares.add(&key, &run);
            }
        })?;
        Ok(shares)
    }
}
