//! The page *Usage*: cost, requests and tokens of a period, by key, label, model, tenant or
//! upstream, or by what clients say: session, agent, client, end user and tags.

mod lines;

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use jiff::Timestamp;
use serde::Deserialize;
use taximeter_billing::{Biller, ClientDimension, Dimension, Grouping, Unit, Zone};
use taximeter_gateway::gateway::Gateway;
use taximeter_store::Store;
use taximeter_store::terms::{Scope, Terms};
use taximeter_system::clock;
use utoipa::IntoParams;

use super::page::{Page, USAGE};
use super::span::Span;
use super::view::PageParams;
use crate::ask::{Deadline, ask};
use crate::problem::ApiError;
use crate::query;

/// Most lines of an answer, on all its pages; as for the usage API.
const LINES_MAX: u32 = 10_000;
/// The last page that can have lines.
const PAGES_MAX: u32 = LINES_MAX.div_ceil(lines::PAGE_LINES);
/// Most dimensions of one answer, and so most columns with names.
const DIMENSIONS_MAX: usize = 3;
/// Most labels that have a link; the form takes any other label.
const LABELS_MAX: usize = 12;
/// What the page can be split by: what single requests can be found by as well.
const BY: &str = "up to 3 names with commas between them, each once: key, model, tenant, upstream, \
                  session, agent, client, end_user, one label:NAME, one tag:NAME";

/// The parameters of the page.
#[derive(Debug, Deserialize, IntoParams)]
pub(super) struct UsagePageParams {
    /// The name of a period
    span: Option<String>,
    /// Start of the period, included: a date, or a time with an offset
    from: Option<String>,
    /// End of the period, not included. Default with `from`: now
    to: Option<String>,
    /// What the lines are split by
    by: Option<String>,
    /// Only this tenant
    tenant: Option<String>,
    /// Page of the lines, from 1
    page: Option<String>,
}

/// One query of the store.
struct UsageQuery {
    span: Span,
    zone: Zone,
    tenant: Option<String>,
    by: Grouping,
    now: Timestamp,
}

pub(super) async fn usage(
    State(gateway): State<Arc<Gateway>>,
    PageParams { asked, view }: PageParams<UsagePageParams>,
) -> Result<Response, ApiError> {
    let now = clock::wall();
    let ends = [asked.span.as_deref(), asked.from.as_deref(), asked.to.as_deref()];
    let span = Span::read(ends, &view, now)?;
    let by = query::read("by", asked.by.as_deref(), BY, grouping)?.unwrap_or_else(by_key);
    let number = query::number("page", asked.page.as_deref(), PAGES_MAX)?.unwrap_or(1);
    let (zone, tenant) = (view.zone().clone(), asked.tenant);
    let query =
        UsageQuery { span: span.clone(), zone, tenant: tenant.clone(), by: by.clone(), now };
    let terms = Terms::of(&gateway.config);
    let pending_entries = gateway.pending_entries();
    let page = Page { title: "Usage", at: USAGE, view: &view, reload_seconds: None };
    let frame = page.frame();
    let main = async move {
        let found = ask(&gateway, move |store, deadline| query.ask(store, &terms, deadline));
        let data = lines::UsageData {
            view: &view,
            span: &span,
            by: &by,
            tenant: tenant.as_deref(),
            number: number as usize,
            found: &found.await?,
            pending_entries,
        };
        Ok(lines::main(&data))
    };
    frame.around(main).await
}

