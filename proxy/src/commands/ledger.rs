//! What the commands that ask the ledger share.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use taximeter_config::{Config, PostgresUrl, Store as Configured};
use taximeter_store::{FedStore, Feed, Location, Store, StoreError};

use super::failure::Failure;
use super::load;

/// What the store of a data directory is called, as in a configuration.
const OWN: &str = "sqlite";
/// Where a gateway keeps its ledger that is told nothing.
const DATA_DIR: &str = "./taximeter-data";
/// Whom the store knows as the one who only asks.
const NO_GATEWAY: &str = "";

/// Where a command finds what gateways have recorded
#[derive(Debug, Clone, Args)]
pub(crate) struct LedgerArgs {
    /// The gateway's configuration: where it keeps its ledger, and, as far as the command asks, what
    /// GPUs cost and what is free for whom each month
    #[arg(long, value_name = "FILE", env = "TAXIMETER_CONFIG")]
    pub(super) config: Option<PathBuf>,

    /// The gateway's data directory [default: data_dir of the configuration, else ./taximeter-data]
    #[arg(long, value_name = "DIR", env = "TAXIMETER_DATA_DIR")]
    pub(super) data_dir: Option<PathBuf>,

    /// The PostgreSQL database that gateways share, instead of a data directory:
    /// postgres://USER:PASSWORD@HOST/DATABASE; or sqlite, the directory's own, also where its
    /// gateway feeds a database [default: ledger.store of the configuration, else sqlite]
    // A text until it is used: what complains about arguments would show the password.
    #[arg(long, value_name = "URL", env = "TAXIMETER_STORE", hide_env_values = true)]
    pub(super) store: Option<String>,
}

/// What gateways have recorded, where it is, and on which terms.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// The configuration that was named.
    pub(super) config: Option<Config>,
    pub(super) data_dir: PathBuf,
    asks: Asks,
}

/// Which store is asked.
#[derive(Debug)]
enum Asks {
    /// The data directory's own.
    Own,
    /// The same, unless its gateway has left word that it feeds another.
    OwnIfFed,
    Database(Box<PostgresUrl>),
}

/// A store that is open, and what people call it.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) store: Store,
    pub(super) name: String,
}

impl LedgerArgs {
    /// Finds the ledger: where the arguments say, or else where the configuration does.
    ///
    /// Errors: the configuration has mistakes; the store's URL is none.
    pub(crate) fn find(&self) -> Result<Ledger, Failure> {
        let config = self.config.as_deref().map(load::config).transpose()?;
        let configured = config.as_ref().map(|config| &config.ledger.store);
        let asks = match (self.store.as_deref(), configured) {
            (Some(OWN), _) => Asks::Own,
            (Some(url), _) => Asks::Database(Box::new(url.parse().map_err(Failure::StoreUrl)?)),
            (None, Some(Configured::Postgres(url))) => Asks::Database(url.clone()),
            (None, _) => Asks::OwnIfFed,
        };
        let data_dir = data_dir(self.data_dir.as_deref(), config.as_ref());
        Ok(Ledger { config, data_dir, asks })
    }

    /// Whether they say where the data directory is.
    pub(super) const fn name_data_dir(&self) -> bool {
        self.data_dir.is_some() || self.config.is_some()
    }
}

/// The data directory that was named, or the configuration's, or that of a gateway without one.
pub(super) fn data_dir(named: Option<&Path>, config: Option<&Config>) -> PathBuf {
    let configured = || config.map(|config| config.data_dir.as_path());
    named.or_else(configured).unwrap_or(Path::new(DATA_DIR)).to_owned()
}

impl Ledger {
    /// Whether a database is asked, which gateways may share.
    pub(super) const fn is_shared(&self) -> bool {
        matches!(self.asks, Asks::Database(_))
    }

