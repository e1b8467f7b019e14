//! What a configuration adds to a bill: shares of GPUs, and what is free each month.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use taximeter_billing::{Allowances, BillRow, Credit, GpuShares, Hour, HourKey, Period, Run};
use taximeter_config::{Config, Upstream};
use taximeter_pricing::{Allowance, GpuPrice};

use crate::commands::failure::Failure;
use crate::edge::store::{Filter, Store};

/// The longest that a request may run (`limits.request_timeout_seconds`): those that were admitted
/// this long before a period may have run into it.
const RUN_MAX: SignedDuration = SignedDuration::from_hours(24);

/// What is owed beside what the store has by the hour. Nothing of it without a configuration.
#[derive(Debug, Default)]
pub(super) struct Terms {
    allowances: BTreeMap<String, Allowance>,
    gpus: Vec<Gpus>,
}

#[derive(Debug)]
struct Gpus {
    upstream: String,
    provider: String,
    price: GpuPrice,
}

/// Which part of the ledger is billed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) period: Period,
    /// `None` is all.
    pub(super) tenant: Option<&'a str>,
    /// GPUs cost up to here, and not yet what is to come.
    pub(super) now: Timestamp,
}

impl Terms {
    /// Those of a configuration.
    pub(super) fn of(config: &Config) -> Self {
        let gpus = |upstream: &Upstream| {
            let (name, provider) = (upstream.name.clone(), upstream.provider.clone());
            Some(Gpus { upstream: name, provider, price: upstream.gpu.clone()? })
        };
        let tenants = config.tenants.list.iter();
        Self {
            allowances: tenants
                .filter_map(|tenant| Some((tenant.name.clone(), tenant.allowance.clone()?)))
                .collect(),
            gpus: config.upstreams.iter().filter_map(gpus).collect(),
        }
    }

    /// Shows `visit` every hour that is owed for; what of it is free.
    ///
    /// Errors: `visit`'s own; the store's; sums that cannot be kept exactly.
    pub(super) fn hours(
        &self,
        store: &mut Store,
        scope: Scope<'_>,
        mut visit: impl FnMut(&HourKey, &Hour) -> Result<(), Failure>,
    ) -> Result<Vec<Credit>, Failure> {
        let mut allowances = Allowances::new(scope.period, self.allowances.clone());
        if let Some(before) = allowances.before() {
            let before = Scope { period: before, ..scope };
            self.owed(store, before, |key, hour| Ok(allowances.add_before(key, hour)?))?;
        }
        self.owed(store, scope, |key, hour| {
            allowances.add(key, hour)?;
            visit(key, hour)
        })?;
        Ok(allowances.credits()?)
    }

    fn owed(
        &self,
        store: &mut Store,
        scope: Scope<'_>,
        mut visit: impl FnMut(&HourKey, &Hour) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let shares = self.shares(store, scope)?;
        store.hours(scope.period, scope.tenant, |key, hour| {
            match shares.iter().find_map(|shares| shares.instead_of(key, hour)) {
                Some((key, hour)) => visit(&key, &hour),
                None => visit(key, hour),
            }
        })?;
        for shares in shares {
            for (key, hour) in shares.finish()? {
                if scope.tenant.is_none_or(|tenant| tenant == key.tenant) {
                    visit(&key, &hour)?;
                }
            }
        }
        Ok(())
    }

    /// The GPUs with all who used them, whoever is billed.
    fn shares(&self, store: &mut Store, scope: Scope<'_>) -> Result<Vec<GpuShares>, Failure> {
        let Scope { period, now, .. } = scope;
        let Ok(past) = Period::new(period.from(), period.to().min(now)) else {
            return Ok(Vec::new());
        };
        let shares =
            |gpus: &Gpus| GpuShares::new(&gpus.upstream, &gpus.provider, gpus.price.clone(), past);
        let mut shares: Vec<_> = self.gpus.iter().map(shares).collect();
        if shares.is_empty() {
            return Ok(shares);
        }
        let from = past.from().checked_sub(RUN_MAX).unwrap_or(Timestamp::MIN);
        let filter = Filter { tenant: None, from: Some(from), to: Some(past.to()) };
        let newest = store.newest()?;
        store.records(&filter, newest, None, |record| {
            let key = HourKey::of(&BillRow::from(record));
            let run = Run {
                started_at: record.started_at,
                ended_at: record.ended_at,
                input_tokens: record.usage.input_tokens,
                output_tokens: record.usage.output_tokens,
            };
            for shares in &mut shares {
                shares.add(&key, &run);
            }
            Ok::<_, Failure>(())
        })?;
        Ok(shares)
    }
}
