//! Command-line flags that override the file. They pass the same checks.

use taximeter_meter::UsageAsk;

use crate::addresses::admin_problem;
use crate::forward::ForwardCredential;
use crate::mistake::{Invalid, Mistake, Mistakes};
use crate::model::{Config, ModelPattern, OnClientLeft, Upstream, UpstreamUrl};
use crate::reader::quoted;
use crate::value::Value;

/// The name of the upstream that `--upstream` gives.
const UPSTREAM: &str = "upstream";

/// Flags that override the file, as typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    /// `--listen`: where clients connect; several addresses with commas.
    pub listen: Option<String>,
    /// `--admin`: the admin address; several with commas.
    pub admin: Option<String>,
    /// `--data-dir`: journal and store.
    pub data_dir: Option<String>,
    /// `--upstream`: one upstream in place of all those in the file.
    pub upstream: Option<String>,
}

impl Config {
    /// The configuration without a file: all requests go to `upstream_url`, and every caller is
    /// the tenant `default`.
    ///
    /// Errors: the mistake in `--upstream`.
    pub fn zero(upstream_url: &str) -> Result<Self, Mistakes> {
        let upstream = Some(upstream_url.to_owned());
        Self::before(Vec::new()).with(&Overrides { upstream, ..Overrides::default() })
    }

    /// This configuration with the flags that are given.
    ///
    /// Errors: every mistake in the flags, or between the flags and the file.
    pub fn with(mut self, overrides: &Overrides) -> Result<Self, Mistakes> {
        let mut flags = Flags::default();
        if let Some(listen) = flags.read("--listen", overrides.listen.as_deref()) {
            self.listen = listen;
        }
        if let Some(admin) = flags.read("--admin", overrides.admin.as_deref()) {
            self.admin = admin;
        }
        if let Some(data_dir) = flags.read("--data-dir", overrides.data_dir.as_deref()) {
            self.data_dir = data_dir;
        }
        if let Some(url) = flags.read("--upstream", overrides.upstream.as_deref()) {
            self.upstreams = vec![for_everything(url)];
        }
        let clash = admin_problem(&self.listen, &self.admin, self.admin_is_guarded());
        if let Some((address, why)) = clash {
            let flag = if overrides.admin.is_some() { "--admin" } else { "--listen" };
            flags.invalid(flag, &address.to_string(), &why);
        }
        if flags.mistakes.is_empty() { Ok(self) } else { Err(Mistakes::of_flags(flags.mistakes)) }
    }
}

/// Reads flags and collects their mistakes.
#[derive(Default)]
struct Flags {
    mistakes: Vec<Mistake>,
}

impl Flags {
    fn read<T: Value>(&mut self, flag: &str, text: Option<&str>) -> Option<T> {
        let text = text?;
        T::parse(text).map_err(|why| self.invalid(flag, text, &why)).ok()
    }

    fn invalid(&mut self, flag: &str, text: &str, why: &Invalid) {
        let value = if why.secret { "the value".to_owned() } else { quoted(text) };
        self.mistakes.push(Mistake {
            position: None,
            subject: flag.to_owned(),
            problem: format!("{value} {}", why.problem),
            hint: format!("expected {}", why.expected),
        });
    }
}

fn for_everything(url: UpstreamUrl) -> Upstream {
    let dialect = url.dialect();
    Upstream {
        name: UPSTREAM.to_owned(),
        url,
        dialect,
        provider: dialect.provider().to_owned(),
        usage: UsageAsk::default(),
        models: vec![ModelPattern::any()],
        credential: None,
        forward_credential: ForwardCredential::default(),
        forward: None,
        recount: true,
        on_client_left: OnClientLeft::default(),
        gpus: Vec::new(),
    }
}
