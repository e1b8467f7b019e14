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
    /// What its programs could tell, and this scrape does not.
    pub unknown: Vec<Unknown>,
    /// Metrics that no table has, in their order.
    pub unread: Vec<String>,
    /// What should be known of the reading.
    pub notes: Vec<String>,
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
