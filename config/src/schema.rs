//! Every key of the file, and what it means. The order is that of the reference.
//!
//! Strings may hold `${env:NAME}` and `${file:PATH}`; paths of files to read start at the
//! configuration's folder.

mod limits;

use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use taximeter_meter::{Dialect, UsageAsk};
use taximeter_pricing::{Currency, Money};

use crate::access_log::AccessLog;
use crate::content::{Capture, Pattern};
use crate::ledger::{Durability, OnDamage, OnUnavailable};
use crate::model::{
    GenAi, HistogramBuckets, ModelPattern, OnClientLeft, OtlpProtocol, Store, Temporality,
    UnknownCaller, UnknownPrice, UpstreamUrl,
};
use crate::money::{Count, Free, Rate, Weight};
use crate::reader::{At, ByMeter, List, OneOrMore, Optional, Required, Table, keys};
use crate::sampling::Ratio;
use crate::secret::Secret;
use crate::tls::{RawAdminTls, RawTls};
use crate::values::{Book, Gzip, HeaderText, IdentityHeader, Label, Name, Receiver, Sha256, Token};
use crate::versions::{Share, Versions};

pub(crate) use limits::RawLimits;

keys! {
    /// The file.
    RawConfig {
        /// Where clients connect, by HTTP/1.1 and HTTP/2 (h2c). Default: `127.0.0.1:8080`.
        listen: Optional<At<SocketAddr>>,
        /// What clients' connections are secured with. Default: nothing.
        tls: Optional<RawTls>,
        /// Metrics and health. Default: `127.0.0.1:9464`. Any address that is not loopback needs
        /// `admin_token`, or `admin_tls` with `client_ca`.
        admin: Optional<At<SocketAddr>>,
        /// What callers of the admin address must show as `authorization: Bearer …`. Default:
        /// nothing.
        admin_token: Optional<At<Token>>,
        /// What connections to the admin address are secured with. Default: nothing.
        admin_tls: Optional<RawAdminTls>,
        /// The folder of journal and store; starts at the working directory. Default:
        /// `./taximeter-data`.
        data_dir: Optional<At<PathBuf>>,
        /// Threads that carry requests. Default: one per core, at most 4.
        workers: Optional<At<NonZeroUsize>>,
        /// Engines and providers, in order of preference; at least one.
        upstreams: Required<List<RawUpstream>>,
        /// Who may call. Default: everyone, as tenant `default`.
        tenants: Optional<RawTenants>,
        /// Vocabularies of other models than OpenAI's, which are built in; the first that matches
        /// counts. Default: none, so that others' tokens are estimated.
        tokenizers: Optional<List<RawTokenizer>>,
        /// What tokens cost.
        prices: Optional<RawPrices>,
        /// How bills are made.
        billing: Optional<RawBilling>,
        /// How the ledger is written.
        ledger: Optional<RawLedger>,
        /// Where the ledger is sent to. Default: nowhere.
        export: Optional<RawExport>,
        /// What is emitted.
        telemetry: Optional<RawTelemetry>,
        /// `x-taximeter-tokens` and `x-taximeter-cost` on answers: `on` or `off`. Default: `on`.
        receipts: Optional<At<bool>>,
        /// Forward unknown paths too, recorded as unknown: `on` or `off`. Default: `off`.
        passthrough: Optional<At<bool>>,
        /// Labels of the place, put on every record (`k8s.pod.name: …`).
        resource: Optional<Table<Label>>,
        /// Limits by name.
        limits: Optional<RawLimits>,
    }
}

keys! {
    /// One engine or provider.
    RawUpstream {
        /// Unique; shown in records and metrics.
        name: Required<At<Name>>,
        /// `http://` or `https://`, host, port and path; a final `/v1` makes no difference.
        url: Required<At<UpstreamUrl>>,
        /// The engine's habits, by its name in `docs/dialects.md`, or `auto` to find out from its
        /// list of models and its answers. Default: `auto`.
        dialect: Optional<At<Dialect>>,
        /// `gen_ai.provider.name`. Default: the dialect's.
        provider: Optional<At<Name>>,
        /// The models it serves, `*` for any run of characters; the first upstream that matches
        /// serves. A request that names no model goes to the first with `*`. Default: `["*"]`.
        models: Optional<List<At<ModelPattern>>>,
        /// What its streams are asked to say of usage, hidden from clients that did not ask:
        /// `final` at the end, `continuous` in every event, `token_ids` of every token. The latter
        /// two make aborted streams exact; vLLM and SGLang can. Default: `final`.
        usage: Optional<At<UsageAsk>>,
        /// The key that the upstream is shown. Default: none.
        credential: Optional<At<Secret>>,
        /// Hand the client's own credential on, in place of `credential`: `on` or `off`. Default:
        /// `off`.
        forward_credential: Optional<At<bool>>,
        /// Count what the engine reports too, where our count is exact, and keep both: `on` or
        /// `off`. Default: `on`.
        recount: Optional<At<bool>>,
        /// What becomes of an answer whose client leaves within it: `cancel` ends the engine's work,
        /// `drain` reads on for the usage at its end (at most 30 s, and 64 answers at once).
        /// Default: `cancel`.
        on_client_left: Optional<At<OnClientLeft>>,
        /// The GPUs that it runs on. Its requests then owe a share of what these cost, by
        /// `taximeter bill --config`, and nothing by the token, whatever the price book says. A list
        /// where they change, each from its `since` on.
        gpu: Optional<Versions<RawGpu>>,
    }
}

