//! Starts and stops the threads that carry requests.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use taximeter_net::concurrency::{self, ConcurrencyLimit};
use taximeter_net::listening::Listeners;
use taximeter_net::tls::Tls;
use taximeter_system::descriptors;
use taximeter_system::thread::Started;
use taximeter_telemetry::events::ConnectionRefused;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};

use super::connection;
use super::worker::{Phase, Shift};
use crate::gateway::Current;

/// Pause after the kernel refuses to accept (no descriptors left), so that accepting does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A connection among those of its address.
type Permit = concurrency::Permit<IpAddr>;

/// All threads that carry requests.
pub struct Workers {
    threads: Vec<Started>,
    phase: watch::Sender<Phase>,
    open: Arc<AtomicUsize>,
}

struct Lane {
    sockets: mpsc::UnboundedSender<(std::net::TcpStream, Permit)>,
    open: Arc<AtomicUsize>,
}

impl Workers {
    /// Starts the threads; connections that `listeners` get are secured with `tls`.
    ///
    /// Errors: a thread cannot be started.
    pub fn start(
        listeners: Vec<std::net::TcpListener>,
        current: &Current,
        tls: Option<&Tls>,
    ) -> io::Result<Self> {
        let (phase, phases) = watch::channel(Phase::Serving);
        let open = Arc::new(AtomicUsize::new(0));
        let mut threads = Vec::new();
        let mut lanes = Vec::new();
        for index in 1..current.get().config.workers {
            let (sender, mut sockets) = mpsc::unbounded_channel();
            let lane = Lane { sockets: sender, open: Arc::default() };
            let (count, total) = (lane.open.clone(), open.clone());
            lanes.push(lane);
            let (current, phases) = (current.clone(), phases.clone());
            let tls = tls.cloned();
            threads.push(thread(index, move || async move {
                let shift = Shift::start(index, current, tls);
                while let Some((socket, permit)) = sockets.recv().await {
                    if let Ok(socket) = TcpStream::from_std(socket) {
                        carry(&shift, socket, permit, &phases, [&count, &total]);
                    }
                }
                finished(&shift, index, &count).await;
            })?);
        }
        let (current, total, tls) = (current.clone(), open.clone(), tls.cloned());
        threads.push(thread(0, move || async move {
            let shift = Shift::start(0, current, tls);
            let own = Arc::new(AtomicUsize::new(0));
            let listeners = listeners.into_iter().map(TcpListener::from_std);
            if let Ok(listeners) = listeners.collect::<io::Result<Vec<_>>>() {
                accept(&shift, &mut Listeners::new(listeners), &phases, &lanes, &own, &total).await;
            }
            drop(lanes);
            finished(&shift, 0, &own).await;
        })?);
        Ok(Self { threads, phase, open })
    }

    /// Open client connections.
    pub fn open(&self) -> usize {
        self.open.load(Relaxed)
    }

    /// No new connections; running requests finish.
    pub fn drain(&self) {
        self.phase.send_replace(Phase::Draining);
    }

    /// Running streams are cut, with an error event where the client can read one.
    pub fn cut(&self) {
        self.phase.send_replace(Phase::Cutting);
    }

    /// Ready when all threads have ended; each does with its last connection.
    pub async fn ended(self) {
        for thread in self.threads {
            thread.ended().await;
        }
    }
}

fn thread<F: Future<Output = ()>>(
    index: usize,
    work: impl FnOnce() -> F + Send + 'static,
) -> io::Result<Started> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Started::new(&format!("carry-{index}"), move || {
        runtime.block_on(work());
        // The resolver may still ask for a name that nobody waits for, and cannot be told to stop.
        runtime.shutdown_background();
    })
}

