//! A balancer: hands each connection to a backend that was ready when it was last looked at.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::client::Client;
use crate::gateway::Gateway;
use crate::http::bare;
use crate::patience::patiently;

/// Between two looks: until then it goes on sending to who is ready no more, as all of them do.
const LOOK_PERIOD: Duration = Duration::from_millis(50);

#[derive(Debug, Clone, Copy)]
struct Backend {
    listen: SocketAddr,
    admin: SocketAddr,
    is_ready: bool,
}

type Backends = Arc<Mutex<Vec<Option<Backend>>>>;

/// Ends its looks when dropped.
pub(crate) struct Balancer {
    pub(crate) address: SocketAddr,
    backends: Backends,
    _looks: Sender<()>,
}

impl Balancer {
    /// With room for so many backends.
    pub(crate) fn start(places: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind the balancer");
        let address = listener.local_addr().expect("its address");
        let backends: Backends = Arc::new(Mutex::new(vec![None; places]));
        let seen = backends.clone();
        // Ends with the process, for nothing wakes who accepts.
        std::thread::spawn(move || {
            for (turn, client) in listener.incoming().flatten().enumerate() {
                let seen = seen.clone();
                std::thread::spawn(move || hand_on(turn, &client, &seen));
            }
        });
        let (looks, over) = channel::<()>();
        let seen = backends.clone();
        std::thread::spawn(move || {
            while over.recv_timeout(LOOK_PERIOD) == Err(std::sync::mpsc::RecvTimeoutError::Timeout)
            {
                look(&seen);
            }
        });
        Self { address, backends, _looks: looks }
    }

    /// A gateway takes this place; it gets nothing before it was seen to be ready. Waits for that.
    pub(crate) fn place(&self, place: usize, gateway: &Gateway) {
        let (listen, admin) = (gateway.address(), gateway.admin_address());
        let backend = Backend { listen, admin, is_ready: false };
        lock(&self.backends)[place] = Some(backend);
        let ready = || lock(&self.backends)[place].filter(|backend| backend.is_ready);
        assert!(patiently(ready).is_some(), "backend {place} does not become ready");
    }
}

fn lock(backends: &Backends) -> std::sync::MutexGuard<'_, Vec<Option<Backend>>> {
    backends.lock().expect("nobody panics with it")
}

/// Asks every backend, without keeping anyone from choosing one meanwhile.
fn look(backends: &Backends) {
    let asked: Vec<_> = lock(backends).iter().flatten().map(|backend| backend.admin).collect();
    for admin in asked {
        let request = bare("GET", "/readyz", "Connection: close\r\n");
        let is_ready = Client::try_connect(admin)
            .and_then(|mut client| client.try_send(&request).and_then(|()| client.try_answer()))
            .is_ok_and(|answer| answer.status() == 200);
        for backend in lock(backends).iter_mut().flatten().filter(|it| it.admin == admin) {
            backend.is_ready = is_ready;
        }
    }
}

/// Carries the bytes of one client both ways until both have ended.
fn hand_on(turn: usize, client: &TcpStream, backends: &Backends) {
    let chosen = patiently(|| {
        let ready: Vec<_> =
            lock(backends).iter().flatten().filter(|it| it.is_ready).copied().collect();
        ready.get(turn % ready.len().max(1)).map(|backend| backend.listen)
    });
    // Whoever is not there has the client find out.
    let Some(Ok(backend)) = chosen.map(TcpStream::connect) else { return };
    for socket in [client, &backend] {
        socket.set_nodelay(true).expect("set nodelay");
    }
    std::thread::scope(|scope| {
        scope.spawn(|| carry(client, &backend));
        carry(&backend, client);
    });
}

fn carry(mut from: &TcpStream, mut to: &TcpStream) {
    let mut buffer = [0; 16 << 10];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
