//! The keys under `tenants`.

use std::path::PathBuf;

use ipnet::IpNet;
use jiff::civil::Date;
use taximeter_pricing::Money;

use crate::json_schema::{required, without};
use crate::model::UnknownCaller;
use crate::numbers::AtLeast;
use crate::reader::{ByMeter, List, Optional, Required, Spanned, Table, keys};
use crate::values::{IdentityHeader, Label, Name, Sha256};
use crate::versions::{DatedPercent, Versions};

keys! {
    /// Who may call.
    RawTenants {
        /// Callers without a credential: `refuse`, or the tenant that they are.
        unknown: Optional<Spanned<UnknownCaller>> =
            without("`refuse` where there are keys or a header, else `default`").example("guests"),
        /// API keys.
        keys: Optional<List<RawApiKey>> = without("no keys"),
        /// A header that names the tenant, from trusted peers only.
        header: Optional<RawHeader> = without("no header"),
        /// Terms of single tenants. All other tenants pay list prices.
        list: Optional<List<RawTenant>> = without("list prices for all tenants"),
    }
}

keys! {
    /// The terms of one tenant.
    RawTenant {
        /// The tenant's name, as keys and headers have it. No two entries have the same.
        name: Required<Spanned<Name>> = required().example("acme"),
        /// A percentage off list prices. Where it changes, a list in the order of `since`.
        discount: Optional<Versions<DatedPercent>> = without("no discount").example("10 %"),
        /// A percentage on top of list prices, in place of `discount`. Where it changes, a list in
        /// the order of `since`.
        markup: Optional<Versions<DatedPercent>> = without("no markup").example("5 %"),
        /// A file of fixed prices, in the form of the price book. A discount does not change them.
        prices: Optional<Spanned<PathBuf>> = without("list prices").example("acme-prices.yaml"),
        /// What is free in each calendar month of `billing.zone`. `taximeter bill --config FILE`
        /// subtracts it. Where it changes, a list in the order of `since`.
        allowance: Optional<Versions<RawAllowance>> = without("no allowance"),
        /// The most requests of this tenant that run at once. Taximeter refuses every further
        /// request with 429 `concurrency_limited`.
        concurrency: Optional<Spanned<AtLeast<1>>> =
            without("`limits.requests_per_tenant_max`").example("15"),
    }
}

keys! {
    /// What is free in each month: tokens first, then money.
    RawAllowance {
        /// Free money, in `prices.currency`.
        money: Optional<Spanned<Money>> = without("no free money").example("5 USD"),
        /// Free tokens by meter.
        tokens: Optional<ByMeter<AtLeast<0>>> =
            without("no free tokens").example(r#"{"input": 1000000, "output": 100000}"#),
        /// The first day of the first month with this allowance, in `billing.zone`.
        since: Optional<Spanned<Date>> = without("from the beginning").example("2026-11-01"),
    }
}

keys! {
    /// One API key. `taximeter keys new` makes it.
    RawApiKey {
        /// The key's name in records. No two keys have the same.
        id: Required<Spanned<Name>> = required().example("acme-prod"),
        /// The tenant that pays.
        tenant: Required<Spanned<Name>> = required().example("acme"),
        /// The SHA-256 of the key, in 64 hexadecimal digits.
        sha256: Required<Spanned<Sha256>> = required()
            .example("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"),
        /// Labels that the records of this key carry.
        labels: Optional<Table<Label>> = without("no labels").example(r#"{"team": "search"}"#),
    }
}

keys! {
    /// A header that names the tenant.
    RawHeader {
        /// The name of the header.
        name: Required<Spanned<IdentityHeader>> = required().example("x-tenant-id"),
        /// The addresses and networks that may set the header; at least one. From these peers
        /// Taximeter also takes the client's address out of `x-forwarded-for`, for the access log.
        trusted_peers: Required<List<Spanned<IpNet>>> = required().example(r#"["10.0.0.0/8"]"#),
    }
}
