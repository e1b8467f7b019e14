//! What tests add to pods.

use crate::options::{Beside, Sidecar};

/// The sidecar that stands there where nothing more is said.
pub(crate) fn sidecar(beside: Beside) -> Sidecar {
    Sidecar {
        image: "taximeter:1".to_owned(),
        image_pull_policy: "IfNotPresent".to_owned(),
        beside,
        container: None,
        engine_port: None,
        listen_port: None,
        tenant: None,
        upstream: None,
        config_map: None,
        admin_secret: None,
        fleet: false,
        memory: Sidecar::MEMORY.parse().expect("bytes"),
        cpu: Sidecar::CPU.parse().expect("processors"),
        drain_seconds: Sidecar::DRAIN_SECONDS.parse().expect("seconds"),
        journal_size: Sidecar::JOURNAL_SIZE.parse().expect("bytes"),
    }
}