    /// The journals that the store may lack something of; none of a database that gateways feed.
    pub(crate) fn feeds(&self) -> Vec<Feed<'static>> {
        match self.asks {
            Asks::Database(_) => Vec::new(),
            Asks::Own | Asks::OwnIfFed => taximeter_store::feeds(&self.data_dir).into(),
        }
    }

    /// The data directory, if its journals feed the store that is asked.
    ///
    /// Errors: as [`Failure`] says.
    pub(super) fn feeding(&self) -> Result<Option<&Path>, Failure> {
        let feeds = match &self.asks {
            Asks::Own | Asks::OwnIfFed => true,
            Asks::Database(url) => self.fed()?.is_some_and(|fed| fed.store == url.to_string()),
        };
        Ok(feeds.then_some(&self.data_dir))
    }

    /// Opens the store; the data directory's own is fed what `feeds` have.
    ///
    /// Errors: as [`Failure`] says; `Elsewhere` when no store is named and the directory's gateway
    /// feeds a database, so that the directory may lack much of it.
    pub(super) fn open(&self, feeds: &mut [Feed<'_>]) -> Result<Asked, Failure> {
        if let Asks::Database(url) = &self.asks {
            return Ok(Asked { store: Store::connect(url, NO_GATEWAY)?, name: url.to_string() });
        }
        self.check_own()?;
        let name = Location::DataDir(self.data_dir.clone()).to_string();
        Ok(Asked { store: open(&self.data_dir, feeds)?, name })
    }

    /// Opens the store as the one whom the directory's gateway feeds.
    ///
    /// Errors: as [`open`](Self::open).
    pub(super) fn open_as_its_gateway(&self) -> Result<Store, Failure> {
        let dir = &self.data_dir;
        let Asks::Database(url) = &self.asks else {
            self.check_own()?;
            return Ok(Store::open(dir)?);
        };
        let place = dir.canonicalize().map_err(|_| StoreError::NoDataDir(dir.clone()))?;
        let gateway = self.fed()?.map(|fed| fed.gateway);
        let gateway = gateway.unwrap_or_else(|| place.display().to_string());
        Ok(Store::connect(url, &gateway)?)
    }

    /// Opens the store for corrections, which are written to the directory's journal of them: only
    /// to that of who feeds this store, or nobody would know of them. A directory that is new, or
    /// has nothing but corrections, feeds whatever is asked, as the gateway called `gateway`.
    ///
    /// Errors: as [`Failure`] says; `Corrects` where the directory's gateway feeds another.
    pub(super) fn open_to_correct(&self, gateway: &str) -> Result<Store, Failure> {
        let dir = &self.data_dir;
        let corrects = |feeds: String, asked: String| {
            Err(Failure::Corrects { dir: dir.clone(), feeds, asked })
        };
        let own = || Location::DataDir(dir.clone());
        match (&self.asks, self.fed()?) {
            (Asks::Own | Asks::OwnIfFed, None) => Ok(own().open()?),
            (Asks::Own | Asks::OwnIfFed, Some(fed)) => corrects(fed.store, own().to_string()),
            (Asks::Database(url), Some(fed)) if fed.store == url.to_string() => {
                Ok(Store::connect(url, &fed.gateway)?)
            }
            (Asks::Database(url), None) if taximeter_journal::read(dir, 0).next().is_none() => {
                let file = |source| Failure::File { path: dir.clone(), source };
                fs::create_dir_all(dir).map_err(file)?;
                let location = Location::in_database(url, gateway, dir);
                // One that cannot be had is fed by nobody.
                let store = location.open()?;
                location.leave_word(dir).map_err(file)?;
                Ok(store)
            }
            (Asks::Database(url), fed) => {
                corrects(fed.map_or_else(|| own().to_string(), |fed| fed.store), url.to_string())
            }
        }
    }

    /// Errors: nobody said that it is to be the directory's own, and its gateway feeds another.
    fn check_own(&self) -> Result<(), Failure> {
        if matches!(self.asks, Asks::Own) {
            return Ok(());
        }
        let elsewhere =
            |fed: FedStore| Failure::Elsewhere { dir: self.data_dir.clone(), store: fed.store };
        self.fed()?.map_or(Ok(()), |fed| Err(elsewhere(fed)))
    }

    /// Which store the directory's gateway feeds, where that is not its own.
    fn fed(&self) -> Result<Option<FedStore>, Failure> {
        let word = |source| Failure::Word { dir: self.data_dir.clone(), source };
        FedStore::of(&self.data_dir).map_err(word)
    }

    /// What to say when no request was ever settled.
    pub(super) fn empty(&self, asked: &Asked) -> String {
        if asked.store.is_shared() {
            return format!("{} is empty: no gateway has fed it a request yet.\n", asked.name);
        }
        format!(
            "The ledger in {} is empty: no request has ended yet.\n\
             Send one through the gateway, or name another data directory with --data-dir.\n",
            self.data_dir.display()
        )
    }
}

/// Opens the store and feeds it what the journals have, so that answers are right whether or not
/// the gateway runs.
fn open(data_dir: &Path, feeds: &mut [Feed<'_>]) -> Result<Store, Failure> {
    let mut store = Store::open(data_dir)?;
    store.catch_up(feeds)?;
    Ok(store)
}

/// A reader that goes away (`| head`) has what it wanted.
pub(super) fn unless_reader_left(outcome: Result<(), Failure>) -> Result<(), Failure> {
    match outcome {
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome,
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use std::collections::BTreeMap;

    use super::*;
    use crate::commands::rerate::corrections::Corrections;
    use taximeter_store::samples::record;

    fn refused(dir: &Path, asks: Asks) -> String {
        let ledger = Ledger { config: None, data_dir: dir.to_owned(), asks };
        let fault = ledger.open_to_correct("here/0").unwrap_err();
        assert!(matches!(fault, Failure::Corrects { .. }), "{fault}");
        fault.to_string()
    }

    fn database(url: &str) -> Asks {
        Asks::Database(Box::new(url.parse().unwrap()))
    }

    #[test]
    fn corrections_are_written_where_their_store_is_fed_from() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let url: PostgresUrl = "postgres://me:secret@db/bills".parse().unwrap();
        Location::in_database(&url, "here/0", dir).leave_word(dir).unwrap();
        for asks in [Asks::Own, Asks::OwnIfFed, database("postgres://me@db/others")] {
            let said = refused(dir, asks);
            assert!(said.contains("feeds postgres://me@db:5432/bills"), "{said}");
            assert!(!said.contains("secret"), "{said}");
        }

        // Its own store is fed: it has entries, and no word of another.
        Location::DataDir(dir.to_owned()).leave_word(dir).unwrap();
        let mut journal =
            Corrections::open(dir, &BTreeMap::new(), "test", Timestamp::UNIX_EPOCH).unwrap();
        journal.write(&record(1), None, None).unwrap();
        journal.close().unwrap();
        let said = refused(dir, database("postgres://me@db/bills"));
        assert!(said.contains("feeds the ledger in "), "{said}");
    }
}
