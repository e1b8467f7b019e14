//! `Raw*` structs → `Config`: fills in defaults, and checks the rules between one key and
//! another.

mod dimensions;
mod fleet;
mod limits;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use taximeter_collections::Gather as _;
use taximeter_meter::{Dialect, UsageAsk};
use taximeter_pricing::Currency;

use crate::addresses::admin_problem;
use crate::admin_tokens::{AdminRight, AdminToken};
use crate::content::{Content, captures};
use crate::cors::Cors;
use crate::dimensions::Dimensions;
use crate::forward::{Forward, ForwardCredential};
use crate::mistake::Invalid;
use crate::model::{
    ApiKey, Billing, ClientCertificate, Config, Export, Ledger, ModelPattern, OnClientLeft,
    OtlpKeys, Push, Telemetry, Tenants, TokenizerFile, TrustedHeader, UnknownCaller, Upstream,
};
use crate::otel::{CAPTURE_VARIABLE, EVENT_VARIABLE, header_name, is_true};
use crate::prices::prices;
use crate::reader::{List, Optional, Reader, Required, Spanned, Table};
use crate::sampling::{Always, TraceKeys};
use crate::schema::{
    RawAdminToken, RawApiKey, RawBilling, RawConfig, RawContent, RawCors, RawExport, RawForward,
    RawHeader, RawLedger, RawOtlp, RawTelemetry, RawTenants, RawTokenizer, RawTraces, RawUpstream,
};
use crate::secret::Secret;
use crate::terms;
use crate::tls::RawAdminTls;
use crate::value::Value;
use crate::values::{HeaderText, Label, Sha256};
use limits::limits;

/// The configuration. Reports mistakes, and returns `None` when one of them leaves a part unbuilt.
pub(crate) fn config(raw: RawConfig, reader: &mut Reader<'_>) -> Option<Config> {
    let default = Config::before(Vec::new());
    let prices = raw.prices.given().map_or(default.prices, |raw| prices(raw, reader));
    let currency = prices.currency;
    let upstreams = raw.upstreams.0.and_then(|list| upstreams(list, currency, reader));
    let (given_listen, given_admin) = (raw.listen.given(), raw.admin.given());
    let listen = given_listen.as_ref().map_or(default.listen, |raw| raw.addresses.clone());
    let admin = given_admin.as_ref().map_or(default.admin, |raw| raw.addresses.clone());
    let tokens = raw.admin_tokens.given();
    let admin_tokens = tokens.map_or(Some(Vec::new()), |list| admin_tokens(list, reader));
    let may_read = |token: &AdminToken| token.may(AdminRight::Read);
    // A wrong token is reported already.
    let is_guarded = !matches!(raw.admin_token, Optional::Absent)
        || admin_tokens.as_ref().is_none_or(|all| all.iter().any(may_read))
        || RawAdminTls::asks_for_certificates(&raw.admin_tls);
    // The defaults fit together, so the file gives one of the two when there is a problem.
    if let Some((address, why)) = admin_problem(&listen, &admin, is_guarded)
        && let Some(location) =
            given_admin.or(given_listen).and_then(|given| given.location(address))
    {
        reader.invalid::<SocketAddr>(&location, &address.to_string(), &why);
    }
    let tokenizers =
        raw.tokenizers.given().map_or(Some(Vec::new()), |list| tokenizers(list, reader));
    let tenants = match raw.tenants {
        Optional::Given(raw) => tenants(raw, currency, reader),
        Optional::Absent | Optional::Wrong => Some(default.tenants),
    };
    let tls = raw.tls.given().map_or(Some(None), |raw| raw.files(reader).map(Some));
    let admin_tls = raw.admin_tls.given().map_or(Some(None), |raw| raw.files(reader).map(Some));
    let fleet = raw.fleet.given().map(|raw| fleet::fleet(raw, upstreams.as_deref(), reader));
    let dimensions = raw
        .dimensions
        .given()
        .map_or(default.dimensions, |raw| dimensions::dimensions(raw, reader));
    let export = raw.export.given().map_or(Some(default.export), export);
    let cors = raw.cors.given().map_or(Some(None), |raw| cors(raw, reader).map(Some));
    Some(Config {
        listen,
        admin,
        admin_token: raw.admin_token.given().map(|at| at.value.0),
        admin_tokens: admin_tokens?,
        data_dir: raw.data_dir.or(default.data_dir),
        workers: raw.workers.or(default.workers),
        dimensions: Dimensions {
            sessions: raw.sessions.or(dimensions.sessions),
            end_users: raw.end_user.or(dimensions.end_users),
            ..dimensions
        },
        prices,
        billing: raw.billing.given().map_or(default.billing, billing),
        ledger: raw.ledger.given().map_or(default.ledger, ledger),
        telemetry: telemetry(raw.telemetry.given(), reader),
        receipts: raw.receipts.or(default.receipts),
        passthrough: raw.passthrough.or(default.passthrough),
        forward: raw.forward.given().map_or(default.forward, forward),
        fleet,
        resource: labels(raw.resource),
        limits: raw.limits.given().map_or(default.limits, |raw| limits(raw, reader)),
        // These may return early. They come last, so that everything above is checked.
        upstreams: upstreams?,
        tokenizers: tokenizers?,
        tenants: tenants?,
        tls: tls?,
        admin_tls: admin_tls?,
        export: export?,
        cors: cors?,
    })
}