keys! {
    /// GPUs that cost money by the hour.
    RawGpu {
        /// What they are called, such as `H100`.
        r#type: Required<At<Name>>,
        /// How many; 0 from a day on ends it, and requests owe by the token again. Default: 1.
        count: Optional<At<Count>>,
        /// For one of them for an hour, in `prices.currency`, such as `2.50 USD`; whether it works
        /// or waits.
        hourly: Required<At<Money>>,
        /// First day on which they cost something, UTC. Default: since ever.
        since: Optional<At<Date>>,
        /// What a token weighs when the hours are shared out. Default: `{input: 1, output: 4}`, as
        /// hosts of open models price them.
        weights: Optional<RawWeights>,
    }
}

keys! {
    /// What a token weighs: whole numbers, of which one is above 0.
    RawWeights {
        /// One of the input, cached or not.
        input: Required<At<Weight>>,
        /// One of the output.
        output: Required<At<Weight>>,
    }
}

keys! {
    /// One vocabulary.
    RawTokenizer {
        /// The models that it counts for, `*` for any run of characters. Default: `["*"]`.
        models: Optional<List<At<ModelPattern>>>,
        /// A `tokenizer.json` or `tekken.json`, or a model's folder with one in it.
        path: Required<At<PathBuf>>,
        /// The models' own vocabulary is another: counts are flagged as estimates, and models that
        /// are built in keep theirs: `on` or `off`. Default: `off`.
        estimated: Optional<At<bool>>,
    }
}

keys! {
    /// Who may call.
    RawTenants {
        /// Callers without a credential: `refuse`, or the tenant that they are. Default: `refuse`
        /// when there are keys or a header, else `default`.
        unknown: Optional<At<UnknownCaller>>,
        /// API keys.
        keys: Optional<List<RawApiKey>>,
        /// A header that names the tenant.
        header: Optional<RawHeader>,
        /// What is agreed with single tenants; those who are not in here pay list prices.
        list: Optional<List<RawTenant>>,
    }
}

keys! {
    /// What is agreed with one tenant.
    RawTenant {
        /// Unique; as keys and headers call it.
        name: Required<At<Name>>,
        /// Less than list prices, such as `10 %`. Where it changes, a list such as
        /// `[10 %, {rate: 15 %, since: 2026-12-01}]`. Default: nothing.
        discount: Optional<Versions<Share>>,
        /// More than list prices, such as `5 %`, in place of `discount`; a list where it changes.
        /// Default: nothing.
        markup: Optional<Versions<Share>>,
        /// A file of fixed prices in the price book's form; no discount changes them. Default:
        /// none.
        prices: Optional<At<PathBuf>>,
        /// What is free in each calendar month of `billing.zone`; taken off by `taximeter bill
        /// --config`. A list where it changes, each from its `since` on. Default: nothing.
        allowance: Optional<Versions<RawAllowance>>,
        /// Requests that run at once; those beyond it get 429 `concurrency_limited`. Default:
        /// `limits.requests_per_tenant_max`.
        concurrency: Optional<At<NonZeroUsize>>,
    }
}

keys! {
    /// What is free in each calendar month of `billing.zone`: tokens first, then money.
    RawAllowance {
        /// So much of what is owed, in `prices.currency`, such as `5 USD`.
        money: Optional<At<Money>>,
        /// So many tokens by meter, such as `{input: 1000000, output: 100000}`.
        tokens: Optional<ByMeter<Free>>,
        /// First day of the first month with it, in `billing.zone`. Default: since ever.
        since: Optional<At<Date>>,
    }
}

keys! {
    /// One API key; `taximeter keys new` makes them.
    RawApiKey {
        /// Unique; shown in records.
        id: Required<At<Name>>,
        /// Who pays.
        tenant: Required<At<Name>>,
        /// SHA-256 of the key, in 64 hexadecimal digits.
        sha256: Required<At<Sha256>>,
        /// Kept on records.
        labels: Optional<Table<Label>>,
    }
}