impl UsageQuery {
    /// Adds up the period. The usage API and bills have the same sums.
    ///
    /// Errors: those of the store; the sums cannot be made; too many lines; it takes too long.
    fn ask(
        &self,
        store: &mut Store,
        terms: &Terms,
        deadline: Deadline,
    ) -> Result<lines::UsageFound, ApiError> {
        let Self { span, zone, tenant, by, now } = self;
        let scope = Scope {
            period: span.period,
            zone,
            unit: Unit::Month,
            tenant: tenant.as_deref(),
            now: *now,
            split_by: &by.split_by(),
        };
        let mut biller = Biller::new(span.period, zone.clone(), by.clone());
        let mut labels = BTreeSet::new();
        let mut has_more_labels = false;
        let credits = terms.sums(store, scope, None, |key, hour| {
            deadline.check()?;
            for name in key.labels.keys() {
                has_more_labels |= !note(&mut labels, name);
            }
            Ok::<_, ApiError>(biller.add_hour(key, hour)?)
        })?;
        for credit in credits {
            biller.add_credit(credit)?;
        }
        let bill = biller.finish();
        let max = LINES_MAX as usize;
        if bill.rows.len() > max {
            return Err(ApiError::Lines { lines: bill.rows.len(), max });
        }
        Ok(lines::UsageFound { bill, labels, has_more_labels })
    }
}

/// Adds a name of a label and keeps the first `LABELS_MAX` names. Returns whether it kept all.
fn note(labels: &mut BTreeSet<String>, name: &str) -> bool {
    if labels.contains(name) {
        return true;
    }
    if labels.len() < LABELS_MAX {
        return labels.insert(name.to_owned());
    }
    if labels.last().is_some_and(|last| name < last.as_str()) {
        labels.pop_last();
        labels.insert(name.to_owned());
    }
    false
}

/// The default split: by key and its tenant.
fn by_key() -> Grouping {
    Grouping::named(["key", "tenant"]).unwrap_or_default()
}

/// Reads what the lines are split by.
///
/// Errors: a name that is unknown, or given twice; two labels or tags; too many names.
fn grouping(text: &str) -> Result<Grouping, ()> {
    let by: Grouping = text.parse().map_err(|_| ())?;
    let is_known = |dimension: &Dimension| {
        matches!(
            dimension,
            Dimension::Key
                | Dimension::Model
                | Dimension::Tenant
                | Dimension::Upstream
                | Dimension::Label(_)
                | Dimension::FromClient(_)
        )
    };
    let is_tag =
        |dimension: &Dimension| matches!(dimension, Dimension::FromClient(ClientDimension::Tag(_)));
    let dimensions = by.dimensions();
    let count = |is: &dyn Fn(&Dimension) -> bool| dimensions.iter().filter(|one| is(one)).count();
    let fits = dimensions.len() <= DIMENSIONS_MAX
        && count(&|dimension| matches!(dimension, Dimension::Label(_))) <= 1
        && count(&is_tag) <= 1;
    if fits && dimensions.iter().all(is_known) { Ok(by) } else { Err(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_split_by_what_requests_can_be_found_by() {
        for text in [
            "key",
            "key,tenant",
            "label:team",
            "label:a\\,b,model",
            "upstream,model,key",
            "session,agent,tenant",
            "client,end_user",
            "tag:team,label:team",
        ] {
            assert_eq!(grouping(text).map(|by| by.to_string()).as_deref(), Ok(text));
        }
        for text in [
            "",
            "day",
            "provider",
            "meter",
            "key,key",
            "label:a,label:b",
            "tag:a,tag:b",
            "key,model,tenant,upstream",
        ] {
            assert_eq!(grouping(text), Err(()), "{text}");
        }
        assert_eq!(by_key().to_string(), "key,tenant");
    }

    #[test]
    fn of_many_labels_the_first_by_name_have_a_link() {
        let mut labels = BTreeSet::new();
        let noted: Vec<_> =
            (0..20).rev().map(|label| note(&mut labels, &format!("l{label:02}"))).collect();
        assert_eq!(noted.iter().filter(|has_room| **has_room).count(), LABELS_MAX);
        assert!(note(&mut labels, "l00") && !note(&mut labels, "l99"));
        let first: Vec<_> = (0..LABELS_MAX).map(|label| format!("l{label:02}")).collect();
        assert_eq!(labels.into_iter().collect::<Vec<_>>(), first);
    }
}
