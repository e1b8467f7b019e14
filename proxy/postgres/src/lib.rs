//! The store in PostgreSQL, which several gateways can share.

mod add;
mod ask;
mod behind;
mod convert;
mod corrector;
mod fault;
mod gone;
mod hours;
mod keeping;
mod ledgers;
mod link;
mod reached;
mod rebuild;
mod refusals;
mod schema;
mod sessions;
mod statements;
mod tls;

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::time::Duration;

use jiff::Timestamp;
use taximeter_billing::export::Entries;
use taximeter_billing::{GatewayProgress, Hour, HourKey, Period};
use taximeter_config::PostgresUrl;
use taximeter_database::batch::{Added, Batch};
use taximeter_database::behind::{Behind, EntryPage, Lacked};
use taximeter_database::database::{AdmissionKey, Database, Filter, Rebuilt, Refill, Written};
use taximeter_database::error::StoreError;
use taximeter_database::gone::GoneDay;
use taximeter_database::granularity::Granularity;
use taximeter_database::post::Post;
use taximeter_database::sessions::{SessionVisitor, WhichSessions};
use taximeter_ledger::{Correction, LedgerId, Position, Record, RefusalCount};

use self::corrector::{Claim, Obstacle};
use self::fault::Fault;
use self::link::Link;
use self::schema::Month;

/// How often a change is tried that the server undid.
const ATTEMPTS_MAX: u32 = 8;
/// Most time before the second attempt; it doubles with each one.
const RETRY_WAIT: Duration = Duration::from_millis(20);

/// Who only reads keeps nobody waiting, however long.
const HOLD: &str = "
    BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
    SET LOCAL idle_in_transaction_session_timeout = 0";

/// An open database.
#[derive(Debug)]
pub struct Postgres {
    link: Link,
    url: PostgresUrl,
    /// Its URL without the password.
    name: String,
    /// Whose journals are fed.
    gateway: String,
    /// Months that have their tables.
    months: BTreeSet<Month>,
    /// Whether a change is open that many batches make.
    rebuilding: bool,
    /// Whether all is answered as of one moment.
    held: bool,
    /// While this store alone corrects.
    claim: Option<Claim>,
}

impl Postgres {
    /// Connects to the database at `url`; makes the tables when there are none. `gateway` is
    /// whose journals are fed, and different from all others.
    ///
    /// Errors: `OlderDatabase`, `Format`, `Damaged`, `Unavailable`.
    pub fn open(url: &PostgresUrl, gateway: &str) -> Result<Self, StoreError> {
        let database = Self::connect(url, gateway)?;
        database.ask(|link| schema::set_up(link, gateway.is_empty()))?;
        Ok(database)
    }

    /// The same, whatever is there, and nothing is made.
    ///
    /// Errors: `Unavailable`.
    pub fn connect(url: &PostgresUrl, gateway: &str) -> Result<Self, StoreError> {
        let name = url.to_string();
        let link = Link::open(url).map_err(|fault| fault.of(&name))?;
        Ok(Self {
            link,
            url: url.clone(),
            name,
            gateway: gateway.to_owned(),
            months: BTreeSet::new(),
            rebuilding: false,
            held: false,
            claim: None,
        })
    }

    /// Converts the next rows of formats 2 and 3, at most so many, or makes another step of that.
    /// How many they were. `None` if nothing is left to do.
    ///
    /// Errors: `Format`, `Damaged`, `Unavailable`. The steps before stay done.
    pub fn convert_some(&self, rows_max: u32) -> Result<Option<Rebuilt>, StoreError> {
        let step = self.change(|link| convert::step(link, rows_max));
        step.map_err(|fault| fault.of(&self.name))
    }

    /// The last entry of `journal` that is here, also in an older format. `None` where no store is.
    ///
    /// Errors: `Damaged`, `Unavailable`.
    pub fn fed(&self, journal: &str) -> Result<Option<Position>, StoreError> {
        self.ask(|link| match schema::version(link)? {
            0 => Ok(None),
            _ => ask::cursor(link, &self.gateway, journal),
        })
    }

    /// The entry of `journal` that was at `from` is at `to` now.
    ///
    /// Errors: `Damaged`, `Unavailable`.
    pub fn moved(&self, journal: &str, from: Position, to: Position) -> Result<(), StoreError> {
        self.ask(|link| convert::move_cursor(link, &self.gateway, journal, from, to))
    }

    fn ask<T>(&self, question: impl FnOnce(&Link) -> Result<T, Fault>) -> Result<T, StoreError> {
        question(&self.link).map_err(|fault| fault.of(&self.name))
    }

