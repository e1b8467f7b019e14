//! Counts the calls of hosted tools: those that a provider runs itself and may charge beside the
//! tokens. A call that is told several times counts once.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher as _};

use rust_decimal::Decimal;
use taximeter_collections::Gather as _;
use taximeter_pricing::{Pass, Usage};

use crate::dialect::Reasoning;
use crate::json::Text;
use crate::tool_calls::ByTool;
use crate::tool_names::Units;
use crate::usage::{Report, name};

/// Calls of one tool that are told apart. Providers stop at some ten.
const IDS_MAX: usize = 1024;

/// A container in which a model's code ran.
const CONTAINERS: &str = "code_interpreter_sessions";

/// The memory of a container that prices know.
const USUAL_MEMORY: &str = "1g";

/// Longest word for the memory of a container, in bytes.
const MEMORY_BYTES_MAX: usize = 8;

/// A picture that a tool has drawn.
const PICTURES: &str = "images";

/// The model of a tool that draws pictures, where the answer does not name it.
const UNNAMED_PAINTER: &str = "image_generation";

/// Which call it is. A provider may tell it in several events, and again at the end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallId(u64);

impl CallId {
    /// By what tells it apart.
    pub(crate) fn of(part: impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        part.hash(&mut hasher);
        Self(hasher.finish())
    }

    /// By its id, or else by its place in the answer.
    pub(crate) fn of_item(id: Option<Text<'_>>, place: u64) -> Self {
        match id.filter(|id| !id.is_empty()) {
            Some(id) => Self::of(id.decode()),
            None => Self::of(place),
        }
    }
}

/// The calls of one tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Tally {
    /// Those that were told, hashed.
    ids: BTreeSet<u64>,
    /// Those that have begun, and of which no end was told.
    begun: BTreeSet<u64>,
    /// So many there were, by other signs.
    at_least: u64,
}

impl Tally {
    fn count(&self, is_whole: bool) -> u64 {
        let begun = self.begun.difference(&self.ids).filter(|_| !is_whole).count();
        ((self.ids.len() + begun) as u64).max(self.at_least)
    }

    fn add(&mut self, further: Self) {
        self.at_least = self.at_least.max(further.at_least);
        for (known, more) in [(&mut self.ids, further.ids), (&mut self.begun, further.begun)] {
            let room = IDS_MAX.saturating_sub(known.len());
            let new: Vec<_> =
                more.into_iter().filter(|id| !known.contains(id)).take(room).collect();
            known.extend(new);
        }
    }
}

/// How many calls there were of each tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Calls {
    /// What passed, by the name of the unit.
    tallies: Units<Tally>,
    /// What passed of tools that are known by a name of their own, such as those of MCP servers.
    named: ByTool<Tally>,
    /// Calls that failed after they had begun.
    failed: BTreeSet<u64>,
    /// What the provider counted, by the same names. It outranks what passed.
    told: Units<u64>,
    /// The memory of the containers, where it is not the usual one.
    memory: Option<String>,
    /// The model that draws pictures.
    painter: Option<String>,
    /// What drawing used.
    painted: Option<Box<Report>>,
}

impl Calls {
    /// Adds a call that is charged in `unit`.
    pub(crate) fn add_call(&mut self, unit: Cow<'static, str>, CallId(id): CallId) {
        let ids = &mut self.tallies.get_mut(unit).ids;
        if ids.len() < IDS_MAX {
            ids.insert(id);
        }
    }

    /// Adds a call of a tool of an MCP server, which the provider has made.
    pub(crate) fn ask_server(&mut self, server: Option<&str>, tool: &str, CallId(id): CallId) {
        self.add_call(Cow::Borrowed("mcp_calls"), CallId(id));
        let name = server.map_or_else(|| format!("mcp:{tool}"), |it| format!("mcp:{it}/{tool}"));
        let ids = &mut self.named.get_mut(&name).ids;
        if ids.len() < IDS_MAX {
            ids.insert(id);
        }
    }

    /// Notes that there was a call that is charged in `unit`, by a sign that does not tell how many.
    pub(crate) fn note(&mut self, unit: &'static str) {
        let at_least = &mut self.tallies.get_mut(Cow::Borrowed(unit)).at_least;
        *at_least = (*at_least).max(1);
    }

    /// Adds a run of code in `container`. Each container is charged once, however often it is used.
    pub(crate) fn run_code(&mut self, container: Option<&Text<'_>>) {
        match container.filter(|container| !container.is_empty()) {
            Some(container) => {
                self.add_call(Cow::Borrowed(CONTAINERS), CallId::of(container.decode()));
            }
            None => self.note(CONTAINERS),
        }
    }

    /// Adds a picture.
    pub(crate) fn draw(&mut self, id: CallId) {
        self.add_call(Cow::Borrowed(PICTURES), id);
    }

    /// Notes a call that failed, so that it is not charged.
    pub(crate) fn fail(&mut self, CallId(id): CallId) {
        if self.failed.len() < IDS_MAX {
            self.failed.insert(id);
        }
    }

    /// Adds what the provider counted.
    pub(crate) fn tell(&mut self, unit: Cow<'static, str>, count: u64) {
        let known = self.told.get_mut(unit);
        *known = known.saturating_add(count);
    }

