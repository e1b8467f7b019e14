//! Counts the tool calls that a provider runs itself and charges beside the tokens.

use std::collections::{BTreeMap, BTreeSet};

use rust_decimal::Decimal;

use crate::json::Text;
use crate::usage::name;

/// Containers of one answer that are told apart; providers stop at a few.
const CONTAINERS_MAX: usize = 64;

/// How many there were of each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Calls {
    web_searches: u64,
    /// What was looked for in them, where that is told.
    web_queries: u64,
    file_searches: u64,
    /// Where code ran, by name: each is charged once, however often it is called.
    containers: BTreeSet<String>,
}

impl Calls {
    /// Adds a web search.
    pub(crate) const fn search_web(&mut self) {
        self.web_searches = self.web_searches.saturating_add(1);
    }

    /// Adds something that was looked for in a web search: all of a request are one search.
    pub(crate) const fn query_web(&mut self) {
        self.web_searches = 1;
        self.web_queries = self.web_queries.saturating_add(1);
    }

    /// Adds a search in files.
    pub(crate) const fn search_files(&mut self) {
        self.file_searches = self.file_searches.saturating_add(1);
    }

    /// Adds a run of code in `container`.
    pub(crate) fn run_code(&mut self, container: &Text<'_>) {
        if self.containers.len() < CONTAINERS_MAX {
            self.containers.insert(name(&container.decode()));
        }
    }

    /// Adds further calls.
    pub(crate) fn add(&mut self, further: Self) {
        self.web_searches = self.web_searches.saturating_add(further.web_searches);
        self.web_queries = self.web_queries.saturating_add(further.web_queries);
        self.file_searches = self.file_searches.saturating_add(further.file_searches);
        self.add_containers(further.containers);
    }

    /// Takes a list of calls in which those before may be again.
    pub(crate) fn cover(&mut self, all: Self) {
        self.web_searches = self.web_searches.max(all.web_searches);
        self.web_queries = self.web_queries.max(all.web_queries);
        self.file_searches = self.file_searches.max(all.file_searches);
        self.add_containers(all.containers);
    }

    fn add_containers(&mut self, further: BTreeSet<String>) {
        let room = CONTAINERS_MAX.saturating_sub(self.containers.len());
        let new = further.into_iter().filter(|name| !self.containers.contains(name));
        let new: Vec<_> = new.take(room).collect();
        self.containers.extend(new);
    }

    /// Those that there were, by their names in [`Usage::units`](taximeter_pricing::Usage::units).
    pub(crate) fn units(&self) -> BTreeMap<String, Decimal> {
        let units = [
            ("web_search_requests", self.web_searches),
            ("search_queries", self.web_queries),
            ("file_search_calls", self.file_searches),
            ("code_interpreter_sessions", self.containers.len() as u64),
        ];
        let made = units.into_iter().filter(|(_, count)| *count > 0);
        made.map(|(name, count)| (name.to_owned(), count.into())).collect()
    }
}
