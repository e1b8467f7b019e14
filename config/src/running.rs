//! A configuration that replaces the one in force, and the keys of it that wait for a restart.

use crate::json_schema::Effect;
use crate::limits::Limits;
use crate::model::{Config, Telemetry};

/// Names the keys that a gateway reads at its start only. All others are read again while it runs;
/// limits say it in their own table.
macro_rules! at_restart {
    ($($($key:ident).+),+ $(,)?) => {
        const AT_RESTART: &[&str] = &[$(concat_keys!($($key).+)),+];

        /// Takes these keys from the configuration in force, and notes those that differ.
        fn keep(new: &mut Config, running: &Config, waiting: &mut Vec<&'static str>) {
            $(if new.$($key).+ != running.$($key).+ {
                new.$($key).+.clone_from(&running.$($key).+);
                waiting.push(concat_keys!($($key).+));
            })+
        }
    };
}

/// `a.b` as text.
macro_rules! concat_keys {
    ($first:ident $(. $rest:ident)*) => { concat!(stringify!($first) $(, ".", stringify!($rest))*) };
}

at_restart!(
    listen,
    tls,
    admin,
    admin_tls,
    data_dir,
    workers,
    ledger,
    export,
    telemetry.genai,
    telemetry.tenants_max,
    telemetry.scope_labels,
    telemetry.native_histograms,
    telemetry.otlp,
    telemetry.traces,
    resource,
);

/// When a change of the key with this path takes effect.
pub(crate) fn effect(path: &str) -> Effect {
    let of_limit = Limits::EFFECTS.iter().find(|(limit, _)| *limit == path);
    match of_limit {
        Some((_, effect)) => *effect,
        None if AT_RESTART.iter().any(|key| is_within(path, key)) => Effect::Restart,
        None => Effect::Reload,
    }
}

fn is_within(path: &str, key: &str) -> bool {
    path.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

impl Config {
    /// What a gateway uses that runs under `running` and reads this configuration: this one, with
    /// the keys of `running` that wait for a restart. Names those of them that differ.
    #[must_use]
    pub fn while_running(mut self, running: &Self) -> (Self, Vec<&'static str>) {
        // Names every key, so that a new one does not compile until somebody has decided.
        let Self {
            listen: _,
            tls: _,
            admin: _,
            admin_token: _,
            admin_tokens: _,
            admin_tls: _,
            data_dir: _,
            workers: _,
            upstreams: _,
            tenants: _,
            tokenizers: _,
            dimensions: _,
            prices: _,
            billing: _,
            ledger: _,
            export: _,
            telemetry:
                Telemetry {
                    genai: _,
                    tenants_max: _,
                    scope_labels: _,
                    native_histograms: _,
                    access_log: _,
                    otlp: _,
                    traces: _,
                    content: _,
                },
            receipts: _,
            passthrough: _,
            forward: _,
            cors: _,
            fleet: _,
            resource: _,
            limits: _,
        } = running;
        let mut waiting = Vec::new();
        keep(&mut self, running, &mut waiting);
        self.limits.keep(&running.limits, &mut waiting);
        // The address that stays may be one that other machines reach.
        if !self.admin_is_guarded() && !self.admin.are_loopback() {
            if self.admin_token != running.admin_token {
                self.admin_token.clone_from(&running.admin_token);
                waiting.push("admin_token");
            }
            if self.admin_tokens != running.admin_tokens {
                self.admin_tokens.clone_from(&running.admin_tokens);
                waiting.push("admin_tokens");
            }
        }
        (self, waiting)
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    fn config(text: &str) -> Config {
        let none = |_: &std::path::Path| Err(io::ErrorKind::NotFound.into());
        let whole = format!("upstreams:\n  - {{name: e, url: \"http://127.0.0.1:1\"}}\n{text}");
        Config::from_yaml(&whole, "t.yaml", &|_| None, &none).unwrap()
    }

    #[test]
    fn what_is_read_at_a_start_stays_and_is_named() {
        let running = config("listen: 127.0.0.1:1\nreceipts: on\n");
        let next = config(
            "listen: 127.0.0.1:2\nreceipts: off\nledger: {durability: os}\n\
             telemetry: {access_log: all, tenants_max: 7}\n\
             limits: {drain_seconds: 3, ledger_segment_bytes: 2000000}\n",
        );
        let (now, differ) = next.clone().while_running(&running);
        let waiting = ["listen", "ledger", "telemetry.tenants_max", "limits.ledger_segment_bytes"];
        assert_eq!(differ, waiting);
        assert_eq!((&now.listen, &now.ledger), (&running.listen, &running.ledger));
        assert!(!now.receipts);
        assert_eq!(now.telemetry.access_log, next.telemetry.access_log);
        assert_eq!(now.limits.drain, next.limits.drain);
        assert_eq!(now.while_running(&running).1, [""; 0]);
    }

    #[test]
    fn an_address_that_stays_open_to_strangers_keeps_its_token() {
        let running = config("admin: 0.0.0.0:9464\nadmin_token: sesame-0123456789abcdef\n");
        let (now, differ) = config("").while_running(&running);
        assert_eq!((&now.admin, &now.admin_token), (&running.admin, &running.admin_token));
        assert_eq!(differ, ["admin", "admin_token"]);
        let rotated = "admin: 0.0.0.0:9464\nadmin_token: another-0123456789abcdef\n";
        let (now, differ) = config(rotated).while_running(&running);
        assert_ne!(now.admin_token, running.admin_token);
        assert_eq!(differ, [""; 0]);
    }
}