    /// Does all of `change` or nothing; again when another one was in its way.
    fn change<T>(&self, change: impl Fn(&Link) -> Result<T, Fault>) -> Result<T, Fault> {
        let link = &self.link;
        let mut attempt = 1;
        loop {
            let changed = schema::begin(link).and_then(|()| change(link)).and_then(|changed| {
                link.run("COMMIT")?;
                Ok(changed)
            });
            match changed {
                Err(fault) if fault.is_passing() && attempt < ATTEMPTS_MAX => {
                    link.run("ROLLBACK")?;
                    link.pause(jitter(RETRY_WAIT * 2_u32.pow(attempt - 1)));
                    attempt += 1;
                }
                Err(fault) => {
                    // Where this fails as well, the connection is gone, and with it the change.
                    let _ = link.run("ROLLBACK");
                    return Err(fault);
                }
                Ok(changed) => return Ok(changed),
            }
        }
    }
}

impl Database for Postgres {
    fn cursor(&mut self, journal: &str) -> Result<Option<Position>, StoreError> {
        self.ask(|link| ask::cursor(link, &self.gateway, journal))
    }

    fn add(&mut self, batch: &Batch<'_>) -> Result<Added, StoreError> {
        let admissions = batch.posts.iter().map(|post| post.numbers.started_at);
        let missing = &Month::of(admissions) - &self.months;
        let add = |link: &Link| {
            missing.iter().try_for_each(|month| month.make(link))?;
            add::batch(link, &self.gateway, batch, self.rebuilding)
        };
        let added = if self.rebuilding { add(&self.link) } else { self.change(add) };
        let added = added.map_err(|fault| fault.of(&self.name))?;
        self.months.extend(missing);
        Ok(added)
    }