async fn accept(
    shift: &Arc<Shift>,
    listeners: &mut Listeners,
    phases: &watch::Receiver<Phase>,
    lanes: &[Lane],
    own: &Arc<AtomicUsize>,
    total: &Arc<AtomicUsize>,
) {
    let mut stop = phases.clone();
    let peers = Arc::new(ConcurrencyLimit::default());
    let mut pausing = false;
    loop {
        let accepted = tokio::select! {
            _ = stop.wait_for(|phase| *phase != Phase::Serving) => return,
            accepted = listeners.accept() => accepted,
        };
        let gateway = shift.worker().gateway.clone();
        let Ok((socket, peer)) = accepted else {
            // Told once, however long they are used up.
            if !std::mem::replace(&mut pausing, true) {
                let event = ConnectionRefused { reason: "file_descriptors", peer: None };
                gateway.telemetry.emit(&event);
            }
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        if !descriptors::may_serve_client(&socket) {
            let event = ConnectionRefused { reason: "file_descriptors", peer: None };
            gateway.telemetry.emit(&event);
            while !descriptors::has_room_for_client() {
                tokio::select! {
                    _ = stop.wait_for(|phase| *phase != Phase::Serving) => return,
                    () = tokio::time::sleep(ACCEPT_PAUSE) => {}
                }
            }
        }
        pausing = false;
        let limits = &gateway.config.limits;
        let refuse =
            |reason| gateway.telemetry.emit(&ConnectionRefused { reason, peer: Some(peer) });
        if total.load(Relaxed) >= limits.connections_max {
            refuse("connections_max");
            continue;
        }
        // An address of IPv4 is the same client on a socket that takes both.
        let address = peer.ip().to_canonical();
        // Counted without a maximum too: a reload may set one while they are open.
        let most = limits.connections_per_peer_max.unwrap_or(usize::MAX);
        let Some(permit) = peers.admit(&address, most) else {
            refuse("connections_per_peer_max");
            continue;
        };
        let idlest = lanes.iter().min_by_key(|lane| lane.open.load(Relaxed));
        match idlest.filter(|lane| lane.open.load(Relaxed) < own.load(Relaxed)) {
            Some(lane) => {
                if let Ok(socket) = socket.into_std() {
                    // A lane that is gone has no worker; its connections are refused by closing.
                    let _ = lane.sockets.send((socket, permit));
                }
            }
            None => carry(shift, socket, permit, phases, [own, total]),
        }
    }
}

fn carry(
    shift: &Arc<Shift>,
    socket: TcpStream,
    permit: Permit,
    phases: &watch::Receiver<Phase>,
    counts: [&Arc<AtomicUsize>; 2],
) {
    let open = OpenConnection::new(counts.map(Arc::clone));
    let (shift, phases) = (shift.clone(), phases.clone());
    tokio::spawn(async move {
        connection::serve(shift, socket, phases).await;
        drop((open, permit));
    });
}

/// Counts a connection while it lives.
struct OpenConnection([Arc<AtomicUsize>; 2]);

impl OpenConnection {
    fn new(counts: [Arc<AtomicUsize>; 2]) -> Self {
        for count in &counts {
            count.fetch_add(1, Relaxed);
        }
        Self(counts)
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        for count in &self.0 {
            count.fetch_sub(1, Relaxed);
        }
    }
}

/// Waits until a worker's connections have ended, and says that it is over.
async fn finished(shift: &Shift, thread: usize, open: &AtomicUsize) {
    let mut period = tokio::time::interval(Duration::from_millis(10));
    while open.load(Relaxed) > 0 {
        period.tick().await;
    }
    shift.worker().gateway.heartbeat.over(thread);
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn a_thread_ends_while_the_resolver_still_looks_up_a_name() {
        let (begun, begins) = mpsc::channel();
        let (answer, answered) = mpsc::channel::<()>();
        let thread = thread(0, || async move {
            // As a lookup is made: a call that blocks, on a thread beside the runtime.
            let lookup = tokio::task::spawn_blocking(move || {
                begun.send(()).unwrap();
                let _ = answered.recv();
            });
            drop(lookup);
            begins.recv().unwrap();
        })
        .unwrap();
        let ended = tokio::time::timeout(Duration::from_secs(30), thread.ended()).await;
        assert!(ended.is_ok(), "it waits for an answer that never comes");
        drop(answer);
    }
}
