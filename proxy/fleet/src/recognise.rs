//! Which programs the metrics of a scrape are of.
//!
//! Names alone do not tell: routers print vLLM's names, and several engines print names without a
//! prefix. So a program is told by several marks, and a mark of another one speaks against it.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use foldhash::fast::RandomState;
use taximeter_collections::Gather as _;

use crate::names::{Metric, Names};
use crate::reading::Program;
use crate::row::{Mark, Row, Source};

/// Names of its table that tell a program as much as a mark does.
const NAMES_THAT_TELL: usize = 3;

/// Most names of a row. Its number times this, and the number of the name, is the rank of a metric.
pub(crate) const NAMES_MAX: usize = 16;

/// Programs that are recognised, and not read: what all their metrics begin with, and who they are.
const OTHERS: &[(&[&str], &str, &str)] = &[
    (&["tgi_"], "tgi", "Text Generation Inference"),
    (&["nv_inference_", "nv_trt_llm_", "nv_gpu_"], "triton", "Triton"),
    (&["trtllm_"], "tensorrt-llm", "TensorRT-LLM"),
    (&["lmdeploy:", "lmdeploy_"], "lmdeploy", "LMDeploy"),
    (&["mistralrs_"], "mistral.rs", "mistral.rs"),
    (&["dynamo_"], "dynamo", "NVIDIA Dynamo"),
    (&["smg_", "sgl_router_", "sglang_router_"], "sglang-router", "a router of SGLang"),
    (&["nccl_"], "nccl-inspector", "NCCL Inspector"),
    (&["nvidia_smi_"], "nvidia-gpu-exporter", "nvidia_gpu_exporter"),
    (&["xpum_"], "xpum", "Intel XPU Manager"),
    (&["habanalabs_"], "gaudi", "Intel Gaudi exporter"),
    (&["npu_chip_"], "ascend", "Ascend npu-exporter"),
];

/// Names without a prefix, as several engines print them.
const BARE_ENGINE: &[&str] = &[
    "num_requests_running",
    "num_requests_waiting",
    "num_request_max",
    "time_to_first_token_seconds",
];

/// A program and the metrics of it.
pub(crate) struct Claim {
    pub source: &'static Source,
    pub program: Program,
    /// What its operator put before all names.
    prefix: String,
    rows: HashMap<Cow<'static, str>, Vec<(usize, &'static Row)>, RandomState>,
}

/// What a name stands for in a table: number of the row, the row, and number of the name in it.
pub(crate) type Found = (usize, &'static Row);

impl Claim {
    /// The program, if some of the metrics are its own.
    pub(crate) fn of(source: &'static Source, names: &Names<'_>) -> Option<Self> {
        let mut claim = Self {
            source,
            program: Program {
                name: source.name,
                title: source.title,
                is_read: true,
                is_certain: false,
                marks: Vec::new(),
                generation: None,
            },
            prefix: operators_prefix(source, names)?,
            rows: rows(source),
        };
        let (own, foreign): (Vec<(Cow<'_, str>, &Metric<'_>)>, Vec<_>) = names
            .metrics
            .iter()
            .filter_map(|metric| Some((claim.bare(metric.name)?, metric)))
            .partition(|(_, metric)| foreign(source, metric).is_none());
        if own.is_empty() {
            let (_, metric) = foreign.first()?;
            let (label, title) = self::foreign(source, metric)?;
            let marks = vec![claim.prefix_mark(metric.name), format!("label {label}")];
            let program =
                Program { title, marks, is_read: false, is_certain: true, ..claim.program };
            return Some(Self { program, ..claim });
        }
        let known: BTreeSet<&str> =
            own.iter().filter_map(|(bare, _)| claim.known(bare)).gather_set();
        let known = known.len();
        let has = |mark: &Mark| holds(source, mark, &own, names);
        let marks: Vec<_> = source.marks.iter().filter(|mark| has(mark)).collect();
        // Others begin their names so too: the router of SGLang, the kubelet.
        if known == 0 {
            return None;
        }
        if let Some((_, metric)) = own.first() {
            claim.program.marks.push(claim.prefix_mark(metric.name));
        }
        claim.program.marks.extend(marks.iter().map(|mark| told(mark)));
        if known >= NAMES_THAT_TELL {
            claim.program.marks.push(format!("{known} metrics of its table"));
        }
        claim.program.is_certain = claim.program.marks.len() > 1;
        let generation = source.generations.iter().find(|(mark, _)| has(mark));
        claim.program.generation = generation.map(|(_, text)| *text);
        Some(claim)
    }

    /// The name without the program's prefix, if the metric is one of the program's.
    pub(crate) fn bare<'n>(&self, name: &'n str) -> Option<Cow<'n, str>> {
        if !self.source.anchors.is_empty() {
            let bare = name.strip_prefix(self.prefix.as_str())?;
            let bare = self.in_one_case(bare);
            let own = self.source.prefixes.iter().any(|begin| bare.starts_with(begin));
            return own.then_some(bare);
        }
        let prefixes = self.source.prefixes.iter();
        let mut stripped = prefixes.filter_map(|prefix| {
            let (begin, rest) = name.split_at_checked(prefix.len())?;
            let any_case = self.source.any_case && begin.eq_ignore_ascii_case(prefix);
            (begin == *prefix || any_case).then_some(rest)
        });
        stripped.next().map(|bare| self.in_one_case(bare))
    }

    /// What a name without its prefix stands for.
    pub(crate) fn rows_of(&self, bare: &str) -> &[Found] {
        let rows = self.rows.get(bare).map(Vec::as_slice).unwrap_or_default();
        match bare.strip_suffix("_total") {
            Some(stem) if rows.is_empty() => {
                self.rows.get(stem).map(Vec::as_slice).unwrap_or_default()
            }
            _ => rows,
        }
    }

    fn in_one_case<'n>(&self, bare: &'n str) -> Cow<'n, str> {
        match self.source.any_case {
            true => Cow::Owned(bare.to_ascii_uppercase()),
            false => Cow::Borrowed(bare),
        }
    }

    /// The name in the table that a metric is of: its own, or its histogram's.
    fn known<'n>(&self, bare: &'n str) -> Option<&'n str> {
        let is_known = |name: &&'n str| !self.rows_of(name).is_empty();
        let stem = ["_bucket", "_sum", "_count"].iter().find_map(|part| bare.strip_suffix(part));
        Some(bare).filter(is_known).or_else(|| stem.filter(is_known))
    }

    fn prefix_mark(&self, name: &str) -> String {
        let begins = self.source.prefixes.iter().filter_map(|prefix| name.get(..prefix.len()));
        let own = begins.zip(self.source.prefixes).find(|(is, of)| is.eq_ignore_ascii_case(of));
        match (own, self.prefix.is_empty()) {
            (Some((begin, _)), true) => format!("names begin with {begin}"),
            _ => format!("names begin with {}, as its operator wants", self.prefix),
        }
    }
}

