//! The first page: what a period costs, when and whom, and how fast answers are.

mod sections;

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use taximeter_billing::Grouping;
use taximeter_gateway::gateway::Gateway;
use taximeter_store::terms::Terms;
use taximeter_system::clock;
use utoipa::IntoParams;

use super::latency::Latency;
use super::page::{OVERVIEW, Page};
use super::span::Span;
use super::spend::{Question, SPLITS, Spend};
use super::view::Chosen;
use crate::ask::ask;
use crate::problem::Refused;
use crate::query;

/// What is asked for.
#[derive(Debug, Deserialize, IntoParams)]
pub(super) struct OverviewParams {
    /// A period with a name
    span: Option<String>,
    /// Start, included: a date in the time zone, or a time with offset
    from: Option<String>,
    /// End, not included; now where only the start is given
    to: Option<String>,
    /// What the charts are split by
    by: Option<String>,
    /// Only this tenant
    tenant: Option<String>,
}

pub(super) async fn overview(
    State(gateway): State<Arc<Gateway>>,
    Chosen { asked, view }: Chosen<OverviewParams>,
) -> Result<Response, Refused> {
    let now = clock::wall();
    let ends = [asked.span.as_deref(), asked.from.as_deref(), asked.to.as_deref()];
    let span = Span::read(ends, &view, now)?;
    let words = SPLITS.map(|(word, _)| word).join(", ");
    let split = query::read("by", asked.by.as_deref(), words, |by| {
        SPLITS.into_iter().find(|(word, _)| *word == by).ok_or(())
    })?;
    let (by, dimension) = split.unwrap_or(SPLITS[0].clone());
    let grouping = Grouping::by(dimension);
    let (zone, tenant) = (view.zone().clone(), asked.tenant.clone());
    let question = Question { span: span.clone(), zone, tenant, by: grouping, now };
    let terms = Terms::of(&gateway.config);
    let pending_entries = gateway.pending_entries();
    let page = Page { title: "Overview", at: OVERVIEW, view: &view, reload_seconds: None };
    let frame = page.frame();
    let main = async move {
        let (spend, latency) = ask(&gateway, move |store, deadline| {
            let spend = Spend::of(store, &terms, &question, deadline)?;
            let (period, tenant) = (question.span.period, question.tenant.as_deref());
            Ok((spend, Latency::of(store, period, tenant, deadline)?))
        })
        .await?;
        let seen = sections::Seen {
            view: &view,
            span: &span,
            spend: &spend,
            by,
            tenant: asked.tenant.as_deref(),
            now,
            open: gateway.live.rides().len() as u64,
            pending_entries,
        };
        Ok(sections::main(&seen, &latency.section()))
    };
    frame.around(main).await
}