fn billing(raw: RawBilling) -> Billing {
    Billing { zone: raw.zone.or(Billing::default().zone) }
}

fn upstreams(
    list: List<RawUpstream>,
    currency: Currency,
    reader: &mut Reader<'_>,
) -> Option<Vec<Upstream>> {
    if list.empty {
        reader.report(&list.location, "is empty", "expected at least one upstream");
    }
    let mut names = Unique::default();
    let built = list.items.into_iter().map(|raw| {
        names.check(&raw.name, reader);
        if let (Optional::Given(_), Optional::Given(forward)) =
            (&raw.credential, &raw.forward_credential)
            && forward.value == ForwardCredential::On
        {
            let why = Invalid::new("cannot stand beside `credential`", "only one of them");
            reader.invalid::<ForwardCredential>(&forward.location, &forward.written, &why);
        }
        let dialect = dialect(&raw);
        let models = models(raw.models, reader);
        check_usage(&raw.usage, dialect, reader);
        let gpus = raw.gpu.given().map(|raw| terms::gpus(raw, currency, reader));
        Some(Upstream {
            name: raw.name.0?.value.into(),
            url: raw.url.0?.value,
            dialect,
            provider: raw.provider.or(dialect.provider().to_owned()),
            usage: raw.usage.or(UsageAsk::default()),
            models,
            credential: raw.credential.given().map(|at| at.value),
            forward_credential: raw.forward_credential.or(ForwardCredential::default()),
            forward: raw.forward.given().map(forward),
            recount: raw.recount.or(true),
            on_client_left: raw.on_client_left.or(OnClientLeft::default()),
            gpus: gpus.map_or(Some(Vec::new()), |gpus| gpus)?,
        })
    });
    // Collected twice, so that every item is checked before a failed one ends it.
    built.collect::<Vec<_>>().into_iter().collect()
}

fn forward(raw: RawForward) -> Forward {
    let names = raw.drop.given().map(|list| list.items.into_iter().map(|at| at.value).collect());
    Forward { drop: names }
}

/// `None` when no origin can be read.
fn cors(raw: RawCors, reader: &mut Reader<'_>) -> Option<Cors> {
    let origins = raw.origins.0?;
    if origins.empty {
        reader.report(&origins.location, "is empty", "expected at least one origin");
    }
    Some(Cors { origins: origins.items.into_iter().map(|at| at.value).collect() })
}

/// The dialect that the key names, or else the host of the URL.
fn dialect(raw: &RawUpstream) -> Dialect {
    match (&raw.dialect, &raw.url.0) {
        (Optional::Given(dialect), _) if dialect.value != Dialect::Auto => dialect.value,
        (_, Some(url)) => url.value.dialect(),
        (_, None) => Dialect::Auto,
    }
}

/// Reports a kind of usage that the dialect does not support. `auto` may support every kind.
fn check_usage(usage: &Optional<Spanned<UsageAsk>>, dialect: Dialect, reader: &mut Reader<'_>) {
    let Optional::Given(usage) = usage else { return };
    if dialect != Dialect::Auto && !usage.value.suits(dialect) {
        let why = Invalid::new(
            format!("is not supported by the dialect {}", dialect.as_str()),
            "final, or the dialect vllm, sglang or auto",
        );
        reader.invalid::<UsageAsk>(&usage.location, &usage.written, &why);
    }
}

fn models(
    raw: Optional<List<Spanned<ModelPattern>>>,
    reader: &mut Reader<'_>,
) -> Vec<ModelPattern> {
    let Some(list) = raw.given() else { return vec![ModelPattern::any()] };
    if list.empty {
        reader.report(
            &list.location,
            "is empty",
            "expected a model name, or \"*\" for every model",
        );
    }
    list.items.into_iter().map(|at| at.value).collect()
}

fn tokenizers(list: List<RawTokenizer>, reader: &mut Reader<'_>) -> Option<Vec<TokenizerFile>> {
    let built = list.items.into_iter().map(|raw| {
        Some(TokenizerFile {
            models: models(raw.models, reader),
            path: reader.resolve(&raw.path.0?.value),
            estimated: raw.estimated.or(false),
        })
    });
    built.collect::<Vec<_>>().into_iter().collect()
}

