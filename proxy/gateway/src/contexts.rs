//! Remembers how large the contexts are that providers keep: earlier responses and conversations.
//! A request that goes on from one has only what it adds.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, PoisonError};

use taximeter_ledger::{RecordUsage, TenantId};
use taximeter_pricing::{Member, Source};
use taximeter_request::Context;

use crate::recent::Recent;

/// Most contexts that are remembered. The one that was said the longest ago goes for a new one.
const CONTEXTS_MAX: usize = 1 << 14;

/// What a prompt has beside what its request contains.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum PromptContext {
    /// Nothing: the request contains all of it.
    #[default]
    None,
    /// A context of this size.
    Known(ContextTokens),
    /// Something of unknown size.
    Unknown,
}

/// The size of a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContextTokens {
    /// An estimate: all input and output of the earlier response, without its reasoning, which
    /// providers drop.
    pub(crate) likely: u64,
    /// The same with its reasoning.
    pub(crate) most: u64,
}

/// The contexts that are known, of all tenants.
#[derive(Debug, Default)]
pub struct Contexts {
    sizes: Mutex<Recent<ContextTokens, CONTEXTS_MAX>>,
    /// Nobody can make two keys with the same hash on purpose.
    hashers: [RandomState; 2],
}

impl ContextTokens {
    /// The context behind a response with this usage, if the engine has reported it.
    pub(crate) fn behind(usage: &RecordUsage) -> Option<Self> {
        let is_reported = |member| usage.sources.get(&member) == Some(&Source::Reported);
        if !is_reported(Member::InputTokens) || !is_reported(Member::OutputTokens) {
            return None;
        }
        let (input, output) = (usage.input_tokens?, usage.output_tokens?);
        let reasoning = usage.reasoning_output_tokens.unwrap_or(0);
        let said = output.saturating_sub(reasoning);
        Some(Self { likely: input.saturating_add(said), most: input.saturating_add(output) })
    }
}

impl Contexts {
    /// Remembers the size of a context of this tenant at this upstream.
    pub(crate) fn put(
        &self,
        tenant: &TenantId,
        upstream: &str,
        context: &Context,
        size: ContextTokens,
    ) {
        let Some(key) = self.key(tenant, upstream, context) else { return };
        self.sizes.lock().unwrap_or_else(PoisonError::into_inner).put(key, size);
    }

    /// Forgets a context whose size is not known any more.
    pub(crate) fn forget(&self, tenant: &TenantId, upstream: &str, context: &Context) {
        let Some(key) = self.key(tenant, upstream, context) else { return };
        self.sizes.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }

    /// The size of a context of this tenant at this upstream.
    pub(crate) fn find(
        &self,
        tenant: &TenantId,
        upstream: &str,
        context: &Context,
    ) -> PromptContext {
        let Some(key) = self.key(tenant, upstream, context) else { return PromptContext::Unknown };
        let sizes = self.sizes.lock().unwrap_or_else(PoisonError::into_inner);
        sizes.get(key).map_or(PromptContext::Unknown, |size| PromptContext::Known(*size))
    }

    fn key(&self, tenant: &TenantId, upstream: &str, context: &Context) -> Option<u128> {
        let named = match context {
            Context::Response(id) => ("response", id),
            Context::Conversation(id) => ("conversation", id),
            Context::Kept => return None,
        };
        let [high, low] = &self.hashers;
        let hash = |hasher: &RandomState| u128::from(hasher.hash_one((tenant, upstream, named)));
        Some(hash(high) << 64 | hash(low))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(name: &str) -> TenantId {
        TenantId(name.into())
    }

    fn response(number: usize) -> Context {
        Context::Response(format!("resp_{number}"))
    }

    const SIZE: ContextTokens = ContextTokens { likely: 10, most: 12 };

    #[test]
    fn a_context_belongs_to_its_tenant_its_upstream_and_its_id() {
        let contexts = Contexts::default();
        let acme = tenant("acme");
        contexts.put(&acme, "openai", &response(1), SIZE);
        assert_eq!(contexts.find(&acme, "openai", &response(1)), PromptContext::Known(SIZE));
        let conversation = Context::Conversation("resp_1".to_owned());
        for (by, upstream, context) in [
            ("beta", "openai", response(1)),
            ("acme", "azure", response(1)),
            ("acme", "openai", response(2)),
            ("acme", "openai", conversation),
            ("acme", "openai", Context::Kept),
        ] {
            let found = contexts.find(&tenant(by), upstream, &context);
            assert_eq!(found, PromptContext::Unknown, "{by} {upstream} {context:?}");
        }
        contexts.forget(&tenant("beta"), "openai", &response(1));
        assert_eq!(contexts.find(&acme, "openai", &response(1)), PromptContext::Known(SIZE));
        contexts.forget(&acme, "openai", &response(1));
        assert_eq!(contexts.find(&acme, "openai", &response(1)), PromptContext::Unknown);
        contexts.put(&acme, "openai", &Context::Kept, SIZE);
        assert_eq!(contexts.find(&acme, "openai", &Context::Kept), PromptContext::Unknown);
    }

    #[test]
    fn the_one_that_was_said_the_longest_ago_goes_first() {
        let contexts = Contexts::default();
        let acme = tenant("acme");
        for number in 0..=CONTEXTS_MAX {
            contexts.put(&acme, "openai", &response(number), SIZE);
            // One that is said again and again stays.
            contexts.put(&acme, "openai", &Context::Conversation("c".to_owned()), SIZE);
        }
        let knows =
            |number| contexts.find(&acme, "openai", &response(number)) != PromptContext::Unknown;
        assert_eq!([0, 1, 2, CONTEXTS_MAX].map(knows), [false, false, true, true]);
        let conversation = Context::Conversation("c".to_owned());
        assert_eq!(contexts.find(&acme, "openai", &conversation), PromptContext::Known(SIZE));
    }

    #[test]
    fn only_what_an_engine_has_reported_tells_a_context() {
        let reported = |input, output, reasoning| RecordUsage {
            sources: [Member::InputTokens, Member::OutputTokens]
                .map(|member| (member, Source::Reported))
                .into(),
            input_tokens: input,
            output_tokens: output,
            reasoning_output_tokens: reasoning,
            ..RecordUsage::default()
        };
        let behind = |usage| ContextTokens::behind(&usage);
        let size = ContextTokens { likely: 1_060, most: 1_100 };
        assert_eq!(behind(reported(Some(1_000), Some(100), Some(40))), Some(size));
        assert_eq!(behind(reported(Some(1_000), None, None)), None);
        assert_eq!(behind(RecordUsage::counted(Some(1_000), Some(100), &[])), None);
    }
}
