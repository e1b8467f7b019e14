//! A connection to PostgreSQL on which every wait has a limit.
//!
//! The library is asynchronous. Here a call blocks its thread until the answer comes. When a limit
//! passes, the connection is closed, because whatever comes on it later would answer nobody. Only
//! the calling thread waits.

use std::ops::ControlFlow;
use std::time::Duration;

use futures_util::{Stream, StreamExt as _};
use taximeter_config::{PostgresTls, PostgresUrl};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio_postgres::config::SslMode;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, Row};

use super::fault::Fault;
use super::tls::Tls;

/// Time to connect, TLS and password included.
const CONNECT_WAIT: Duration = Duration::from_secs(5);
/// Time for a step of a change.
pub(super) const STEP_WAIT: Duration = Duration::from_secs(20);
/// Time until the first rows of an answer come, and between two pieces of it.
const ANSWER_WAIT: Duration = Duration::from_secs(120);
/// Time to copy or remove all that a store has.
const WHOLE_WAIT: Duration = Duration::from_secs(3600);
/// Most rows taken at once.
const ROWS_MAX: usize = 256;

/// A parameter of a statement.
pub(super) type Given<'a> = (&'a (dyn ToSql + Sync), Type);

/// An open connection, for one thread.
#[derive(Debug)]
pub(super) struct Link {
    client: Client,
    /// Moves bytes while a call waits.
    driver: JoinHandle<()>,
    runtime: Runtime,
}

impl Link {
    /// Connects.
    pub(super) fn open(url: &PostgresUrl) -> Result<Self, Fault> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Fault::Local(error.into()))?;
        let (config, tls) = (config(url), Tls::new(url)?);
        let connected = runtime
            .block_on(async { tokio::time::timeout(CONNECT_WAIT, config.connect(tls)).await });
        let (client, connection) = connected.map_err(|_| Fault::Late(CONNECT_WAIT))??;
        // What went wrong with it is told by the call that needed it.
        let driver = runtime.spawn(async move {
            let _ = connection.await;
        });
        Ok(Self { client, driver, runtime })
    }

    /// Runs statements without parameters.
    pub(super) fn run(&self, statements: &str) -> Result<(), Fault> {
        self.wait(STEP_WAIT, self.client.batch_execute(statements))
    }

    /// The same for statements that concern all that is there.
    pub(super) fn run_on_all(&self, statements: &str) -> Result<(), Fault> {
        self.wait(WHOLE_WAIT, self.client.batch_execute(statements))
    }

    /// All rows of a step of a change.
    pub(super) fn query(&self, statement: &str, given: &[Given<'_>]) -> Result<Vec<Row>, Fault> {
        self.wait(STEP_WAIT, self.client.query_typed(statement, given))
    }

    /// The one row of a statement that has one.
    pub(super) fn query_one(&self, statement: &str, given: &[Given<'_>]) -> Result<Row, Fault> {
        self.wait(STEP_WAIT, self.client.query_typed_one(statement, given))
    }

    /// Shows the rows of an answer of any length; they are taken as they are looked at.
    pub(super) fn each(
        &self,
        question: &str,
        given: &[Given<'_>],
        mut visit: impl FnMut(&Row) -> Result<ControlFlow<()>, Fault>,
    ) -> Result<(), Fault> {
        let given = given.iter().map(|(value, of)| (*value, of.clone()));
        let rows = self.wait(ANSWER_WAIT, self.client.query_typed_raw(question, given))?;
        let mut rows = Box::pin(rows.ready_chunks(ROWS_MAX));
        // The visitor is outside of the runtime: it may use one of its own.
        while let Some(piece) = self.next(&mut rows)? {
            for row in piece {
                if visit(&row?)?.is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Lets `time` pass.
    pub(super) fn pause(&self, time: Duration) {
        self.runtime.block_on(async { tokio::time::sleep(time).await });
    }

    fn next<T>(&self, stream: &mut (impl Stream<Item = T> + Unpin)) -> Result<Option<T>, Fault> {
        self.wait(ANSWER_WAIT, async { Ok(stream.next().await) })
    }

    fn wait<T>(
        &self,
        limit: Duration,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, Fault> {
        match self.runtime.block_on(async { tokio::time::timeout(limit, answer).await }) {
            Ok(answer) => Ok(answer?),
            Err(_) => {
                self.driver.abort();
                Err(Fault::Late(limit))
            }
        }
    }
}

fn config(url: &PostgresUrl) -> Config {
    let mut config = Config::new();
    config.user(&url.user).dbname(&url.database).port(url.port).application_name("taximeter");
    match url.host.strip_prefix('/') {
        Some(_) => config.host_path(&url.host),
        None => config.host(&url.host),
    };
    if let Some(password) = &url.password {
        config.password(password.expose());
    }
    config.ssl_mode(match url.tls {
        PostgresTls::Disable => SslMode::Disable,
        PostgresTls::Prefer => SslMode::Prefer,
        PostgresTls::Require | PostgresTls::VerifyFull => SslMode::Require,
    });
    config
}
