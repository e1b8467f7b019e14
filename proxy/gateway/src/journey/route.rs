//! Chooses the upstream, prepares the request for it, and computes the highest possible cost.

use std::sync::Arc;

use rust_decimal::Decimal;
use taximeter_config::{UnknownPrice, Upstream};
use taximeter_meter::{Dialect, Hidden, Output, Wire};
use taximeter_net::upstream::RequestBody;
use taximeter_pricing::Query;
use taximeter_request::{BodyEdits, Context, Parameter, RequestFacts, names_context};
use taximeter_system::clock;
use taximeter_telemetry::content::{BODY_BYTES_MAX, Captured};
use taximeter_telemetry::events::ContentLeftOut;

use super::body::Order;
use super::identify::{Call, Route};
use super::refuse::{Refusal, shown};
use crate::contexts::PromptContext;
use crate::gateway::{Gateway, HeldBytes};
use crate::tariffs::PriceScope;
use crate::unseen::unseen_parts;

/// What all requests of a batch are charged as.
const BATCH_TIER: &str = "batch";

/// Where a request goes, and as what.
pub struct Chosen {
    /// Index into the configured upstreams.
    pub index: usize,
    pub dialect: Dialect,
    pub request_model: Option<String>,
    pub service_tier: Option<String>,
    pub stream: bool,
    /// Its answer is generated after it.
    pub(crate) background: bool,
    /// How many answers it asks for at once.
    pub(crate) choices: u64,
    /// Whether it has one prompt, where its answers do not say.
    pub(crate) has_one_prompt: bool,
    /// What else it states, where that is told.
    pub parameters: Vec<(Parameter, String)>,
    /// The most tokens that each of them may have.
    pub max_tokens: Option<u64>,
    /// What only we asked for, so that the client must not see it.
    pub hidden: Hidden,
    /// The most it may cost, where that has a bound and a price.
    pub(crate) amount_max: Option<Decimal>,
    /// What is sent.
    pub body: RequestBody,
    /// What of it only we have put in, where an engine could refuse that.
    pub(crate) question: Option<Box<Question>>,
    /// What its prompt has beside what it says.
    pub(crate) context: PromptContext,
    /// The conversation that it is part of.
    pub(crate) conversation: Option<Context>,
    /// What the client sent, decoded, if it is small enough to be counted.
    pub kept: Option<RequestBody>,
    /// What it says, where that is captured.
    pub(crate) captured: Option<Captured>,
    /// Length of what the client sent, decoded where we have read it, in bytes.
    pub(crate) body_bytes: u64,
    pub held: Option<Arc<HeldBytes>>,
    /// It asks what a web page may send, and shows no credential.
    pub(crate) is_preflight: bool,
}

/// The gateway's own question for usage in a request.
pub(crate) struct Question {
    /// The body without it.
    pub(crate) bare: RequestBody,
    /// The names of its members.
    pub(crate) added: Vec<&'static str>,
    /// Counts the bytes of the body while they are held.
    _held: Arc<HeldBytes>,
}

