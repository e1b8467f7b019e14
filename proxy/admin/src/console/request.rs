//! One request: what it costs, what happened when, what it used and who says so.

mod beneath;
mod sections;
mod timeline;

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use taximeter_gateway::gateway::Gateway;

use super::page::{Page, REQUESTS};
use super::view::PageParams;
use crate::problem::ApiError;
use crate::query::{NoParams, Params};
use crate::records::record;

pub(super) async fn request(
    State(gateway): State<Arc<Gateway>>,
    Path(id): Path<String>,
    PageParams { asked, view }: PageParams<NoParams>,
) -> Result<Response, ApiError> {
    let found = record(State(gateway.clone()), Path(id), Params(asked)).await?.0;
    // The rest of the page does without it.
    let beneath = beneath::beneath(&gateway, &found.record).await;
    let main = sections::main(&found, beneath.as_ref(), &view);
    let page = Page { title: "One request", at: REQUESTS, view: &view, reload_seconds: None };
    Ok(page.with(main))
}
