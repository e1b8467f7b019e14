//! What is read of engines, GPUs and hosts, and from where.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::json_schema::Allowed;
use crate::mistake::Invalid;
use crate::value::Value;

/// The longest id of a GPU, in bytes.
const GPU_ID_BYTES_MAX: usize = 128;
/// The shortest time between two looks at `/proc`, in seconds.
const LOOK_SECONDS_MIN: f64 = 0.1;
/// The longest.
const LOOK_SECONDS_MAX: f64 = 60.0;
/// Seconds of a day.
const DAY_SECONDS: u64 = 86_400;
/// The longest time that samples are kept, in days.
const KEEP_DAYS_MAX: u64 = 36_500;

/// What is read of engines, GPUs and hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct Fleet {
    /// Which engines are asked.
    pub engines: Engines,
    /// The file in which Kubernetes shows the pod's annotations.
    pub annotations: Option<PathBuf>,
    /// Exporters of GPUs.
    pub gpus: Vec<ScrapeUrl>,
    /// The socket at which the kubelet says whose each GPU is.
    pub podresources: Option<PathBuf>,
    /// The upstream of each GPU, by the GPU's id, as far as the file says.
    pub assigned: BTreeMap<String, String>,
    /// Exporters of hosts.
    pub hosts: Vec<ScrapeUrl>,
    /// The time between two looks at `/proc`; `None` looks never.
    pub local: Option<Duration>,
    /// What is remembered of all of them.
    pub memory: FleetMemory,
}

/// What is remembered of engines, GPUs and hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetMemory {
    /// How long samples are kept: those by the second, by the minute, and by the hour.
    pub keep: [Duration; 3],
    /// The most bytes that they may take; `None` is a part of the room of the data directory.
    pub bytes_max: Option<u64>,
}

impl Default for FleetMemory {
    fn default() -> Self {
        const DAYS: [u64; 3] = [2, 90, 3 * 365];
        Self { keep: DAYS.map(|days| Duration::from_secs(days * DAY_SECONDS)), bytes_max: None }
    }
}

impl Default for Fleet {
    fn default() -> Self {
        Self {
            engines: Engines::Auto,
            annotations: None,
            gpus: Vec::new(),
            podresources: None,
            assigned: BTreeMap::new(),
            hosts: Vec::new(),
            local: Some(Duration::from_secs(1)),
            memory: FleetMemory::default(),
        }
    }
}

/// Which engines are asked for their metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Engines {
    /// Each upstream that is not public.
    Auto,
    /// None.
    Off,
    /// These.
    Listed(Vec<ScrapeUrl>),
}

/// Where metrics are.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ScrapeUrl {
    /// TLS or not.
    pub tls: bool,
    /// Name or address, without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Path and query.
    pub path: String,
}

/// `auto` or `off`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum EnginesWord {
    Auto,
    Off,
}

impl Value for EnginesWord {
    const EXPECTED: &'static str = "auto, off, or a list of URLs";

    fn parse(text: &str) -> Result<Self, Invalid> {
        match text {
            "auto" => Ok(Self::Auto),
            "off" | "false" => Ok(Self::Off),
            _ => Err(Invalid::new("is not allowed here", Self::EXPECTED)),
        }
    }

    fn allowed() -> Allowed {
        Allowed::Words(vec!["auto", "off", "false"])
    }
}

/// The id of a GPU or of a part of one.
#[derive(Debug, Clone)]
pub(crate) struct GpuId(pub(crate) String);

impl Value for GpuId {
    const EXPECTED: &'static str =
        "an id of a GPU such as GPU-5fd4f087-86f3-7a43-b711-4771313afc50";

    fn parse(text: &str) -> Result<Self, Invalid> {
        // What plugins that share a GPU put behind its id is left out, as of what exporters print.
        let id = text.split("::").next().unwrap_or(text);
        if id.is_empty()
            || id.len() > GPU_ID_BYTES_MAX
            || !id.bytes().all(|byte| byte.is_ascii_graphic())
        {
            return Err(Invalid::new("is no id of a GPU", Self::EXPECTED));
        }
        Ok(Self(id.to_owned()))
    }
}

/// The time between two looks at `/proc`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LookPeriod(Duration);

impl From<LookPeriod> for Duration {
    fn from(period: LookPeriod) -> Self {
        period.0
    }
}

impl Value for LookPeriod {
    const EXPECTED: &'static str = "seconds, from 0.1 to 60";

    fn parse(text: &str) -> Result<Self, Invalid> {
        let invalid = || Invalid::new("is not a time from 0.1 to 60 seconds", Self::EXPECTED);
        let seconds: f64 = text.parse().map_err(|_| invalid())?;
        if !(LOOK_SECONDS_MIN..=LOOK_SECONDS_MAX).contains(&seconds) {
            return Err(invalid());
        }
        Duration::try_from_secs_f64(seconds).map(Self).map_err(|_| invalid())
    }

    fn allowed() -> Allowed {
        Allowed::Number { zero: false, max: LOOK_SECONDS_MAX }
    }
}

/// How long samples are kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeepFor(Duration);

impl From<KeepFor> for Duration {
    fn from(time: KeepFor) -> Self {
        time.0
    }
}

impl Value for KeepFor {
    const EXPECTED: &'static str = "hours, days or years, such as 48h, 90d or 3y";

    fn parse(text: &str) -> Result<Self, Invalid> {
        let invalid = || Invalid::new("is no time that samples are kept", Self::EXPECTED);
        let unit = text.chars().next_back().ok_or_else(invalid)?;
        let number =
            text.strip_suffix(unit).filter(|text| text.bytes().all(|c| c.is_ascii_digit()));
        let number: u64 = number.and_then(|text| text.parse().ok()).ok_or_else(invalid)?;
        let seconds = match unit {
            'h' => number.checked_mul(3_600),
            'd' => number.checked_mul(DAY_SECONDS),
            'y' => number.checked_mul(365 * DAY_SECONDS),
            _ => None,
        };
        let allowed = 1..=KEEP_DAYS_MAX * DAY_SECONDS;
        let seconds = seconds.filter(|seconds| allowed.contains(seconds)).ok_or_else(invalid)?;
        Ok(Self(Duration::from_secs(seconds)))
    }

    fn allowed() -> Allowed {
        Allowed::Text
    }
}