keys! {
    /// A header that names the tenant, believed from some peers only.
    RawHeader {
        /// Such as `x-tenant-id`.
        name: Required<At<IdentityHeader>>,
        /// Addresses and networks of those who may set it; at least one. Behind them, who asks is told
        /// in the access log by `x-forwarded-for`, counted from the right.
        trusted_peers: Required<List<At<IpNet>>>,
    }
}

keys! {
    /// What tokens cost.
    RawPrices {
        /// Of costs and bills, by ISO 4217. Prices in another need `exchange`. Default: `USD`.
        currency: Optional<At<Currency>>,
        /// What other currencies are worth in it; of the built-in book, that is USD. Default: none,
        /// so that costs of models with a price in another currency are unknown.
        exchange: Optional<List<RawExchange>>,
        /// `builtin`. Default: `builtin`.
        book: Optional<At<Book>>,
        /// Files of prices laid over the book, side by side: one, or a list; of a folder each
        /// `.yaml` in it.
        overrides: Optional<OneOrMore<At<PathBuf>>>,
        /// Models without a price: `meter` serves them at unknown cost, `refuse` answers 400.
        /// Default: `meter`.
        unknown: Optional<At<UnknownPrice>>,
    }
}

keys! {
    /// How bills are made.
    RawBilling {
        /// The time zone, by its name in the IANA database such as `Europe/Berlin`, whose months,
        /// days and hours bills and statements are of, and in which allowances begin anew each
        /// month. Exports are by UTC. Default: `UTC`.
        zone: Optional<At<TimeZone>>,
    }
}

keys! {
    /// What one of another currency is worth, by the day of admission.
    RawExchange {
        /// The other currency.
        from: Required<At<Currency>>,
        /// Money in `prices.currency` for one of it, above 0, exact.
        rate: Required<At<Rate>>,
        /// First day, UTC. Default: since ever.
        since: Optional<At<Date>>,
    }
}

keys! {
    /// How the ledger is written.
    RawLedger {
        /// When an entry counts as written: `os` when the kernel has it, `group` when the disk has
        /// it within 10 ms, `sync` when the disk has it. Default: `group`.
        durability: Optional<At<Durability>>,
        /// A journal that is damaged before its end: `strict` starts nothing and says where,
        /// `salvage` leaves out what cannot be read, keeps the damaged file, and says what is
        /// missing. What was not synced when the power failed is its end, with `group` and `sync`;
        /// with `os` nobody can tell. Default: `strict`.
        recovery: Optional<At<OnDamage>>,
        /// When entries cannot be written: `refuse` answers 503 `ledger_unavailable`, `serve` goes
        /// on while half of `ledger_queue_bytes_max` has room. What is queued is written later, in
        /// order, and lost if the gateway dies before. Default: `refuse`.
        unavailable: Optional<At<OnUnavailable>>,
        /// Days for which the journal is kept once the store has it; at most 36500. Default: 400.
        keep_days: Optional<At<NonZeroU32>>,
        /// What the data directory may take, in bytes: less than the volume that it is on. From 80 %
        /// on files of the journal go before their days are over, as soon as the store has them;
        /// from 95 % on requests get 503 `ledger_unavailable`. Default: no maximum.
        dir_bytes_max: Optional<At<NonZeroUsize>>,
        /// Where requests can be asked for: `sqlite` in the data directory, or a database that
        /// several gateways share, `postgres://USER:PASSWORD@HOST[:PORT]/DATABASE`, with
        /// `?sslmode=` disable, prefer, require or verify-full and `&sslrootcert=FILE`. Default:
        /// `sqlite`.
        store: Optional<At<Store>>,
    }
}

keys! {
    /// Where the ledger is sent to.
    RawExport {
        /// A receiver of CloudEvents.
        push: Optional<RawPush>,
    }
}

keys! {
    /// A receiver of CloudEvents, such as OpenMeter: each request that ends is sent, in order and at
    /// least once.
    RawPush {
        /// Where batches are posted, such as `https://openmeter.example/api/v1/events`.
        url: Required<At<Receiver>>,
        /// Sent as `authorization: Bearer …`. Default: nothing.
        token: Optional<At<Secret>>,
        /// Events in one batch. Default: 100.
        batch_max: Optional<At<NonZeroUsize>>,
    }
}