    /// Takes what drawing used.
    pub(crate) fn paint(&mut self, report: Box<Report>) {
        self.painted = Some(report.paints());
    }

    /// Takes the model that draws.
    pub(crate) fn set_painter(&mut self, model: Option<Text<'_>>) {
        let model = model.filter(|model| !model.is_empty());
        self.painter = model.map(|model| name(&model.decode())).or(self.painter.take());
    }

    /// Takes the memory of the containers that a tool runs in.
    pub(crate) fn set_memory(&mut self, memory: &Text<'_>) {
        let memory = memory.decode();
        let is_word = memory.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if is_word && (1..=MEMORY_BYTES_MAX).contains(&memory.len()) && memory != USUAL_MEMORY {
            self.memory = Some(memory.to_ascii_lowercase());
        }
    }

    /// Whether code ran in a container.
    pub(crate) fn runs_code(&self) -> bool {
        self.has(CONTAINERS)
    }

    /// Whether there is a call that is charged in `unit`.
    pub(crate) fn has(&self, unit: &str) -> bool {
        self.tallies.get(unit).is_some()
    }

    /// Whether a picture was drawn.
    pub(crate) fn draws(&self) -> bool {
        self.painted.is_some() || self.has(PICTURES)
    }

    /// Whether it says nothing.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The same calls before their ends. What a search will be is not known where it begins.
    pub(crate) fn begun(mut self) -> Self {
        self.named = ByTool::default();
        self.tallies.retain(|unit| matches!(unit, PICTURES | CONTAINERS));
        for tally in self.tallies.values_mut() {
            tally.begun = std::mem::take(&mut tally.ids);
        }
        self
    }

    /// Adds what another event, or another part of the same one, tells.
    pub(crate) fn add(&mut self, further: Self) {
        for (unit, tally) in further.tallies {
            self.tallies.get_mut(unit).add(tally);
        }
        for (tool, tally) in further.named.into_named() {
            self.named.get_mut(&tool).add(tally);
        }
        let room = IDS_MAX.saturating_sub(self.failed.len());
        self.failed.extend(further.failed.into_iter().take(room));
        for (unit, count) in further.told {
            *self.told.get_mut(unit) = count;
        }
        self.memory = further.memory.or(self.memory.take());
        self.painter = further.painter.or(self.painter.take());
        self.painted = further.painted.or(self.painted.take());
    }

    /// How many there were, by their names in
    /// [`Usage::units`](taximeter_pricing::Usage::units). `is_whole` tells whether the answer has
    /// come to its end: before it, a zero may be no count yet.
    pub(crate) fn units(&self, is_whole: bool) -> BTreeMap<String, Decimal> {
        let mut units: BTreeMap<_, u64> = self
            .tallies
            .iter()
            .filter(|(unit, _)| *unit != PICTURES)
            .map(|(unit, tally)| (unit, self.count(tally, is_whole)))
            .gather();
        for (unit, told) in self.told.iter().filter(|(unit, _)| *unit != PICTURES) {
            let seen = units.get(unit).copied().unwrap_or(0);
            units.insert(unit, if is_whole { *told } else { seen.max(*told) });
        }
        let made = units.into_iter().filter(|(_, count)| *count > 0);
        let named = |unit: &str| match &self.memory {
            // A larger container costs more, so it has a unit of its own.
            Some(memory) if unit == CONTAINERS => format!("code_interpreter_{memory}_sessions"),
            _ => unit.to_owned(),
        };
        made.map(|(unit, count)| (named(unit), count.into())).gather()
    }

    /// How many there were of each tool that is known by a name of its own.
    pub(crate) fn named(&self, is_whole: bool) -> impl Iterator<Item = (&str, u64)> {
        let counted = move |(tool, tally)| (tool, self.count(tally, is_whole));
        self.named.iter().map(counted).filter(|(_, count)| *count > 0)
    }

    fn count(&self, tally: &Tally, is_whole: bool) -> u64 {
        if self.failed.is_empty() {
            return tally.count(is_whole);
        }
        let mut tally = tally.clone();
        tally.ids.retain(|id| !self.failed.contains(id));
        tally.begun.retain(|id| !self.failed.contains(id));
        tally.count(is_whole)
    }

    /// What other models used for the tools, such as the one that draws.
    pub(crate) fn passes(&self, is_whole: bool) -> Vec<Pass> {
        let seen = self.tallies.get(PICTURES).map_or(0, |tally| self.count(tally, is_whole));
        let told = self.told.get(PICTURES).copied().unwrap_or(0);
        let pictures = if told > 0 { told } else { seen };
        let used = self.painted.as_deref().filter(|report| !report.is_zero());
        let mut usage = used
            .map(|report| report.settle(Reasoning::InOutput, &mut Vec::new()))
            .unwrap_or_default();
        if pictures > 0 {
            usage.units.insert(PICTURES.to_owned(), pictures.into());
        }
        if usage == Usage::default() {
            return Vec::new();
        }
        let model = self.painter.clone().unwrap_or_else(|| UNNAMED_PAINTER.to_owned());
        vec![Pass { model: Some(model), usage }]
    }
}
