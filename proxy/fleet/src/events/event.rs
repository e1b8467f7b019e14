//! An event: what changed, of whom, and when.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

macro_rules! kinds {
    ($($kind:ident = $name:literal, $meaning:literal;)*) => {
        /// What has changed.
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
        )]
        pub enum EventKind {
            $(
                #[doc = $meaning]
                #[serde(rename = $name)]
                $kind,
            )*
        }

        impl EventKind {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$kind),*];

            /// One word.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$kind => $name),* }
            }

            /// What it is, for people.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$kind => $meaning),* }
            }
        }
    };
}

kinds! {
    SourceState = "source_state", "a source has become stale, or tells something again, or for the first time";
    EngineVersion = "engine_version", "another version of an engine, or another engine, answers";
    EngineModel = "engine_model", "an engine serves other models";
    EngineRestarted = "engine_restarted", "an engine counts from 0 again: it was started anew";
    DriverVersion = "driver_version", "a host has another driver of its GPUs";
    KernelVersion = "kernel_version", "a host has another kernel";
    GpuAppeared = "gpu_appeared", "an exporter tells of a GPU, or of a part of one, for the first time";
    GpuVanished = "gpu_vanished", "an exporter no longer tells of a GPU, or of a part of one";
    GpuOwner = "gpu_owner", "a GPU was given to another pod, to several, or to none";
    GpuClaimed = "gpu_claimed", "several upstreams claim one GPU, or no longer do";
    GpuXid = "gpu_xid", "the driver has told an error of a GPU: NVIDIA's XID, or AMD's field id";
    GpuThrottled = "gpu_throttled",
        "heat, or a fault of the hardware, begins to hold down the clocks of a GPU";
    Configuration = "configuration", "another configuration is in force";
    Prices = "prices", "other prices are in force";
    LeftOut = "left_out", "there were more changes in an hour than are kept";
}

/// Something has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When it was found.
    pub at: Timestamp,
    /// What has changed.
    pub kind: EventKind,
    /// Of whom: a source, `source`'s GPU or host, or a file.
    pub subject: String,
    /// The source that tells it. The gateway's own events have none.
    pub source: Option<String>,
    /// All whom it concerns: the subject, its source, and the upstreams, hosts and pods of these.
    pub about: Vec<String>,
    /// What it was before, where that can be told.
    pub before: Option<String>,
    /// What it is now, where that can be told.
    pub after: Option<String>,
    /// The same in one sentence, for people.
    pub text: String,
}

impl Event {
    /// Whether it concerns any of these. One of the gateway itself concerns all.
    #[must_use]
    pub fn concerns(&self, subjects: &[String]) -> bool {
        let is_asked = |one: &String| subjects.contains(one);
        subjects.is_empty() || self.source.is_none() || self.about.iter().any(is_asked)
    }
}
