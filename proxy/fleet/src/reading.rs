//! What a scrape says, in the schema.

use std::sync::Arc;

use jiff::SignedDuration;

use crate::histogram::{Buckets, Distribution};
use crate::identity::Identity;
use crate::quantity::Quantity;

/// What a scrape says.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reading {
    /// The programs that its metrics are of.
    pub programs: Vec<Program>,
    /// What is known.
    pub measured: Vec<Measured>,
    /// Versions that its labels tell.
    pub versions: Vec<Version>,
    /// What its programs could tell, and this scrape does not.
    pub unknown: Vec<Unknown>,
    /// Metrics that no table has, in their order.
    pub unread: Vec<String>,
    /// What should be known of the reading.
    pub notes: Vec<String>,
    /// Whether all of it is as things were when it was asked for: nothing is measured now and then.
    pub is_live: bool,
}

/// What has a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Component {
    /// An engine.
    Engine,
    /// The driver of the GPUs of a host.
    Driver,
    /// The kernel of a host.
    Kernel,
}

impl Component {
    /// One word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Engine => "engine",
            Self::Driver => "driver",
            Self::Kernel => "kernel",
        }
    }
}

/// A version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// Of what.
    pub of: Component,
    /// Of which host, where that is told.
    pub host: Option<String>,
    /// As it is written.
    pub version: String,
}

impl Version {
    /// Longest text that is taken for a version, in bytes.
    pub const BYTES_MAX: usize = 100;

    /// A version, if the text may be one.
    #[must_use]
    pub fn of(of: Component, host: Option<&str>, text: &str) -> Option<Self> {
        let text = text.trim();
        let is_one = !text.is_empty()
            && text.len() <= Self::BYTES_MAX
            && text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
        let host = host.map(str::to_owned);
        is_one.then(|| Self { of, host, version: text.to_owned() })
    }
}

/// A program, and how it was recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Its short name.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// Whether its metrics are read. Some programs are only recognised.
    pub is_read: bool,
    /// Whether more than one mark tells it.
    pub is_certain: bool,
    /// What tells it.
    pub marks: Vec<String>,
    /// Which generation of it, as far as its metrics say.
    pub generation: Option<&'static str>,
}

/// One value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// A number in the quantity's unit.
    Number(f64),
    /// A histogram in the quantity's unit.
    Histogram(Distribution),
}

/// A quantity that is known.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Which one.
    pub quantity: &'static Quantity,
    /// Its value.
    pub value: Value,
    /// The buckets of a histogram, in the quantity's unit.
    pub buckets: Option<Arc<Buckets>>,
    /// Whom it is about.
    pub identity: Arc<Identity>,
    /// What else tells it apart.
    pub attributes: Vec<(String, String)>,
    /// The short name of the program.
    pub program: &'static str,
    /// The metric that it is from.
    pub from: String,
    /// What was done to the metric's value; empty if nothing.
    pub how: String,
    /// How old the program says that the value is. Below zero it is from the future.
    pub age: Option<SignedDuration>,
}

/// A quantity that is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// Which one.
    pub quantity: &'static Quantity,
    /// What else tells it apart.
    pub attributes: Vec<(String, String)>,
    /// The short name of the program.
    pub program: &'static str,
    /// Why.
    pub why: String,
    /// Of whom. Nobody means: of all whom the program tells of.
    pub of: Vec<Identity>,
}
