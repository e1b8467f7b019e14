//! The state that the requests of one thread share.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use taximeter_net::tls::Tls;
use taximeter_net::upstream::Pool;
use taximeter_system::clock;

use crate::gateway::{Current, Gateway};

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

/// What the requests of one thread share that were admitted under one configuration.
pub struct Worker {
    pub gateway: Arc<Gateway>,
    pub pool: Pool,
}

/// The worker of one thread, whatever configuration is in force.
pub(super) struct Shift {
    on_duty: Mutex<OnDuty>,
    /// What its clients' connections are secured with.
    tls: Option<Tls>,
}

struct OnDuty {
    worker: Arc<Worker>,
    current: Current,
}

impl Shift {
    /// Begins on the runtime of this thread, which has a number.
    pub(super) fn start(thread: usize, mut current: Current, tls: Option<Tls>) -> Arc<Self> {
        let gateway = current.newest();
        let (upstreams, keep_alive) = (gateway.config.upstreams.len(), keep_alive(&gateway));
        let worker = Arc::new(Worker { gateway, pool: Pool::new(upstreams, keep_alive) });
        let process = worker.gateway.process().clone();
        let on_duty = Mutex::new(OnDuty { worker, current });
        let shift = Arc::new(Self { on_duty, tls });
        let weak = Arc::downgrade(&shift);
        tokio::spawn(async move {
            let mut period = tokio::time::interval(SWEEP_PERIOD);
            loop {
                period.tick().await;
                let Some(shift) = weak.upgrade() else { return };
                let now = clock::now();
                process.heartbeat.beat(thread, now);
                shift.worker().pool.sweep(now);
            }
        });
        shift
    }

    /// What its clients' connections are secured with; `None` where they are not.
    pub(super) const fn tls(&self) -> Option<&Tls> {
        self.tls.as_ref()
    }

    /// Who serves the requests that come now.
    pub(super) fn worker(&self) -> Arc<Worker> {
        let mut on_duty = self.on_duty.lock().unwrap_or_else(PoisonError::into_inner);
        if on_duty.current.has_changed() {
            let gateway = on_duty.current.newest();
            on_duty.worker = on_duty.worker.relieved_by(gateway);
        }
        on_duty.worker.clone()
    }
}

impl Worker {
    /// Who serves under another configuration. Connections to engines that it leaves as they were
    /// stay open.
    fn relieved_by(&self, gateway: Arc<Gateway>) -> Arc<Self> {
        let same = |upstream| self.gateway.same(upstream);
        let upstreams: Vec<_> = gateway.config.upstreams.iter().map(same).collect();
        let pool = self.pool.under(&upstreams, keep_alive(&gateway));
        Arc::new(Self { gateway, pool })
    }
}

fn keep_alive(gateway: &Gateway) -> Duration {
    gateway.config.limits.upstream_keep_alive
}
