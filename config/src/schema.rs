//! Every key of the file: its type, its default, an example, and what it means. The reader, the
//! JSON Schema and the reference page are made from these tables, in this order.
//!
//! Strings may hold `${env:NAME}` and `${file:PATH}`. The path of a file to read is relative to the
//! configuration's folder.

mod admin;
mod dimensions;
mod fleet;
mod ledger;
mod prices;
mod telemetry;
mod tenants;

use std::path::PathBuf;

use jiff::civil::Date;
use taximeter_dimensions::Keep;
use taximeter_meter::{Dialect, UsageAsk};
use taximeter_pricing::Money;

use crate::addresses::RawAddresses;
use crate::cors::Origin;
use crate::forward::{ForwardCredential, HeaderPattern};
use crate::json_schema::{default, required, without};
use crate::limits::RawLimits;
use crate::model::{ModelPattern, OnClientLeft, UpstreamUrl};
use crate::numbers::{AtLeast32, Whole};
use crate::reader::{List, Optional, Required, Spanned, Table, keys};
use crate::secret::Secret;
use crate::tls::{RawAdminTls, RawTls};
use crate::values::{BearerToken, Label, Name};
use crate::versions::Versions;

pub(crate) use admin::RawAdminToken;
pub(crate) use dimensions::{RawDimensions, RawPlace, RawTag};
pub(crate) use fleet::{RawEngines, RawFleet, RawGpuExporters, RawHosts, RawMemory};
pub(crate) use ledger::{RawExport, RawLedger};
pub(crate) use prices::{RawBilling, RawExchange, RawPrices};
pub(crate) use telemetry::{RawContent, RawOtlp, RawTelemetry, RawTraces};
pub(crate) use tenants::{RawAllowance, RawApiKey, RawHeader, RawTenant, RawTenants};

