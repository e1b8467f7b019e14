//! How each API writes what was generated: one API, one file, one [`Shape`].

mod chat;
mod choices;
mod completions;
mod embeddings;
mod messages;
mod page;
mod responses;
mod shape;

use crate::route::Route;

pub(crate) use choices::{write_ids, write_totals};
pub(crate) use embeddings::whole as embeddings;
pub(crate) use page::{Page, Slot, Template, compact};
pub(crate) use shape::Shape;

/// The shape of `route`; embeddings are never streams and have none.
pub(crate) fn of(route: Route) -> Option<&'static dyn Shape> {
    match route {
        Route::Chat => Some(&chat::Chat),
        Route::Completions => Some(&completions::Completions),
        Route::Responses => Some(&responses::Responses),
        Route::Messages => Some(&messages::Messages),
        Route::Embeddings => None,
    }
}

/// The body of an error answer.
pub(crate) fn refusal(route: Option<Route>, status: u16, message: &str) -> String {
    let message = serde_json::Value::from(message);
    if route == Some(Route::Messages) {
        let kind = messages::error_type(status);
        return format!(r#"{{"type":"error","error":{{"type":"{kind}","message":{message}}}}}"#);
    }
    let kind = match status {
        429 => "RateLimitError",
        400..=499 => "BadRequestError",
        _ => "InternalServerError",
    };
    format!(r#"{{"error":{{"message":{message},"type":"{kind}","param":null,"code":{status}}}}}"#)
}