fn rows(source: &'static Source) -> HashMap<Cow<'static, str>, Vec<Found>, RandomState> {
    let mut rows: HashMap<Cow<'static, str>, Vec<Found>, RandomState> = HashMap::default();
    for (number, row) in source.rows.iter().enumerate() {
        for (at, name) in row.names.iter().enumerate() {
            let name = match source.any_case {
                true => Cow::Owned(name.to_ascii_uppercase()),
                false => Cow::Borrowed(*name),
            };
            rows.entry(name).or_default().push((number * NAMES_MAX + at, row));
        }
    }
    rows
}

/// What the operator of a program put before all its names. `None` if none of its metrics is there.
fn operators_prefix(source: &Source, names: &Names<'_>) -> Option<String> {
    if source.anchors.is_empty() {
        return Some(String::new());
    }
    names.metrics.iter().find_map(|metric| {
        let lower = metric.name.to_ascii_lowercase();
        let at = source.anchors.iter().find_map(|anchor| lower.strip_suffix(anchor).map(str::len));
        at.and_then(|at| metric.name.get(..at)).map(str::to_owned)
    })
}

fn holds(
    source: &Source,
    mark: &Mark,
    own: &[(Cow<'_, str>, &Metric<'_>)],
    names: &Names<'_>,
) -> bool {
    let is = |one: &str, other: &str| match source.any_case {
        true => one.eq_ignore_ascii_case(other),
        false => one == other,
    };
    let mut labels = own.iter().flat_map(|(_, metric)| metric.labels);
    match mark {
        Mark::Metric(name) => own.iter().any(|(bare, _)| {
            is(bare, name) || bare.strip_suffix("_total").is_some_and(|stem| is(stem, name))
        }),
        Mark::OwnMetric(name) => names.metrics.iter().any(|metric| metric.name == *name),
        Mark::Label(name) => labels.any(|label| label.name == *name),
        Mark::LabelBegins(name, begin) => {
            labels.any(|label| label.name == *name && label.value.starts_with(begin))
        }
    }
}

/// The label by which a metric is of another program, and which.
fn foreign(source: &Source, metric: &Metric<'_>) -> Option<(&'static str, &'static str)> {
    let has = |name: &str| metric.labels.iter().any(|label| label.name == name);
    source.foreign.iter().find(|(label, _)| has(label)).copied()
}

fn told(mark: &Mark) -> String {
    match mark {
        Mark::Metric(name) | Mark::OwnMetric(name) => format!("metric {name}"),
        Mark::Label(name) => format!("label {name}"),
        Mark::LabelBegins(name, begin) => format!("label {name} begins with {begin}"),
    }
}

/// Programs among the metrics that nobody claims, which are known and not read.
pub(crate) fn others(unclaimed: &[&str]) -> Vec<Program> {
    let program = |name, title, mark: String| Program {
        name,
        title,
        is_read: false,
        is_certain: false,
        marks: vec![mark],
        generation: None,
    };
    let begins = |prefix: &str| unclaimed.iter().any(|name| name.starts_with(prefix));
    let known = OTHERS.iter().filter_map(|(prefixes, name, title)| {
        let prefix = prefixes.iter().find(|prefix| begins(prefix))?;
        Some(program(*name, *title, format!("names begin with {prefix}")))
    });
    let mut others: Vec<_> = known.collect();
    if let Some(bare) = BARE_ENGINE.iter().find(|bare| begins(bare)) {
        let title =
            "an engine without a prefix: NVIDIA NIM, TensorRT-LLM 1.x, MindIE or another one";
        others.push(program("unknown", title, format!("metric {bare}")));
    }
    others
}
