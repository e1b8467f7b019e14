//! What every route is answered from.

use std::sync::Arc;

use axum::extract::FromRef;
use taximeter_gateway::gateway::{Current, Gateway};

/// The gateway that is in force. Each request is answered under the configuration that is in force
/// when it comes.
#[derive(Clone)]
pub(super) struct InForce(pub(super) Current);

impl FromRef<InForce> for Arc<Gateway> {
    fn from_ref(current: &InForce) -> Self {
        current.0.get()
    }
}
