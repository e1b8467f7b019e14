//! What has changed lately.

use maud::{Markup, html};

use crate::console::text::{name, sentence};
use crate::console::view::View;
use crate::fleet::events::EventsAnswer;
use crate::problem::ApiError;

/// Most events of the page.
const EVENTS_MAX: usize = 50;

/// What has changed, the newest first, or why that is not known.
pub(crate) fn events(found: Result<&EventsAnswer, &ApiError>, view: &View) -> Markup {
    html! {
        section aria-labelledby="events" {
            h2 #events { "Events" }
            @match found {
                Ok(found) => (table(found, view)),
                Err(fault) => p { (sentence(&fault.to_string())) },
            }
        }
    }
}

fn table(found: &EventsAnswer, view: &View) -> Markup {
    html! {
        div.scroll { table {
            caption {
                "What has changed since " (view.time(found.from)) ", the newest first."
                @if found.skipped_lines > 0 {
                    " Some of it cannot be read: " (found.skipped_lines) " lines."
                }
            }
            thead { tr {
                th scope="col" { "Found" }
                th scope="col" { "Kind" }
                th scope="col" { "What" }
                th scope="col" { "Told by" }
            } }
            tbody {
                @for event in found.events.iter().take(EVENTS_MAX) {
                    tr {
                        td { (view.time(event.at)) }
                        td { (event.kind.replace('_', " ")) }
                        td { (sentence(&event.text)) }
                        td {
                            @match &event.source {
                                Some(source) => (name(source)),
                                None => "the gateway",
                            }
                        }
                    }
                }
                @if found.events.is_empty() { tr { td colspan="4" { "None." } } }
            }
        } }
        @if found.events.len() > EVENTS_MAX || found.more {
            p { "There are more events: see " code { "/api/v1/fleet/events" } "." }
        }
    }
}
