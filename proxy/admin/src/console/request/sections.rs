//! The parts of the page of one request.

use maud::{Markup, html};
use taximeter_ledger::{
    Correction, Record, RecordCost, RecordLine, RecordUsage, UnknownCost, UnknownCostReason,
};
use taximeter_pricing::{Flag, Member, Source};

use crate::console::page::REQUESTS;
use crate::console::request::beneath::Beneath;
use crate::console::request::timeline::timeline;
use crate::console::requests::end;
use crate::console::session::link;
use crate::console::text::{
    count, count_or_unknown, money, name, name_or_none, price_of, quantity, seconds, sentence,
    unknown,
};
use crate::console::view::{View, segment};
use crate::problem::ApiError;
use crate::records::RecordAnswer;

/// Decimal places of amounts. The cost of one request is small.
const PLACES: u32 = 8;

pub(super) fn main(
    found: &RecordAnswer,
    beneath: Result<&Option<Beneath>, &ApiError>,
    view: &View,
) -> Markup {
    let record = &found.record;
    html! {
        p.crumb { a href=(view.to(REQUESTS, &[])) { "Requests" } }
        h1 { "Request of " (name(record.tenant.as_str())) }
        (meter(found, view))
        (timeline(record, view))
        div.pair {
            (usage(&found.usage))
            (lines(found))
        }
        (corrections(&found.corrections, view))
        @match beneath {
            Ok(Some(beneath)) => (beneath.section(record, view)),
            Ok(None) => {},
            Err(fault) => p { (sentence(&fault.to_string())) },
        }
        (session(record, view))
        (identity(record))
        p.elsewhere {
            "The same record for programs: "
            a href={ (view.root().to("/api/v1/records/")) (segment(&record.id.to_string())) } { "JSON" }
        }
    }
}

/// The cost, after corrections.
fn meter(found: &RecordAnswer, view: &View) -> Markup {
    let (record, usage) = (&found.record, &found.usage);
    html! {
        section.meter aria-labelledby="cost" {
            div {
                h2 #cost { "Cost" @if !found.corrections.is_empty() { " after correction" } }
                p.digits {
                    @match &found.cost {
                        Some(cost) => {
                            @if cost.at_least { "≥ " }
                            span data-total="cost" { (money(cost.amount, PLACES)) }
                            " " span.currency { (name(&cost.currency)) }
                        }
                        None => (unknown()),
                    }
                }
                p.when { "Admitted at " (view.precise_time(record.started_at)) " " (view.zone_name()) }
            }
            dl.readouts {
                div { dt { "End" } dd { (end(record)) } }
                div { dt { "Duration" } dd { (seconds(record.timing.duration)) } }
                div { dt { "Input tokens" } dd { (count_or_unknown(usage.input_tokens)) } }
                div { dt { "Output tokens" } dd { (count_or_unknown(usage.output_tokens)) } }
                div { dt { "Source" } dd { (usage.source.as_str()) } }
                div { dt { "Upstream" } dd { (name(&record.upstream)) } }
            }
        }
    }
}

fn usage(usage: &RecordUsage) -> Markup {
    let counted = usage.counted.unwrap_or_default();
    let members = [
        ("Input", Member::InputTokens, usage.input_tokens, counted.input_tokens),
        ("· cache read", Member::CacheReadInputTokens, usage.cache_read_input_tokens, None),
        ("· cache write", Member::CacheWriteInputTokens, usage.cache_write_input_tokens, None),
        ("Output", Member::OutputTokens, usage.output_tokens, counted.output_tokens),
        ("· reasoning", Member::ReasoningOutputTokens, usage.reasoning_output_tokens, None),
    ];
    let others = usage.modalities.iter().flatten();
    html! {
        section aria-labelledby="usage" {
            h2 #usage { "Usage" }
            div.scroll { table {
                caption { "A line with a dot is a part of the line above it." }
                thead { tr {
                    th scope="col" { "Tokens" }
                    th.number scope="col" { "Billed" }
                    th scope="col" { "Source" }
                    th.number scope="col" { "Taximeter’s count" }
                    th scope="col" { "Flags" }
                } }
                tbody {
                    @for (word, member, tokens, ours) in members {
                        tr {
                            th scope="row" { (word) }
                            td.number { (count_or_unknown(tokens)) }
                            td { (source(usage, member)) }
                            td.number {
                                @if let Some(ours) = ours { (count(ours)) } @else { "–" }
                            }
                            td { (flags(usage.flagged.get(&member).map_or(&[], Vec::as_slice))) }
                        }
                    }
                    @for (kind, tokens) in others {
                        tr {
                            th scope="row" { "· " (name(&kind.replace('_', " "))) }
                            td.number { (count(*tokens)) }
                            td { (Source::Reported.as_str()) }
                            td.number { "–" }
                            td {}
                        }
                    }
                    @for (unit, number) in &usage.units {
                        tr {
                            th scope="row" { (name(&unit.replace('_', " "))) }
                            td.number { (quantity(*number)) }
                            td { "–" }
                            td.number { "–" }
                            td {}
                        }
                    }
                }
            } }
            @if !usage.flags.is_empty() { p { "All flags: " (flags(&usage.flags)) "." } }
            @if let Some(passes) = usage.passes.as_ref().filter(|passes| !passes.is_empty()) {
                p {
                    "Further model runs in this request: " (count(passes.len() as u64))
                    ". Their tokens are in the cost, but not in this table."
                }
            }
        }
    }
}