fn tenants(raw: RawTenants, currency: Currency, reader: &mut Reader<'_>) -> Option<Tenants> {
    let open = matches!((&raw.keys, &raw.header), (Optional::Absent, Optional::Absent));
    let default = if open { Tenants::default().unknown } else { UnknownCaller::Refuse };
    let keys = raw.keys.given().map_or(Some(Vec::new()), |list| keys(list, reader));
    let header = raw.header.given().map(|raw| header(raw, reader));
    let mut names = Unique::default();
    let list = raw.list.given().map(|list| list.items).unwrap_or_default().into_iter();
    let list: Vec<_> = list
        .map(|raw| {
            names.check(&raw.name, reader);
            terms::tenant(raw, currency, reader)
        })
        .collect();
    Some(Tenants {
        unknown: raw.unknown.or(default),
        keys: keys?,
        header: match header {
            Some(header) => Some(header?),
            None => None,
        },
        list: list.into_iter().collect::<Option<_>>()?,
    })
}

fn keys(list: List<RawApiKey>, reader: &mut Reader<'_>) -> Option<Vec<ApiKey>> {
    let mut ids = Unique::default();
    let mut hashes = Unique::default();
    let built = list.items.into_iter().map(|raw| {
        ids.check(&raw.id, reader);
        hashes.check(&raw.sha256, reader);
        let Sha256(sha256) = raw.sha256.0?.value;
        Some(ApiKey {
            id: raw.id.0?.value.into(),
            tenant: raw.tenant.0?.value.into(),
            sha256,
            labels: labels(raw.labels),
        })
    });
    built.collect::<Vec<_>>().into_iter().collect()
}

/// `None` if one of them is left unbuilt.
fn admin_tokens(list: List<RawAdminToken>, reader: &mut Reader<'_>) -> Option<Vec<AdminToken>> {
    let (mut ids, mut hashes) = (Unique::default(), Unique::default());
    let built = list.items.into_iter().map(|raw| {
        ids.check(&raw.id, reader);
        hashes.check(&raw.sha256, reader);
        let rights = raw.may.0?;
        if rights.empty {
            reader.report(&rights.location, "is empty", "expected what the token may do");
        }
        let Sha256(sha256) = raw.sha256.0?.value;
        let may = rights.items.into_iter().map(|at| at.value).collect();
        Some(AdminToken { id: raw.id.0?.value.into(), sha256, may })
    });
    built.collect::<Vec<_>>().into_iter().collect()
}

fn header(raw: RawHeader, reader: &mut Reader<'_>) -> Option<TrustedHeader> {
    let peers = raw.trusted_peers.0?;
    if peers.empty {
        reader.report(&peers.location, "is empty", "expected the peers that may set the header");
    }
    Some(TrustedHeader {
        name: raw.name.0?.value.into(),
        trusted_peers: peers.items.into_iter().map(|at| at.value).collect(),
    })
}

fn ledger(raw: RawLedger) -> Ledger {
    let default = Ledger::default();
    Ledger {
        durability: raw.durability.or(default.durability),
        recovery: raw.recovery.or(default.recovery),
        unavailable: raw.unavailable.or(default.unavailable),
        records_keep_days: raw.records_keep_days.or(default.records_keep_days),
        dir_bytes_max: raw.dir_bytes_max.or(default.dir_bytes_max),
        store: raw.store.or(default.store),
    }
}

/// `None` when the receiver cannot be built.
fn export(raw: RawExport) -> Option<Export> {
    // Large enough for a receiver far away, small enough for every receiver.
    const BATCH_MAX: usize = 100;
    let push = match raw.push {
        Optional::Given(raw) => Some(Push {
            url: raw.url.0?.value.into(),
            token: raw.token.given().map(|at| at.value),
            batch_max: raw.batch_max.or(BATCH_MAX),
        }),
        Optional::Absent | Optional::Wrong => None,
    };
    Some(Export { push })
}

fn telemetry(raw: Option<RawTelemetry>, reader: &mut Reader<'_>) -> Telemetry {
    let default = Telemetry::default();
    let Some(raw) = raw else {
        return Telemetry { content: Arc::new(content(None, reader)), ..default };
    };
    Telemetry {
        genai: raw.genai.given().map(|at| at.value),
        tenants_max: raw.tenants_max.or(default.tenants_max),
        scope_labels: raw.scope_labels.or(default.scope_labels),
        native_histograms: raw.native_histograms.or(default.native_histograms),
        access_log: raw.access_log.or(default.access_log),
        otlp: raw.otlp.given().map_or(default.otlp, |raw| otlp(raw, reader)),
        traces: raw.traces.given().map(traces),
        content: Arc::new(content(raw.content.given(), reader)),
    }
}

