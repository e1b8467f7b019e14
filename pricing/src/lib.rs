//! The cost of one request: `Usage` × `PriceBook` → `Cost`.
//!
//! Begin with `lookup.rs` (which row prices an answer), then `tariff.rs` (which of its rates), then
//! `cost.rs` (the arithmetic).
//!
//! # Invariants
//!
//! - Money is an exact decimal and never a float. An overflow is an error.
//! - Unknown is never zero. A price of zero in the book means free.
//! - One set of rates prices a request. What this set lacks is unknown (`tariff.rs`).
//! - Each token is on exactly one meter (`quantities.rs`). Cached tokens are part of the input, and
//!   reasoning is part of the output.
//! - Results depend on the arguments alone. Which row a name led to is remembered
//!   (`lookup/outcomes.rs`), for the same book, day and provider.
//!
//! This crate knows no HTTP, provider JSON or tenants.
//!
//! # The book
//!
//! The built-in prices are data in `pricing/data/`, one file per provider. The operator's own files
//! have the same format and override them:
//!
//! ```
//! use taximeter_pricing::PriceBook;
//!
//! let book = PriceBook::builtin()?.with_overrides(
//!     r#"
//! version: 2026-11-20             # names this file on every record; default: `undated`
//! currency: USD                   # of every price in the file; default: USD
//! cache_without_rate: input       # the price of cached input without a rate; default: unknown
//! modality_without_rate: text     # the same for audio, video and generated images
//! models:
//! - model: llama-3.3-70b          # for any provider; `provider: vllm` would narrow it
//!   aliases: [meta-llama/Llama-3.3-70B-Instruct]
//!   rates: {input: 0.20, output: 0.60}            # per 1,000,000 tokens
//! - model: llama-3.3-70b          # a later row for the same model replaces it from that day, UTC
//!   from: 2027-01-01              # can also stand once for the whole file, next to `version`
//!   until: 2028-01-01             # the row ends before that day
//!   rates: {input: 0.18, cache_read: 0.02, output: 0.55, reasoning: 0.55}
//! - model: gpt-5.4                # instead of OpenAI's list price
//!   provider: openai
//!   rates: {input: 2.40, cache_read: 0.24, output: 14.40, web_search_requests: 0.01}
//!   tiers:                        # by the service tier of the answer; no other set stands in
//!     batch: {input: 1.20, cache_read: 0.12, output: 7.20}
//!   long_context:                 # for the whole request, from this number of input tokens
//!   - over: 272000                # or `at_least:`
//!     rates: {input: 4.80, cache_read: 0.48, output: 21.60}
//!     tiers: {batch: {input: 2.40, cache_read: 0.24, output: 10.80}}
//!   when:                         # by what the answer reports about itself
//!     inference_geo: {us: {times: 1.1}}           # every price of tokens
//!     speed: {fast: {rates: {input: 5, cache_read: 0.50, output: 30}}}
//! - model: our-omni               # without a price for audio, the cost of audio is unknown
//!   rates: {input: 1, input_audio: 10, input_image: 1, output: 4, output_audio: 20}
//! - model: whisper                # other units have a price per unit
//!   rates: {audio_seconds: 0.0001}
//! - model: our-rerank
//!   input_only: true              # it generates nothing
//!   rates: {input: 0, search_units: 0.002}        # 0 means free
//! - model: night-owl
//!   rates: {input: 1, output: 2, requests: 0.001}
//!   off_peak:                     # instead of `rates`, by the UTC time of admission
//!     rates: {input: 0.50, output: 1}
//!     windows:
//!     - days: [mon, tue, wed, thu, fri]
//!       hours: ["00:00-06:00", "22:00-24:00"]
//! "#,
//!     "prices.yaml",
//! )?;
//! assert_eq!(book.version(), "overrides@2026-11-20+builtin@2026-11-25");
//! # Ok::<(), taximeter_pricing::BookError>(())
//! ```

mod book;
mod bound;
mod builtin;
mod cost;
mod currency;
mod dated;
mod diff;
mod exact;
mod file;
mod gpu;
mod import;
mod lookup;
mod meter;
mod name;
mod off_peak;
mod priced;
mod quantities;
mod rates;
mod row;
mod rule;
mod tariff;
mod terms;
mod usage;
mod write;

pub use book::{PriceBook, Query};
pub use currency::{Currency, ExchangeRate};
pub use dated::Dated;
pub use diff::{Change, Difference, PriceChange, diff};
pub use file::BookError;
pub use gpu::{GpuPrice, TokenWeights};
pub use import::{ImportError, Imported, LeftOut, import};
pub use lookup::{Everywhere, Found, NoRow};
pub use meter::MeterName;
pub use off_peak::{Day, Hours, OffPeak, Window};
pub use priced::{Cost, CostLine, PriceError, Unpriced};
pub use rates::{Rates, list_price};
pub use row::{
    CacheWithoutRate, Effect, LongContext, ModalityWithoutRate, RateCard, Row, ServiceTier,
    Threshold, Tiers, When,
};
pub use rule::{PriceMatch, Rule};
pub use tariff::{Combination, CombinedRates};
pub use terms::{Allowance, Contract, Money};
pub use usage::{ByModality, Condition, Flag, Member, Modalities, Pass, Source, Usage};