keys! {
    /// The keys at the top level.
    RawConfig {
        /// The address where clients connect, with HTTP/1.1 or HTTP/2 (h2c), or a list of addresses.
        listen: Optional<RawAddresses> =
            default("127.0.0.1:8080").example(r#"["0.0.0.0:8080", "[::]:8080"]"#),
        /// TLS for client connections.
        tls: Optional<RawTls> = without("no TLS"),
        /// The address of metrics, health checks, the API and the console, or a list of addresses.
        /// An address that is not loopback needs `admin_token`, `admin_tokens`, or `admin_tls` with
        /// `client_ca`.
        admin: Optional<RawAddresses> =
            default("127.0.0.1:9464").example("127.0.0.1:9000"),
        /// The token that callers of the admin address send as `authorization: Bearer …`; at least
        /// 16 characters.
        admin_token: Optional<Spanned<BearerToken>> =
            without("no token").example("${env:TAXIMETER_ADMIN_TOKEN}"),
        /// Further tokens of the admin address, each with what it may do. `admin_token` may read.
        admin_tokens: Optional<List<RawAdminToken>> = without("no further tokens"),
        /// TLS for the admin address.
        admin_tls: Optional<RawAdminTls> = without("no TLS"),
        /// The folder of the journal and the SQLite store, relative to the working directory.
        data_dir: Optional<Spanned<PathBuf>> =
            default("./taximeter-data").example("/var/lib/taximeter"),
        /// The threads that carry requests.
        workers: Optional<Spanned<Whole<1, 1024>>> =
            without("one per CPU core, at most 4").example("8"),
        /// The engines and providers, in order of preference; at least one. The first whose
        /// `models` match the request's model serves it.
        upstreams: Required<List<RawUpstream>> = required(),
        /// Who may call, and which tenant a caller is.
        tenants: Optional<RawTenants> = without("every caller is the tenant `default`"),
        /// Vocabularies for models whose tokenizer is not built in. The first whose `models` match
        /// counts. Taximeter has OpenAI's vocabularies built in.
        tokenizers: Optional<List<RawTokenizer>> =
            without("Taximeter estimates the tokens of other models"),
        /// Where requests say what they are part of.
        dimensions: Optional<RawDimensions> = without("the names that Taximeter knows"),
        /// What records have of sessions, agents and turns: `keep` their names, `hash` them with a
        /// key, or `off`.
        sessions: Optional<Spanned<Keep>> = default("keep").example("hash"),
        /// What records have of end users: `keep` their names, which often are addresses, `hash`
        /// them with a key, or `off`.
        end_user: Optional<Spanned<Keep>> = default("hash").example("off"),
        /// What tokens cost.
        prices: Optional<RawPrices> = without("the built-in price book"),
        /// How Taximeter makes bills.
        billing: Optional<RawBilling> = without("bills in UTC"),
        /// How Taximeter writes and keeps the ledger.
        ledger: Optional<RawLedger> = without("the defaults of its keys"),
        /// Where Taximeter sends the records of ended requests.
        export: Optional<RawExport> = without("nowhere"),
        /// Metrics, traces and logs.
        telemetry: Optional<RawTelemetry> = without("the defaults of its keys"),
        /// Whether answers that are not streams carry `x-taximeter-tokens` and `x-taximeter-cost`.
        receipts: Optional<Spanned<bool>> = default("on").example("off"),
        /// Whether Taximeter forwards paths that it does not know, and other methods of those that
        /// it knows. It records their requests as unknown.
        passthrough: Optional<Spanned<bool>> = default("off").example("on"),
        /// Which headers of requests stay behind, for every upstream without a `forward` of its own.
        forward: Optional<RawForward> = without("the defaults of its keys"),
        /// Web pages of other origins that may use the gateway.
        cors: Optional<RawCors> = without(
            "engines answer for themselves, except where a page could spend a `credential` of the gateway"
        ),
        /// What Taximeter reads of engines, GPUs and hosts while it runs. `{}` takes all defaults.
        fleet: Optional<RawFleet> = without("Taximeter reads nothing of them"),
        /// Labels that every record carries, such as where the gateway runs.
        resource: Optional<Table<Label>> =
            without("no labels").example(r#"{"k8s.pod.name": "engine-0"}"#),
        /// Limits of the gateway, each with a name.
        limits: Optional<RawLimits> = without("the defaults of its keys"),
    }
}

keys! {
    /// One engine or provider.
    RawUpstream {
        /// The name in records and metrics. No two upstreams have the same.
        name: Required<Spanned<Name>> = required().example("local"),
        /// The base URL, with or without a final `/v1`.
        url: Required<Spanned<UpstreamUrl>> = required().example("http://127.0.0.1:8000"),
        /// The engine's kind. With `auto`, the host of the URL names it, or an engine that owns every
        /// model in its list of models.
        dialect: Optional<Spanned<Dialect>> = default("auto").example("vllm"),
        /// The value of `gen_ai.provider.name` in telemetry and records.
        provider: Optional<Spanned<Name>> =
            without("the provider of the dialect; `unknown` if nothing names that").example("my-vllm"),
        /// The models that this upstream serves. `*` stands for any run of characters. A request that
        /// names no model goes to the first upstream with `*`, or else to the first of all.
        models: Optional<List<Spanned<ModelPattern>>> =
            default(r#"["*"]"#).example(r#"["gpt-*", "o4-*"]"#),
        /// The usage that Taximeter asks a stream for: `final` at its end, `continuous` in every
        /// event, `token_ids` for every token. Clients do not see what they did not ask for.
        /// `continuous` and `token_ids` make the usage of aborted streams exact. Only vLLM and
        /// SGLang take them.
        usage: Optional<Spanned<UsageAsk>> = default("final").example("continuous"),
        /// The API key that Taximeter sends to this upstream.
        credential: Optional<Spanned<Secret>> = without("no key").example("${env:OPENAI_API_KEY}"),
        /// Whether Taximeter sends the client's own credential to this upstream: `auto` does where
        /// there is no `credential`. `on` cannot stand beside `credential`. Taximeter never sends a
        /// key of its own tenants.
        forward_credential: Optional<Spanned<ForwardCredential>> = default("auto").example("off"),
        /// Which headers of requests stay behind here, in place of `forward` at the top level.
        forward: Optional<RawForward> = without("`forward` at the top level"),
        /// Whether Taximeter also counts the tokens that the engine reports, where its own count is
        /// exact. Records have both numbers.
        recount: Optional<Spanned<bool>> = default("on").example("off"),
        /// What Taximeter does with an answer whose client has left: `cancel` ends the engine's
        /// work, `drain` reads the usage at its end, for at most 30 seconds and 64 answers at once.
        on_client_left: Optional<Spanned<OnClientLeft>> = default("cancel").example("drain"),
        /// The GPUs that this upstream runs on. Its requests then owe a share of the GPU hours in
        /// place of a price per token; `taximeter bill --config FILE` computes it. Where the GPUs
        /// change, a list in the order of `since`.
        gpu: Optional<Versions<RawGpu>> = without("a price per token"),
    }
}

keys! {
    /// Which headers of requests go on to an upstream.
    RawForward {
        /// Names of headers that stay behind. `*` at the end stands for the rest of a name. They add
        /// to the default. An empty list drops nothing.
        drop: Optional<List<Spanned<HeaderPattern>>> = without(
            "`baggage`, `forwarded`, `x-forwarded-*`, `x-real-ip` and the like where the upstream has \
             a `credential`; there also `tracestate` if its host is public"
        ).example(r#"["x-internal-*"]"#),
    }
}

keys! {
    /// Web pages of other origins.
    RawCors {
        /// The origins that may send requests and read answers, as browsers write them; at least one.
        /// `*` is every page.
        origins: Required<List<Spanned<Origin>>> =
            required().example(r#"["https://app.example"]"#),
    }
}

keys! {
    /// GPUs that cost money by the hour.
    RawGpu {
        /// The name of the GPU type.
        r#type ("type"): Required<Spanned<Name>> = required().example("H100"),
        /// How many GPUs. With 0, requests from that day on owe a price per token again.
        count: Optional<Spanned<AtLeast32<0>>> = default("1").example("2"),
        /// What one GPU costs for one hour, busy or idle, in `prices.currency`.
        hourly: Required<Spanned<Money>> = required().example("2.50 USD"),
        /// The first day with these GPUs, UTC.
        since: Optional<Spanned<Date>> = without("from the beginning").example("2026-11-01"),
        /// How much each token counts when Taximeter divides the GPU hours among requests.
        weights: Optional<RawWeights> = without("input 1, output 4"),
    }
}

keys! {
    /// The weights of tokens; at least one is above 0.
    RawWeights {
        /// The weight of one input token, cached or not.
        input: Required<Spanned<AtLeast32<0>>> = required().example("1"),
        /// The weight of one output token.
        output: Required<Spanned<AtLeast32<0>>> = required().example("3"),
    }
}

keys! {
    /// One vocabulary.
    RawTokenizer {
        /// The models that this vocabulary counts for. `*` stands for any run of characters.
        models: Optional<List<Spanned<ModelPattern>>> =
            default(r#"["*"]"#).example(r#"["llama-*"]"#),
        /// A `tokenizer.json`, a `tekken.json`, or the model's folder with one of them.
        path: Required<Spanned<PathBuf>> = required().example("/models/llama-3.1-8b"),
        /// Whether the models have another vocabulary than this one. Taximeter then flags the
        /// counts as `estimated`, and does not use this vocabulary for models that are built in.
        estimated: Optional<Spanned<bool>> = default("off").example("on"),
    }
}