/// The source of one number.
fn source(usage: &RecordUsage, member: Member) -> &'static str {
    usage.sources.get(&member).map_or("–", |source| source.as_str())
}

fn flags(flags: &[Flag]) -> Markup {
    html! {
        @for (index, flag) in flags.iter().enumerate() {
            @if index > 0 { ", " }
            (meaning(*flag))
        }
    }
}

/// The meaning of a flag.
const fn meaning(flag: Flag) -> &'static str {
    match flag {
        Flag::Estimated => "estimated",
        Flag::Inconsistent => "inconsistent: a part is larger than its whole",
        Flag::Hidden => "includes hidden output",
        Flag::TotalMismatch => "the reported total is smaller than its parts",
        Flag::Changed => "the engine reported a smaller number later",
        Flag::Invalid => "the engine reported an invalid number",
        Flag::Zero => "the engine reported 0 for text that it had",
        Flag::Missing => "the engine did not report it",
        Flag::Context => "a part of the prompt was not in the request",
        Flag::TokenIds => "counted by token ids",
        Flag::Differs => "Taximeter’s count differs by more than 10 %",
        Flag::Pending => "the engine continued the answer in the background",
        Flag::MaybeUnsent => "the request may not have reached the engine",
        Flag::Clock => "the system clock changed during the request; the duration is right",
    }
}

fn lines(found: &RecordAnswer) -> Markup {
    let cost = found.cost.as_ref();
    html! {
        section aria-labelledby="price" {
            h2 #price { "Price" }
            @if RecordCost::is_unknown(cost) { (why_unknown(&found.record, cost.is_some())) }
            @if let Some(cost) = cost { (cost_table(cost)) }
        }
    }
}

/// Why the cost is unknown, and whether a part of it is known.
fn why_unknown(record: &Record, is_known_in_part: bool) -> Markup {
    html! {
        p {
            "The cost is " (unknown()) "."
            @if is_known_in_part { " It is at least the sum of these lines." }
            @if record.cost_unknown.is_empty() {
                " The price book has no price for it, or the usage is unknown."
            }
        }
        @if !record.cost_unknown.is_empty() {
            ul { @for reason in &record.cost_unknown { li { (why(reason)) } } }
        }
    }
}

fn why(reason: &UnknownCost) -> Markup {
    let words = match reason.reason {
        UnknownCostReason::NoPrice => "No price for the model",
        UnknownCostReason::Ended => "The price has ended of",
        UnknownCostReason::NotBegun => "The price has not begun of",
        UnknownCostReason::NoRate => "No rate for",
        UnknownCostReason::NoTier => "No prices for the service tier",
        UnknownCostReason::NoCondition => "No prices for",
        UnknownCostReason::NoQuantity => "Unknown quantity of",
        UnknownCostReason::TooLarge => "The cost is too large to be exact",
    };
    html! {
        (words)
        @if let Some(of) = &reason.of { " " (name(of)) }
        @if let Some(day) = &reason.day { " on " (day) }
        @if let Some(combination) = &reason.combination { " " (name(combination)) }
        @if let Some(row) = &reason.price_id { " in " (name(row)) }
    }
}

fn cost_table(cost: &RecordCost) -> Markup {
    html! {
        div.scroll { table {
            caption {
                "In " (name(&cost.currency)) ". Price: " (name(&cost.price_id))
                @if let Some(words) = &cost.price_match { ", found by: " (name(words)) }
            }
            thead { tr {
                th scope="col" { "Meter" }
                th.number scope="col" { "Quantity" }
                th.number scope="col" { span.sign { "×" } " Unit price" }
                th.number scope="col" { span.sign { "=" } " Amount" }
            } }
            tbody { @for line in &cost.lines { (line_row(line)) } }
            tfoot {
                tr {
                    th scope="row" colspan="3" {
                        @if cost.at_least { "At least" } @else { "Total" }
                    }
                    td.number { (money(cost.amount, PLACES)) }
                }
                @if cost.list_amount != cost.amount {
                    tr {
                        th scope="row" colspan="3" { "At list price" }
                        td.number { (money(cost.list_amount, PLACES)) }
                    }
                }
            }
        } }
    }
}

