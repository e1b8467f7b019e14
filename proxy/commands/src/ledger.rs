//! The arguments that name a ledger, and how commands open it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use taximeter_config::{Config, PostgresUrl, Store as Configured};
use taximeter_dimensions::Hasher;
use taximeter_gateway::name_key::{self, NAME_KEY};
use taximeter_store::{FedStore, Feed, Location, Store, StoreError};

use super::failure::Failure;
use super::load;

/// The word for the store in the data directory, as in a configuration.
const OWN: &str = "sqlite";
/// The default data directory of a gateway.
const DATA_DIR: &str = "./taximeter-data";
/// The name of a client of the store that feeds it nothing.
const NO_GATEWAY: &str = "";

/// The ledger to read
#[derive(Debug, Clone, Args)]
pub(crate) struct LedgerArgs {
    /// Configuration of the gateway. It has the path of the ledger, and the GPU prices and allowances
    /// for bills
    #[arg(long, value_name = "FILE", env = "TAXIMETER_CONFIG")]
    pub(super) config: Option<PathBuf>,

    /// Data directory of the gateway [default: data_dir of the configuration, else ./taximeter-data]
    #[arg(long, value_name = "DIR", env = "TAXIMETER_DATA_DIR")]
    pub(super) data_dir: Option<PathBuf>,

    /// PostgreSQL database that gateways share: postgres://USER:PASSWORD@HOST/DATABASE. Or sqlite:
    /// the store in the data directory, even if its gateway feeds a database [default: ledger.store
    /// of the configuration, else sqlite]
    // It is parsed later, because an argument error would show the password.
    #[arg(long, value_name = "URL", env = "TAXIMETER_STORE", hide_env_values = true)]
    pub(super) store: Option<String>,
}

/// The ledger in the arguments.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// The configuration in the arguments.
    pub(super) config: Option<Config>,
    pub(super) data_dir: PathBuf,
    asks: Asks,
}

/// Which store to read.
#[derive(Debug)]
enum Asks {
    /// The store in the data directory.
    Own,
    /// The same, unless its gateway feeds another store.
    OwnIfFed,
    Database(Box<PostgresUrl>),
}

/// An open store, and its name for people.
#[derive(Debug)]
pub(super) struct NamedStore {
    pub(super) store: Store,
    pub(super) name: String,
}

impl LedgerArgs {
    /// Finds the ledger that the arguments name, or else the configuration.
    ///
    /// Errors: the configuration has mistakes; the URL of the store is not valid.
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

    /// Whether the arguments name a ledger.
    pub(super) const fn name_ledger(&self) -> bool {
        self.name_data_dir() || self.store.is_some()
    }

    /// Whether the arguments name a data directory.
    pub(super) const fn name_data_dir(&self) -> bool {
        self.data_dir.is_some() || self.config.is_some()
    }
}

/// The data directory in the arguments, else that of the configuration, else the default one.
pub(super) fn data_dir(named: Option<&Path>, config: Option<&Config>) -> PathBuf {
    let configured = || config.map(|config| config.data_dir.as_path());
    named.or_else(configured).unwrap_or(Path::new(DATA_DIR)).to_owned()
}

impl Ledger {
    /// Whether the store is a database that gateways can share.
    pub(super) const fn is_shared(&self) -> bool {
        matches!(self.asks, Asks::Database(_))
    }