/// Chooses the upstream and prepares what is sent to it.
///
/// Errors: no upstream serves the model; the price is unknown and must be known.
pub(super) fn choose(gateway: &Gateway, call: &Call, order: Order) -> Result<Chosen, Refusal> {
    let Order { body, plain, mut facts, held } = order;
    let parameters = facts.as_mut().map(|facts| std::mem::take(&mut facts.parameters));
    let model = call.path_model.clone().or(facts.as_ref().and_then(|facts| facts.model.clone()));
    // A batch goes where its files are, and where it is asked for: that names no model.
    let routed = if call.wire() == Wire::Batches { &call.path_model } else { &model };
    let index = upstream(&gateway.config.upstreams, call.route, routed.as_deref())?;
    // Nothing can be put between bytes that are encoded; what is then not reported is counted.
    let asking = facts.as_ref().filter(|_| plain.is_none());
    let BodyEdits { splices, hidden, added } = asking
        .map(|facts| question(gateway, index, call, facts, model.as_deref()))
        .unwrap_or_default();
    let held = Arc::new(held);
    let question = (!added.is_empty())
        .then(|| Box::new(Question { bare: body.clone(), added, _held: held.clone() }));
    let said = plain.as_ref().unwrap_or(&body);
    let body_bytes = said.len();
    // From the back, so that the offsets of those before still hold.
    let sent = splices.iter().rev().fold(body.clone(), |body, splice| {
        body.spliced(splice.range.start, splice.range.end, &splice.text)
    });
    let captured = captured(gateway, call, said);
    let named = facts.as_ref().and_then(RequestFacts::context);
    let (context, images) = context(gateway, call, index, named.as_ref(), model.as_deref(), said);
    let count_bytes_max = gateway.config.limits.count_bytes_max;
    let mut chosen = Chosen {
        index,
        dialect: gateway.dialect(index),
        request_model: model,
        service_tier: match call.wire() {
            Wire::Batches => Some(BATCH_TIER.to_owned()),
            _ => facts.as_ref().and_then(|facts| facts.service_tier.clone()),
        },
        stream: call.route.streams() || facts.as_ref().is_some_and(|facts| facts.stream),
        background: match call.wire() {
            Wire::Responses => facts.as_ref().is_some_and(|facts| facts.background),
            wire => wire == Wire::Batches,
        },
        choices: facts.as_ref().and_then(|facts| facts.choices).unwrap_or(1),
        has_one_prompt: facts.as_ref().is_some_and(|facts| facts.has_one_prompt),
        parameters: parameters.unwrap_or_default(),
        max_tokens: facts.as_ref().and_then(|facts| facts.max_output_tokens),
        hidden,
        amount_max: None,
        body: sent,
        question,
        context,
        conversation: named.filter(|named| matches!(named, Context::Conversation(_))),
        kept: (call.wire().has_countable_input() && body_bytes <= count_bytes_max as u64)
            .then(|| plain.unwrap_or(body).compact()),
        captured,
        body_bytes,
        held: Some(held),
        is_preflight: false,
    };
    let output_tokens_max = facts.as_ref().and_then(RequestFacts::output_tokens_max);
    let input_tokens_max = match context {
        PromptContext::None if !images => Some(body_bytes),
        PromptContext::Known(size) if !images => Some(body_bytes.saturating_add(size.most)),
        _ => None,
    };
    chosen.amount_max = bound(gateway, call, &chosen, input_tokens_max, output_tokens_max)?;
    Ok(chosen)
}

/// Forgets how large a conversation is that a request changes.
pub(super) fn forget_changed(gateway: &Gateway, call: &Call, chosen: &Chosen) {
    if !call.route.changes_conversation() {
        return;
    }
    let Some(id) = call.route.parameter(call.uri.path()) else { return };
    let conversation = Context::Conversation(id.to_owned());
    let upstream = &gateway.upstream(chosen.index).name;
    gateway.contexts.forget(&call.caller.tenant, upstream, &conversation);
}

/// Where a preflight goes: where the request would that it asks for, as far as that is known.
pub(super) fn preflight(gateway: &Gateway, route: &Route, model: Option<String>) -> Chosen {
    let index = upstream(&gateway.config.upstreams, route, model.as_deref()).unwrap_or(0);
    Chosen {
        index,
        dialect: gateway.dialect(index),
        request_model: model,
        service_tier: None,
        stream: false,
        background: false,
        choices: 1,
        has_one_prompt: false,
        parameters: Vec::new(),
        max_tokens: None,
        hidden: Hidden::default(),
        amount_max: None,
        body: RequestBody::default(),
        question: None,
        context: PromptContext::None,
        conversation: None,
        kept: None,
        captured: None,
        body_bytes: 0,
        held: None,
        is_preflight: true,
    }
}

/// How to ask an upstream for usage; nothing where it has refused to be asked.
fn question(
    gateway: &Gateway,
    index: usize,
    call: &Call,
    facts: &RequestFacts,
    model: Option<&str>,
) -> BodyEdits {
    let (dialect, ask) = gateway.known_dialect(index).question(gateway.upstream(index).usage);
    let edits = facts.question(dialect, ask);
    let refused = gateway.refused_questions(index);
    if !edits.added.is_empty() && refused.holds(clock::now(), call.uri.path(), model) {
        return BodyEdits::default();
    }
    edits
}