fn line_row(line: &RecordLine) -> Markup {
    html! {
        tr {
            th scope="row" {
                (name(&line.meter.replace('_', " ")))
                @if let Some(model) = &line.model { " of " (name(model)) }
            }
            td.number { (quantity(line.count())) " " span.unit { (name(line.counted_in())) } }
            td.number { (price_of(line.unit_price, line.counted_in())) }
            td.number { (money(line.amount, PLACES)) }
        }
    }
}

fn corrections(corrections: &[Correction], view: &View) -> Markup {
    let amount = |cost: Option<&RecordCost>| {
        cost.map_or_else(unknown, |cost| {
            html! {
                @if cost.at_least { "≥ " }
                (money(cost.amount, PLACES)) " " (name(&cost.currency))
            }
        })
    };
    html! {
        @if !corrections.is_empty() {
            section aria-labelledby="corrections" {
                h2 #corrections { "Corrections" }
                div.scroll { table {
                    caption { "The last correction is valid." }
                    thead { tr {
                        th scope="col" { "Time" }
                        th scope="col" { "Reason" }
                        th.number scope="col" { "Before" }
                        th.number scope="col" { "After" }
                    } }
                    tbody {
                        @for correction in corrections {
                            tr {
                                th scope="row" { (view.time(correction.made_at)) }
                                td { (name(&correction.reason)) }
                                td.number { (amount(correction.before.as_ref())) }
                                td.number { (amount(correction.after.as_ref())) }
                            }
                        }
                    }
                } }
            }
        }
    }
}

/// The session that the client says the request is part of.
fn session(record: &Record, view: &View) -> Markup {
    let Some(dimensions) = record.dimensions.as_deref() else { return html! {} };
    let kind = dimensions.kind.map(|kind| kind.as_str().to_owned());
    let source = dimensions.session_source.map(|source| source.as_str().to_owned());
    let texts = [
        ("Known by", &source),
        ("Agent", &dimensions.agent),
        ("Parent agent", &dimensions.parent_agent),
        ("Turn", &dimensions.turn),
        ("For", &kind),
        ("Client", &dimensions.client),
        ("End user", &dimensions.end_user),
    ];
    html! {
        section aria-labelledby="session" {
            h2 #session { "Session" }
            dl.facts {
                @if let Some(session) = &dimensions.session {
                    div {
                        dt { "Name" }
                        dd {
                            a href=(link(view, record.tenant.as_str(), session)) { (name(session)) }
                        }
                    }
                }
                @for (word, text) in texts {
                    @if let Some(text) = text { div { dt { (word) } dd { (name(text)) } } }
                }
                @for (tag, value) in &dimensions.tags { div { dt { (name(tag)) } dd { (name(value)) } } }
            }
        }
    }
}

fn identity(record: &Record) -> Markup {
    let called = |(tool, calls): (&String, &u64)| format!("{tool} × {calls}");
    let called: Vec<_> = record.tools.iter().map(called).collect();
    let texts = [
        ("Id", Some(record.id.to_string())),
        ("x-request-id", Some(record.request_id.clone())),
        ("Identified by", Some(record.identity.as_str().replace('_', " "))),
        ("Key", record.key_id.clone()),
        ("Route", Some(record.route.clone())),
        ("Operation", Some(record.operation.clone())),
        ("Provider", Some(record.provider.clone())),
        ("Requested model", record.request_model.clone()),
        ("Answering model", record.response_model.clone()),
        ("Response id", record.response_id.clone()),
        ("Service tier", record.service_tier.clone()),
        ("Status", record.status.map(|status| status.to_string())),
        ("Error", record.error_type.clone()),
        ("Finish reasons", Some(record.finish_reasons.join(", ")).filter(|all| !all.is_empty())),
        ("Called tools", Some(called.join(", ")).filter(|all| !all.is_empty())),
        ("Cost reported by the provider", record.reported_cost.clone()),
        ("Gateway", Some(record.gateway.clone())),
        ("Ledger entry", Some(record.seq.to_string())),
    ];
    html! {
        section aria-labelledby="identity" {
            h2 #identity { "Identity" }
            dl.facts {
                @for (word, text) in &texts {
                    @if let Some(text) = text { div { dt { (word) } dd { (name(text)) } } }
                }
                @for (label, value) in record.labels.iter().chain(&record.resource) {
                    div { dt { (name(label)) } dd { (name_or_none(Some(value))) } }
                }
            }
        }
    }
}