/// What telemetry captures: the file's keys, or else the environment's variables.
fn content(raw: Option<RawContent>, reader: &mut Reader<'_>) -> Content {
    let variable = |name| (reader.env)(name).filter(|word| !word.trim().is_empty());
    let captured = variable(CAPTURE_VARIABLE).and_then(|word| captures(word.trim()).ok());
    let captured = captured.unwrap_or_default();
    let has_none = variable(EVENT_VARIABLE).is_some_and(|word| is_true(word.trim()) == Ok(false));
    let capture = if has_none { captured.without_events() } else { captured };
    let default = Content { capture, ..Content::default() };
    let Some(raw) = raw else { return default };
    let tenants = raw.tenants.given().map(|list| list.items);
    Content {
        capture: raw.capture.given().map_or(default.capture, |at| at.value),
        bytes_max: raw.bytes_max.or(default.bytes_max),
        redact: raw
            .redact
            .given()
            .map_or_else(Vec::new, |list| list.items.into_iter().map(|at| at.value).collect()),
        redact_known: raw.redact_known.or(default.redact_known),
        tenants: tenants.map(|names| names.into_iter().map(|at| at.value.into()).collect()),
    }
}

fn traces(raw: RawTraces) -> TraceKeys {
    let default = Always::default();
    let always = raw.always.given().map(|raw| Always {
        errors: raw.errors.or(default.errors),
        slow_first_token: raw.slow_first_token_seconds.or(default.slow_first_token),
        stall: raw.stall_seconds.or(default.stall),
    });
    TraceKeys { ratio: raw.ratio.given().map(|at| at.value), always: always.unwrap_or_default() }
}

fn otlp(raw: RawOtlp, reader: &mut Reader<'_>) -> OtlpKeys {
    OtlpKeys {
        endpoint: raw.endpoint.given().map(|at| at.value.into()),
        protocol: raw.protocol.given().map(|at| at.value),
        headers: raw.headers.given().map(|table| headers(table, reader)),
        gzip: raw.compression.given().map(|at| at.value.0),
        timeout: raw.timeout_seconds.given().map(|at| at.value),
        ca: raw.ca.given().map(|at| reader.resolve(&at.value)),
        client: client(raw.cert, raw.key, reader),
        interval: raw.interval_seconds.given().map(|at| at.value),
        temporality: raw.temporality.given().map(|at| at.value),
        histograms: raw.histograms.given().map(|at| at.value),
        logs: raw.logs.given().map(|at| at.value),
    }
}

/// A certificate with its key. One without the other is a mistake.
fn client(
    cert: Optional<Spanned<PathBuf>>,
    key: Optional<Spanned<PathBuf>>,
    reader: &mut Reader<'_>,
) -> Option<ClientCertificate> {
    let (alone, other) = match (cert, key) {
        (Optional::Given(cert), Optional::Given(key)) => {
            let [cert, key] = [cert, key].map(|at| reader.resolve(&at.value));
            return Some(ClientCertificate { cert, key });
        }
        (Optional::Given(cert), Optional::Absent) => (cert, "`key`"),
        (Optional::Absent, Optional::Given(key)) => (key, "`cert`"),
        _ => return None,
    };
    reader.report(&alone.location, "needs a second key", format!("expected {other} beside it"));
    None
}

/// Headers by their names in lower case, as HTTP/2 requires.
fn headers(table: Table<HeaderText>, reader: &mut Reader<'_>) -> BTreeMap<String, Secret> {
    let mut headers = BTreeMap::new();
    for (name, at) in table.0 {
        match header_name(&name) {
            Ok(name) => {
                headers.insert(name, at.value.0);
            }
            Err(why) => {
                reader.report(&at.location, why.problem, format!("expected {}", why.expected))
            }
        }
    }
    headers
}

fn labels(raw: Optional<Table<Label>>) -> BTreeMap<String, String> {
    let labels = raw.given().map(|table| table.0).unwrap_or_default();
    labels.into_iter().map(|(name, at)| (name, at.value.into())).gather()
}

/// Values that must differ, with the path of the first key that has each.
struct Unique<T>(BTreeMap<T, String>);

impl<T> Default for Unique<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Value + Clone + Ord> Unique<T> {
    fn check(&mut self, value: &Required<Spanned<T>>, reader: &mut Reader<'_>) {
        let Required(Some(at)) = value else { return };
        match self.0.entry(at.value.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(at.location.path.clone());
            }
            Entry::Occupied(first) => {
                let why =
                    Invalid::new(format!("is also the value of {}", first.get()), "another value");
                reader.invalid::<T>(&at.location, &at.written, &why);
            }
        }
    }
}