    /// The journals that can have entries that the store lacks. A database has none, because gateways
    /// feed it.
    pub(crate) fn feeds(&self) -> Vec<Feed<'static>> {
        match self.asks {
            Asks::Database(_) => Vec::new(),
            Asks::Own | Asks::OwnIfFed => taximeter_store::feeds_to_read(&self.data_dir).into(),
        }
    }

    /// The data directory, if its journals feed this store.
    ///
    /// Errors: as [`Failure`] says.
    pub(super) fn feeding(&self) -> Result<Option<&Path>, Failure> {
        let feeds = match &self.asks {
            Asks::Own | Asks::OwnIfFed => true,
            Asks::Database(url) => self.fed()?.is_some_and(|fed| fed.store == url.to_string()),
        };
        Ok(feeds.then_some(&self.data_dir))
    }

    /// Opens the store to read it. The store in a data directory gets what `feeds` have first; one that
    /// this process may not write stays as it is.
    ///
    /// Errors: as [`Failure`] says. `Elsewhere` if the arguments name no store and the gateway of the
    /// directory feeds a database: the directory may lack many requests then.
    pub(super) fn open(&self, feeds: &mut [Feed<'_>]) -> Result<NamedStore, Failure> {
        if let Asks::Database(url) = &self.asks {
            return Ok(NamedStore {
                store: Store::connect(url, NO_GATEWAY)?,
                name: url.to_string(),
            });
        }
        self.check_own()?;
        let name = Location::DataDir(self.data_dir.clone()).to_string();
        Ok(NamedStore { store: Store::open_to_read(&self.data_dir, feeds)?, name })
    }

    /// Opens the store under the name of the directory's gateway, to read it or to rebuild it. What
    /// is behind a fault of the journal is not in it.
    ///
    /// Errors: as [`open`](Self::open), and `Closed`.
    pub(super) fn open_as_its_gateway(&self, to_rebuild: bool) -> Result<Store, Failure> {
        let dir = &self.data_dir;
        let Asks::Database(_) = &self.asks else {
            self.check_own()?;
            if to_rebuild {
                taximeter_store::check_keeper(dir)?;
                return Ok(Store::open(dir)?);
            }
            return match Store::open_to_read(dir, &mut self.feeds()) {
                Err(StoreError::Journal(_)) => Ok(Store::open_to_read(dir, &mut [])?),
                opened => Ok(opened?),
            };
        };
        Ok(self.fed_by_its_gateway()?.open()?)
    }

    /// The store, as the gateway of the directory feeds it.
    ///
    /// Errors: there is no such directory. `Elsewhere` if the arguments name no store and the gateway
    /// feeds a database.
    pub(super) fn fed_by_its_gateway(&self) -> Result<Location, Failure> {
        let dir = &self.data_dir;
        let canonical = dir.canonicalize().map_err(|_| StoreError::NoDataDir(dir.clone()))?;
        let Asks::Database(url) = &self.asks else {
            self.check_own()?;
            return Ok(Location::DataDir(dir.clone()));
        };
        let gateway = self.fed()?.map(|fed| fed.gateway);
        let gateway = gateway.unwrap_or_else(|| canonical.display().to_string());
        Ok(Location::Postgres { url: url.clone(), gateway })
    }

    /// Opens the store for corrections. They go to the journal in the data directory, so that
    /// directory must feed this store. A new directory, or one that has only corrections, can feed
    /// any store, under the name `gateway`.
    ///
    /// Errors: as [`Failure`] says. `Closed` if root asks for the directory of another user, `Corrects` if the directory feeds another store.
    pub(super) fn open_to_correct(&self, gateway: &str) -> Result<Store, Failure> {
        let dir = &self.data_dir;
        let corrects = |feeds: String, asked: String| {
            Err(Failure::Corrects { dir: dir.clone(), feeds, asked })
        };
        taximeter_store::check_keeper(dir)?;
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
                // If the database cannot be opened, the directory does not feed it.
                let store = location.open()?;
                location.leave_word(dir).map_err(file)?;
                Ok(store)
            }
            (Asks::Database(url), fed) => {
                corrects(fed.map_or_else(|| own().to_string(), |fed| fed.store), url.to_string())
            }
        }
    }

    /// Errors: the arguments name no store, and the gateway of the directory feeds another one.
    fn check_own(&self) -> Result<(), Failure> {
        if matches!(self.asks, Asks::Own) {
            return Ok(());
        }
        let elsewhere =
            |fed: FedStore| Failure::Elsewhere { dir: self.data_dir.clone(), store: fed.store };
        self.fed()?.map_or(Ok(()), |fed| Err(elsewhere(fed)))
    }

    /// The store that the gateway of the directory feeds, if it is not the one in the directory.
    fn fed(&self) -> Result<Option<FedStore>, Failure> {
        let word = |source| Failure::Word { dir: self.data_dir.clone(), source };
        FedStore::of(&self.data_dir).map_err(word)
    }

    /// What hashes the names that clients send, with the key of the configuration or else with that of
    /// the data directory. `None` if there is no key.
    ///
    /// Errors: the key cannot be read.
    pub(super) fn hasher(&self) -> Result<Option<Hasher>, Failure> {
        let secret = self.config.as_ref().and_then(|config| config.dimensions.secret.as_ref());
        if let Some(secret) = secret {
            return Ok(Hasher::new(secret.expose().as_bytes()).ok());
        }
        let file = |source| Failure::File { path: self.data_dir.join(NAME_KEY), source };
        name_key::read(&self.data_dir).map_err(file)
    }

    /// The message for a ledger without requests.
    pub(super) fn empty(&self, named: &NamedStore) -> String {
        if named.store.is_shared() {
            return format!("{} is empty. No gateway has stored a request there.\n", named.name);
        }
        format!(
            "The ledger in {} is empty. No request has ended yet.\n\
             Send a request through the gateway, or name another data directory with --data-dir.\n",
            self.data_dir.display()
        )
    }
}

/// Ignores the error if the reader of the output left, as in `| head`.
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
    use crate::rerate::corrections::Corrections;
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
        journal.write(&record(1), None, None, None).unwrap();
        journal.close().unwrap();
        let said = refused(dir, database("postgres://me@db/bills"));
        assert!(said.contains("feeds the ledger in "), "{said}");
    }
}
