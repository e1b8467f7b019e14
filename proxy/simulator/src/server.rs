//! Listens, accepts connections and serves them.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream, ToSocketAddrs};
use tokio::sync::Notify;
use tokio::task::{JoinHandle, JoinSet};

use crate::behaviour::Behaviour;
use crate::broken::Broken;
use crate::clock::Clock;
use crate::job::Foreman;
use crate::journal::{Books, Journal};
use crate::metrics::Metrics;
use crate::reply::{HangUp, Reply};
use crate::routes::{Engine, refusal};
use crate::served::Served;

/// The pause after a failed `accept` (too many open files), so that the loop does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A simulated engine. Serves from [`Simulator::bind`] on; dropping it ends all its connections.
#[derive(Debug)]
pub struct Simulator {
    address: SocketAddr,
    engine: Arc<Engine>,
    accepting: JoinHandle<()>,
}

impl Simulator {
    /// Listens on `address` (port 0 takes a free one) and serves in tasks of the current runtime.
    ///
    /// Errors: those of binding the socket.
    pub async fn bind(address: impl ToSocketAddrs, behaviour: Behaviour) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let books = Books {
            clock: Clock::start(),
            journal: Journal::default(),
            metrics: Metrics::default(),
        };
        let engine = Arc::new(Engine {
            behaviour: Arc::new(behaviour),
            books: Arc::new(books),
            foreman: Foreman::default(),
        });
        let accepting = tokio::spawn(accept(listener, engine.clone()));
        Ok(Self { address, engine, accepting })
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.address
    }

    /// Everything served so far, oldest first; requests still running are not in it.
    #[must_use]
    pub fn journal(&self) -> Vec<Served> {
        self.engine.books.journal.all()
    }

    /// The text of `GET /metrics`.
    #[must_use]
    pub fn metrics(&self) -> String {
        self.engine.books.metrics.render()
    }

    /// Serves until `shutdown` is over, then ends all connections.
    pub async fn serve_until(self, shutdown: impl Future<Output = ()>) {
        shutdown.await;
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Accepts connections; their tasks end with this one.
async fn accept(listener: TcpListener, engine: Arc<Engine>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => _ = connections.spawn(connection(stream, engine.clone())),
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connection(stream: TcpStream, engine: Arc<Engine>) {
    // A token must leave at once; if the socket refuses the option, it still works.
    _ = stream.set_nodelay(true);
    let requests = AtomicU64::new(0);
    let hang_up = Arc::new(Notify::new());
    let service = service_fn(|request| {
        let earlier = requests.fetch_add(1, Ordering::Relaxed);
        serve(&engine, request, earlier, &hang_up)
    });
    let serving = http1::Builder::new()
        .auto_date_header(true)
        .serve_connection(TokioIo::new(stream), service);
    let mut serving = std::pin::pin!(serving);
    // How a connection ends is the client's business, or was asked for.
    tokio::select! {
        _ = serving.as_mut() => {}
        () = hang_up.notified() => {
            serving.as_mut().graceful_shutdown();
            _ = serving.await;
        }
    }
}

async fn serve(
    engine: &Engine,
    request: Request<Incoming>,
    earlier: u64,
    hang_up: &Arc<Notify>,
) -> Result<Response<Reply>, Broken> {
    let behaviour = match engine.behaviour(request.headers()) {
        Ok(behaviour) => behaviour,
        Err(message) => return Ok(refusal(None, 400, &message)),
    };
    if behaviour.die_before_head || (behaviour.die_if_reused && earlier > 0) {
        return Err(Broken);
    }
    let closes = behaviour.close_after_response;
    let response = engine.answer(request, behaviour).await?;
    if closes {
        return Ok(response.map(|reply| reply.then(HangUp(hang_up.clone()))));
    }
    Ok(response)
}
