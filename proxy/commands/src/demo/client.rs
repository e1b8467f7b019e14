//! A client of the demo: one connection, one request at a time.

use std::net::SocketAddr;

use anyhow::{Context, bail};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// Most of an error answer that is shown, in characters.
const EXCERPT_CHARS_MAX: usize = 200;

/// How long the client reads an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    Stays,
    /// Hangs up after this many reads of the body.
    LeavesAfter(usize),
}

/// A client.
pub(super) struct Client {
    address: SocketAddr,
    connection: Option<Connection>,
}

/// A connection. Dropping it hangs up.
struct Connection {
    sender: SendRequest<Full<Bytes>>,
    driver: JoinHandle<()>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Client {
    pub(super) fn new(address: SocketAddr) -> Self {
        Self { address, connection: None }
    }

    /// Sends `request` and reads the answer, or hangs up in its middle.
    ///
    /// Errors: no connection; the answer breaks off; the status is not 200.
    pub(super) async fn call(
        &mut self,
        request: Request<Full<Bytes>>,
        patience: Patience,
    ) -> anyhow::Result<()> {
        let mut connection = match self.connection.take() {
            Some(kept) if kept.sender.is_ready() => kept,
            _ => self.connect().await?,
        };
        let response = connection.sender.send_request(request).await.context("no answer")?;
        if !response.status().is_success() {
            return refused(response).await;
        }
        let mut body = response.into_body();
        let mut reads = 0;
        while let Some(frame) = body.frame().await {
            frame.context("the answer broke off")?;
            reads += 1;
            if patience == Patience::LeavesAfter(reads) {
                return Ok(());
            }
        }
        self.connection = Some(connection);
        Ok(())
    }

    async fn connect(&self) -> anyhow::Result<Connection> {
        let stream = TcpStream::connect(self.address)
            .await
            .with_context(|| format!("cannot connect to {}", self.address))?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let driver = tokio::spawn(async move {
            // The request that fails with the connection tells.
            _ = connection.await;
        });
        Ok(Connection { sender, driver })
    }
}

async fn refused(response: Response<Incoming>) -> anyhow::Result<()> {
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    let excerpt: String = String::from_utf8_lossy(&body).chars().take(EXCERPT_CHARS_MAX).collect();
    bail!("the gateway answered {status}: {excerpt}")
}
