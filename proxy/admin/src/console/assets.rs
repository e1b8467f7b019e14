//! The console's own files: style sheet, script and icon. They say nothing about the gateway, so
//! they need no token.

use axum::http::header;
use axum::response::IntoResponse;

/// Their paths.
pub(super) const STYLE: &str = "/console/style.css";
pub(super) const SCRIPT: &str = "/console/live.js";
pub(super) const ICON: &str = "/console/icon.svg";

pub(super) async fn style() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], include_str!("assets/style.css"))
}

pub(super) async fn script() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/javascript; charset=utf-8")], include_str!("assets/live.js"))
}

pub(super) async fn icon() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "image/svg+xml")], include_str!("assets/icon.svg"))
}