    /// Each batch is a transaction of its own: another gateway may wait for it.
    fn commit(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    fn rebuild(&mut self, refill: &mut Refill<'_>) -> Result<Rebuilt, StoreError> {
        self.ask(|link| {
            schema::begin(link)?;
            rebuild::set_aside(link, &self.gateway)
        })?;
        self.rebuilding = true;
        let rebuilt = refill(self).and_then(|()| {
            self.ask(|link| {
                let rebuilt = rebuild::keep(link, &self.gateway)?;
                link.run("COMMIT")?;
                Ok(rebuilt)
            })
        });
        self.rebuilding = false;
        if rebuilt.is_err() {
            // Months that were made for it are not there any more.
            self.months.clear();
            let _ = self.link.run("ROLLBACK");
        }
        rebuilt
    }

    fn begin_correcting(&mut self, now: Timestamp, lost: Option<&str>) -> Result<(), StoreError> {
        let store = || self.name.clone();
        let begun = self
            .ask(|link| corrector::begin(link, Link::open(&self.url)?, &self.gateway, lost, now))?;
        self.claim = Some(begun.map_err(|obstacle| match obstacle {
            Obstacle::Busy => StoreError::Correcting { store: store() },
            Obstacle::Unfinished { gateway, since } => {
                StoreError::Unfinished { store: store(), gateway, since }
            }
        })?);
        Ok(())
    }

    fn end_correcting(&mut self) -> Result<(), StoreError> {
        let claim = self.claim.take();
        self.ask(|link| corrector::end(link, claim.as_ref(), &self.gateway))
    }

    fn hold(&mut self) -> Result<(), StoreError> {
        self.ask(|link| link.run(HOLD))?;
        self.held = true;
        Ok(())
    }

    fn release(&mut self) -> Result<(), StoreError> {
        self.held = false;
        self.ask(|link| link.run("ROLLBACK"))
    }

    fn newest(&mut self) -> Result<i64, StoreError> {
        self.ask(ask::newest)
    }

    fn details_from(&mut self) -> Result<Option<Timestamp>, StoreError> {
        self.ask(gone::details_from)
    }

    fn gone_days(&mut self) -> Result<Vec<GoneDay>, StoreError> {
        self.ask(gone::days)
    }

    fn gone_corrections(&mut self, visit: &mut dyn FnMut(&Correction)) -> Result<(), StoreError> {
        self.ask(|link| gone::corrections(link, visit))
    }

    fn remove_details(
        &mut self,
        before: Timestamp,
        rows_max: u32,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        let removed = self.change(|link| gone::remove(link, before, rows_max, now));
        removed.map_err(|fault| fault.of(&self.name))
    }

    fn keep_days(&mut self, own: u32) -> Result<u32, StoreError> {
        self.ask(|link| keeping::longest(link, &self.gateway, own))
    }

    fn hours(
        &mut self,
        hours: Period,
        tenant: Option<&str>,
        granularity: Granularity<'_>,
        visit: &mut dyn FnMut(HourKey, Hour) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.ask(|link| match self.held {
            true => hours::visit_held(link, hours, tenant, granularity, visit),
            false => hours::visit(link, hours, tenant, granularity, visit),
        })
    }

    fn sessions(
        &mut self,
        which: WhichSessions<'_>,
        visit: &mut SessionVisitor<'_>,
    ) -> Result<(), StoreError> {
        self.ask(|link| sessions::visit(link, which, visit))
    }

    fn posts(
        &mut self,
        period: Period,
        tenant: Option<&str>,
        visit: &mut dyn FnMut(&Post<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.ask(|link| ask::posts(link, period, tenant, visit))
    }

    fn written(
        &mut self,
        filter: &Filter,
        newest: i64,
        start: &AdmissionKey,
        limit: u32,
        page: &mut Written,
    ) -> Result<Option<AdmissionKey>, StoreError> {
        self.ask(|link| ask::written(link, filter, newest, (start, limit), page))
    }

    fn behind(&mut self, asked: &Behind<'_>, limit: usize) -> Result<EntryPage, StoreError> {
        self.ask(|link| behind::behind(link, asked, limit))
    }

    fn first_entry(&mut self, ledger: LedgerId) -> Result<Option<u64>, StoreError> {
        self.ask(|link| behind::first_entry(link, ledger))
    }

    fn lacked(&mut self, ledger: LedgerId, after: u64) -> Result<Lacked, StoreError> {
        self.ask(|link| behind::lacked(link, ledger, after))
    }

    fn corrections(
        &mut self,
        period: Period,
        tenant: Option<&str>,
        visit: &mut dyn FnMut(&Post<'_>, &Correction) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.ask(|link| ask::corrections(link, period, tenant, visit))
    }

    fn entries(&mut self, period: Period, tenant: Option<&str>) -> Result<Entries, StoreError> {
        self.ask(|link| ask::entries(link, period, tenant))
    }

    fn tenants(&mut self, period: Period, tenant: Option<&str>) -> Result<u64, StoreError> {
        self.ask(|link| ask::tenants(link, period, tenant))
    }

    fn progress(&mut self) -> Result<Vec<GatewayProgress>, StoreError> {
        self.ask(reached::progress)
    }

    fn statements(&mut self, tenant: &str, period: Period) -> Result<Vec<String>, StoreError> {
        self.ask(|link| statements::read(link, tenant, period))
    }

    fn all_statements(&mut self) -> Result<Vec<String>, StoreError> {
        self.ask(statements::read_all)
    }

    fn issue(
        &mut self,
        tenant: &str,
        period: Period,
        number: u32,
        signed: &str,
    ) -> Result<bool, StoreError> {
        self.ask(|link| statements::add(link, tenant, period, (number, signed)))
    }

    fn refusals(
        &mut self,
        period: Period,
        tenant: Option<&str>,
        micros: i64,
        visit: &mut dyn FnMut(Timestamp, RefusalCount) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.ask(|link| refusals::visit(link, period, tenant, micros, visit))
    }

    fn admitted(
        &mut self,
        filter: &Filter,
        newest: i64,
        start: &AdmissionKey,
        limit: u32,
    ) -> Result<Vec<(AdmissionKey, Record)>, StoreError> {
        self.ask(|link| ask::admitted(link, filter, newest, start, limit))
    }

    fn admitted_before(
        &mut self,
        filter: &Filter,
        newest: i64,
        end: &AdmissionKey,
        limit: u32,
    ) -> Result<Vec<(AdmissionKey, Record)>, StoreError> {
        self.ask(|link| ask::admitted_before(link, filter, newest, end, limit))
    }

    fn key_of_last(
        &mut self,
        filter: &Filter,
        newest: i64,
        count: u32,
    ) -> Result<Option<AdmissionKey>, StoreError> {
        self.ask(|link| ask::key_of_last(link, filter, newest, count))
    }

    fn arrived(
        &mut self,
        filter: &Filter,
        after: i64,
        newest: i64,
        limit: u32,
    ) -> Result<Vec<(i64, Record)>, StoreError> {
        self.ask(|link| ask::arrived(link, filter, after, newest, limit))
    }
}

/// Any time up to `most`: two that were in each other's way do not meet again.
fn jitter(most: Duration) -> Duration {
    let share = getrandom::u32().unwrap_or(u32::MAX);
    most.mul_f64(f64::from(share) / f64::from(u32::MAX))
}