keys! {
    /// What is emitted.
    RawTelemetry {
        /// Generation of the OpenTelemetry GenAI conventions: `v1_41`, `latest`, or `both`, each
        /// under its own names. Default: `v1_41`, or what `OTEL_SEMCONV_STABILITY_OPT_IN` says.
        genai: Optional<At<GenAi>>,
        /// Tenants with a label of their own in metrics; the rest are `other`. Default: 500.
        tenants_max: Optional<At<NonZeroUsize>>,
        /// `otel_scope_name` and `otel_scope_version` on every series of `/metrics`: `on` or `off`.
        /// Default: `on`.
        scope_labels: Optional<At<bool>>,
        /// Native buckets in all histograms, for Prometheus servers that scrape them: `on` or `off`.
        /// Default: `off`.
        native_histograms: Optional<At<bool>>,
        /// Requests that have a line in the log when they end: `off`, `errors` or `all`.
        /// Default: `off`.
        access_log: Optional<At<AccessLog>>,
        /// A collector that metrics are pushed to. Default: what the standard's `OTEL_…` variables
        /// say, else none.
        otlp: Optional<RawOtlp>,
        /// Spans of requests, pushed to the collector; `{}` takes the defaults. Default: none, or
        /// what the standard's `OTEL_…` variables say.
        traces: Optional<RawTraces>,
        /// What is said in prompts and answers, on those spans. Default: nothing of it.
        content: Optional<RawContent>,
    }
}

keys! {
    /// What of prompts and answers is told, where a trace is kept from its start. Never in lines of
    /// the log or metrics.
    RawContent {
        /// `spans`, on those of engines; `events`, as log records of their own, where these are pushed;
        /// `both`; `off`. Default: `off`, or what
        /// `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` says.
        capture: Optional<At<Capture>>,
        /// Most bytes of one attribute, from 256 to 262144; longer texts are cut. Default: 32768.
        bytes_max: Optional<At<NonZeroUsize>>,
        /// Regular expressions; what they match is replaced. Default: none.
        redact: Optional<List<At<Pattern>>>,
        /// Replace API keys, tokens, private keys and e-mail addresses too: `on` or `off`.
        /// Default: `on`.
        redact_known: Optional<At<bool>>,
        /// Whose requests, by the names of tenants. Default: everybody's.
        tenants: Optional<List<At<Name>>>,
    }
}

keys! {
    /// Which requests have spans.
    RawTraces {
        /// Part of the traces that begin here, by their ids; one that a caller has begun is kept
        /// where the caller keeps it. Default: 1, or what `OTEL_TRACES_SAMPLER` says.
        ratio: Optional<At<Ratio>>,
        /// What is kept whatever ratio and caller say.
        always: Optional<RawAlways>,
    }
}

keys! {
    /// Requests whose spans are kept once they have ended.
    RawAlways {
        /// Those that failed: `on` or `off`. Default: `on`.
        errors: Optional<At<bool>>,
        /// Streams whose first token came later than this. Default: 5.
        slow_first_token_seconds: Optional<At<Duration>>,
        /// Streams with a longer gap between two tokens. Default: 5.
        stall_seconds: Optional<At<Duration>>,
    }
}

keys! {
    /// A collector of OpenTelemetry's. Each key wins over the `OTEL_…` variables that say the same;
    /// `OTEL_SDK_DISABLED=true` ends all pushing.
    RawOtlp {
        /// Such as `http://collector:4317`; over HTTP, what stands in front of `/v1/metrics` and
        /// the like.
        endpoint: Optional<At<Receiver>>,
        /// `grpc` or `http/protobuf`. Default: `grpc` to port 4317, else `http/protobuf`.
        protocol: Optional<At<OtlpProtocol>>,
        /// Sent with each push, such as `{api-key: "${env:KEY}"}`. Default: none.
        headers: Optional<Table<HeaderText>>,
        /// `gzip` or `none`. Default: `gzip`.
        compression: Optional<At<Gzip>>,
        /// Time for one push and its answer. Default: 10.
        timeout_seconds: Optional<At<Duration>>,
        /// A file of certificates, in PEM, that are trusted in place of the system's. Default: none.
        ca: Optional<At<PathBuf>>,
        /// A file with a certificate, in PEM, that is shown to a collector that asks who pushes; with
        /// `key`. Default: none.
        cert: Optional<At<PathBuf>>,
        /// A file with its key, in PEM.
        key: Optional<At<PathBuf>>,
        /// Time between two pushes of metrics. Default: 60.
        interval_seconds: Optional<At<Duration>>,
        /// What their numbers count from: `cumulative` from the gateway's start, `delta` from the
        /// push before, as Datadog wants it. Default: `cumulative`.
        temporality: Optional<At<Temporality>>,
        /// Which buckets histograms have: `explicit`, those of the conventions; `exponential`, each bound
        /// 9 % above the one before. Default: `explicit`.
        histograms: Optional<At<HistogramBuckets>>,
        /// Log lines are pushed there as well: `on` or `off`. Default: `off`, or what
        /// `OTEL_LOGS_EXPORTER` says.
        logs: Optional<At<bool>>,
    }
}
