//! What the requests of one thread share.

use std::sync::Arc;
use std::time::Duration;

use crate::edge::clock;
use crate::edge::upstream::Pool;
use crate::gateway::Gateway;

/// How often idle engine connections are looked over.
const SWEEP_PERIOD: Duration = Duration::from_secs(1);

/// What the gateway is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Serving,
    /// No new connections; running requests finish.
    Draining,
    /// Running streams end now.
    Cutting,
}

/// What the requests of one thread share.
pub(crate) struct Worker {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) pool: Pool,
}

impl Worker {
    /// A worker for the runtime of this thread.
    pub(super) fn new(gateway: Arc<Gateway>) -> Arc<Self> {
        let pool =
            Pool::new(gateway.config.upstreams.len(), gateway.config.limits.upstream_keep_alive);
        let worker = Arc::new(Self { gateway, pool });
        let weak = Arc::downgrade(&worker);
        tokio::spawn(async move {
            let mut period = tokio::time::interval(SWEEP_PERIOD);
            loop {
                period.tick().await;
                let Some(worker) = weak.upgrade() else { return };
                worker.pool.sweep(clock::now());
            }
        });
        worker
    }
}
