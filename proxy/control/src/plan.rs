//! Which sources are asked, by a configuration.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use taximeter_config::{Config, Engines, Fleet, ScrapeUrl, Secret, Upstream};
use taximeter_fleet::TargetKind;

/// What is read, and how often.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// The sources that are asked.
    pub sources: Vec<Source>,
    /// The time between two looks at `/proc`; `None` looks never.
    pub local: Option<Duration>,
}

/// A source that is asked.
#[derive(Debug, Clone)]
pub struct Source {
    /// Where it is.
    pub url: ScrapeUrl,
    /// What it is asked for.
    pub kind: TargetKind,
    /// The names of the upstreams that are there.
    pub upstreams: Vec<String>,
    /// What it is shown. Only an upstream at the same address has one.
    pub credential: Option<Secret>,
    /// Whether it is left alone where its name is that of a public address.
    pub is_private: bool,
    /// The requests of ours that run there, for each upstream.
    pub running: Vec<Arc<AtomicUsize>>,
}

impl Source {
    /// Whether requests of ours run there.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.running.iter().any(|running| running.load(Relaxed) > 0)
    }
}

impl Plan {
    /// What `config` asks for. `running` counts the requests at the upstream with this index.
    pub fn of(config: &Config, running: impl Fn(usize) -> Arc<AtomicUsize>) -> Self {
        let Some(fleet) = &config.fleet else { return Self::default() };
        let mut sources: BTreeMap<ScrapeUrl, Source> = BTreeMap::new();
        for (kind, url, is_private) in places(fleet, &config.upstreams) {
            let source = sources.entry(url.clone()).or_insert_with(|| Source {
                url: url.clone(),
                kind,
                upstreams: Vec::new(),
                credential: None,
                is_private,
                running: Vec::new(),
            });
            if source.kind != TargetKind::Engine || !source.upstreams.is_empty() {
                continue;
            }
            for (index, upstream) in config.upstreams.iter().enumerate() {
                if url.is_at(&upstream.url) {
                    source.upstreams.push(upstream.name.clone());
                    source.credential = source.credential.take().or(upstream.credential.clone());
                    source.running.push(running(index));
                }
            }
        }
        Self { sources: sources.into_values().collect(), local: fleet.local }
    }
}

/// Each place, what is there, and whether it may not be public.
fn places<'a>(
    fleet: &'a Fleet,
    upstreams: &'a [Upstream],
) -> impl Iterator<Item = (TargetKind, ScrapeUrl, bool)> + 'a {
    let engines: Vec<_> = match &fleet.engines {
        Engines::Off => Vec::new(),
        Engines::Listed(urls) => urls.iter().map(|url| (url.clone(), false)).collect(),
        Engines::Auto => {
            let own = upstreams.iter().filter(|upstream| !upstream.url.is_public());
            own.map(|upstream| (ScrapeUrl::of_engine(&upstream.url), true)).collect()
        }
    };
    let engines = engines.into_iter().map(|(url, own)| (TargetKind::Engine, url, own));
    let gpus = fleet.gpus.iter().map(|url| (TargetKind::Gpu, url.clone(), false));
    let hosts = fleet.hosts.iter().map(|url| (TargetKind::Host, url.clone(), false));
    engines.chain(gpus).chain(hosts)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    fn plan(text: &str) -> Plan {
        let none = |_: &std::path::Path| Err(io::ErrorKind::NotFound.into());
        let config = Config::from_yaml(text, "t.yaml", &|_| None, &none).unwrap();
        Plan::of(&config, |index| Arc::new(AtomicUsize::new(index)))
    }

    /// Each source as `kind url upstreams credential private`.
    fn sources(text: &str) -> Vec<String> {
        let shown = |source: &Source| {
            format!(
                "{} {} {} {} {}",
                source.kind.as_str(),
                source.url,
                source.upstreams.join("+"),
                source.credential.as_ref().map_or("-", Secret::expose),
                source.is_private
            )
        };
        plan(text).sources.iter().map(shown).collect()
    }

    const UPSTREAMS: &str = "upstreams:\n\
        - {name: a, url: \"http://127.0.0.1:8000/v1\", credential: key-a}\n\
        - {name: b, url: \"http://127.0.0.1:8000\", models: [b]}\n\
        - {name: c, url: \"http://vllm.models.svc:8000/base\"}\n\
        - {name: hosted, url: \"https://api.openai.com/v1\", credential: key-hosted}\n";

    #[test]
    fn only_upstreams_that_are_not_public_are_asked_and_each_address_once() {
        assert_eq!(
            sources(&format!("{UPSTREAMS}fleet: {{}}\n")),
            [
                "engine http://127.0.0.1:8000/metrics a+b key-a true",
                "engine http://vllm.models.svc:8000/base/metrics c - true",
            ]
        );
        assert_eq!(sources(UPSTREAMS), [""; 0]);
        let off = plan(&format!("{UPSTREAMS}fleet: {{engines: off, hosts: {{local: off}}}}\n"));
        assert_eq!((off.sources.len(), off.local), (0, None));
    }

    #[test]
    fn a_credential_goes_only_to_the_address_of_its_upstream() {
        let listed = "fleet:\n  engines: ['http://127.0.0.1:8000/other', 'https://127.0.0.1:8000', \
            'https://api.openai.com:8443/metrics']\n  gpus: {scrape: ['https://api.openai.com']}\n  \
            hosts: {scrape: ['http://node:9100']}\n";
        assert_eq!(
            sources(&format!("{UPSTREAMS}{listed}")),
            [
                "engine http://127.0.0.1:8000/other a+b key-a false",
                "host http://node:9100/metrics  - false",
                "engine https://127.0.0.1:8000/metrics  - false",
                "gpu https://api.openai.com/metrics  - false",
                "engine https://api.openai.com:8443/metrics  - false",
            ]
        );
    }

    #[test]
    fn a_place_is_busy_while_requests_run_at_any_of_its_upstreams() {
        let plan = plan(&format!("{UPSTREAMS}fleet: {{}}\n"));
        let [own, other] = plan.sources.as_slice() else { panic!("two sources") };
        // The counts are the indices of the upstreams: 0 and 1, and 2.
        assert!(own.is_busy() && other.is_busy());
        own.running.iter().chain(&other.running).for_each(|running| running.store(0, Relaxed));
        assert!(!own.is_busy() && !other.is_busy());
        own.running[1].store(1, Relaxed);
        assert!(own.is_busy());
    }
}