/// The first upstream that serves the model. A request without a model goes to the first one that
/// serves every model, or else to the first of all; the engine then chooses.
fn upstream(upstreams: &[Upstream], route: &Route, model: Option<&str>) -> Result<usize, Refusal> {
    if let Some(model) = model {
        let serving = upstreams.iter().position(|upstream| upstream.serves(model));
        return serving.ok_or_else(|| Refusal::ModelNotFound { model: shown(model) });
    }
    // Lists, files and the like are about no model.
    let serving = upstreams.iter().position(Upstream::serves_every_model);
    Ok(serving.filter(|_| route.names_model()).unwrap_or(0))
}

/// What a request says, where that is put on its span: only on one that is surely kept.
fn captured(gateway: &Gateway, call: &Call, body: &RequestBody) -> Option<Captured> {
    let (terms, tenant) = (&gateway.config.telemetry.content, call.caller.tenant.as_str());
    if call.wire().output() != Output::Text
        || !terms.is_captured(tenant)
        || !gateway.telemetry.is_sampled(call.id, call.trace)
    {
        return None;
    }
    // Of a sound that is uploaded nothing is told, however long it is.
    let pieces = match (call.wire().has_countable_input(), body.len() <= BODY_BYTES_MAX) {
        (false, _) => Some(Vec::new()),
        (true, true) => Some(body.clone().compact().pieces().cloned().collect()),
        (true, false) => {
            gateway.telemetry.emit(&ContentLeftOut { cause: "body_too_long" });
            None
        }
    };
    Some(Captured::new(call.wire(), pieces, terms.clone()))
}

/// What the prompt has beside what the request says, and whether there are images among that.
fn context(
    gateway: &Gateway,
    call: &Call,
    index: usize,
    named: Option<&Context>,
    model: Option<&str>,
    said: &RequestBody,
) -> (PromptContext, bool) {
    if call.wire() == Wire::Opaque {
        return (PromptContext::None, false);
    }
    let pieces: Vec<&[u8]> = said.pieces().map(AsRef::as_ref).collect();
    let unseen = unseen_parts(call.wire(), &pieces);
    let context = match named {
        _ if unseen.parts || model.is_some_and(names_context) => PromptContext::Unknown,
        None => PromptContext::None,
        Some(named) => {
            let (tenant, upstream) = (&call.caller.tenant, &gateway.upstream(index).name);
            gateway.contexts.find(tenant, upstream, named)
        }
    };
    (context, unseen.images)
}

/// The worst case. A token is at least a byte, so the body's length bounds the input that is text.
fn bound(
    gateway: &Gateway,
    call: &Call,
    chosen: &Chosen,
    input_tokens_max: Option<u64>,
    output_tokens_max: Option<u64>,
) -> Result<Option<Decimal>, Refusal> {
    if call.route.uses_nothing() {
        return Ok(Some(Decimal::ZERO));
    }
    let model = chosen.request_model.as_deref();
    // Without a model only the answer tells the price.
    if matches!(call.wire(), Wire::Opaque | Wire::Batches)
        || model.is_none() && !call.route.expects_model()
    {
        return Ok(None);
    }
    let query = Query {
        provider: Some(gateway.provider(chosen.index)),
        response_model: None,
        request_model: model,
        service_tier: chosen.service_tier.as_deref(),
        at: call.started_at,
    };
    let (tenant, upstream) = (&call.caller.tenant.0, &gateway.upstream(chosen.index).name);
    let scope = PriceScope { tenant, upstream };
    if !gateway.tariffs.find(scope, &query) {
        return match (gateway.config.prices.unknown, model) {
            (UnknownPrice::Meter, _) => Ok(None),
            (UnknownPrice::Refuse, Some(model)) => {
                Err(Refusal::UnknownPrice { model: shown(model) })
            }
            (UnknownPrice::Refuse, None) => Err(Refusal::ModelRequired),
        };
    }
    let output = match call.wire().output() {
        Output::None => Some(0),
        Output::Text | Output::NotText => {
            output_tokens_max.filter(|_| call.wire().obeys_max_tokens())
        }
    };
    Ok(input_tokens_max
        .zip(output)
        .and_then(|(input, output)| gateway.tariffs.upper_bound(scope, &query, input, output)))
}
