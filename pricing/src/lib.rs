//! `Usage` × `PriceBook` → `Cost`: what the tokens of one request cost.
//!
//! Invariants: money is exact decimal and never a float; unknown is never zero; a price in the book
//! that is zero is free on purpose; an overflow is an error. Refuses to know HTTP, provider JSON
//! and tenants.
//!
//! # The book
//!
//! The prices that come with the program are data in `pricing/data/`, one file a provider. A file
//! of the operator's own, in the same form, is laid over them:
//!
//! ```
//! use taximeter_pricing::PriceBook;
//!
//! let book = PriceBook::builtin()?.with_overrides(
//!     r#"
//! version: 2026-11-20             # names this file on every record; `undated` without
//! currency: USD                   # the only one so far
//! cache_without_rate: input       # what cached input without a rate costs; default: unknown
//! models:
//! - model: llama-3.3-70b          # whoever answers; `provider: vllm` would narrow it
//!   aliases: [meta-llama/Llama-3.3-70B-Instruct]
//!   rates: {input: 0.20, output: 0.60}            # USD per 1,000,000 tokens
//! - model: llama-3.3-70b          # a later row of the same model replaces it from that day, UTC
//!   from: 2027-01-01
//!   rates: {input: 0.18, cache_read: 0.02, output: 0.55, reasoning: 0.55}
//! - model: gpt-5.4                # instead of OpenAI's list price
//!   provider: openai
//!   rates: {input: 2.40, cache_read: 0.24, output: 14.40}
//!   tiers:                        # by the service tier of the answer
//!     batch: {input: 1.20, cache_read: 0.12, output: 7.20}
//!   long_context:                 # for the whole request, from its input tokens
//!   - over: 272000                # or `at_least:`
//!     rates: {input: 4.80, cache_read: 0.48, output: 21.60}
//! - model: bge-m3
//!   input_only: true              # an embedding has no output
//!   rates: {input: 0.01}
//! - model: night-owl
//!   rates: {input: 1, output: 2}
//!   off_peak:                     # instead of all others, by the UTC time of admission
//!     rates: {input: 0.50, output: 1}
//!     windows:
//!     - days: [mon, tue, wed, thu, fri]
//!       hours: ["00:00-06:00", "22:00-24:00"]
//! "#,
//!     "prices.yaml",
//! )?;
//! assert_eq!(book.version(), "overrides@2026-11-20+builtin@2026-11-20");
//! # Ok::<(), taximeter_pricing::BookError>(())
//! ```

mod book;
mod builtin;
mod cost;
mod file;
mod per_million;
mod row;
mod usage;

pub use book::{PriceBook, Query};
pub use cost::{Cost, CostLine, PriceError};
pub use file::BookError;
pub use row::{
    CacheWithoutRate, Card, Currency, Day, Hours, LongContext, MeterName, OffPeak, Rates, Row,
    ServiceTier, Threshold, Tiers, Window,
};
pub use usage::{ByModality, Flag, Member, Modalities, Pass, Source, Usage};
