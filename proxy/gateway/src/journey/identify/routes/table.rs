//! The table of routes: fixed paths, and templates with one `{…}` segment, or two. A path whose
//! methods differ has a row for each.

use taximeter_meter::Wire;

use super::route::Allowed::{self, Any, Delete, Get, Head, Post};
use super::route::Billing::{Free, Ledger, Probe};
use super::route::{Operation as Op, Route, route};

/// OpenAI's API, and what other engines serve beside it, behind a prefix.
macro_rules! openai {
    ($prefix:literal) => {
        &[
            meters(concat!($prefix, "/chat/completions"), Op::Chat, Wire::ChatCompletions),
            meters(concat!($prefix, "/chat/completions/batch"), Op::Chat, Wire::ChatBatch),
            counts(concat!($prefix, "/chat/completions/input_tokens")),
            meters(concat!($prefix, "/completions"), Op::TextCompletion, Wire::Completions),
            meters(concat!($prefix, "/responses"), Op::Chat, Wire::Responses),
            counts(concat!($prefix, "/responses/input_tokens")),
            meters(concat!($prefix, "/responses/compact"), Op::Chat, Wire::Responses),
            fetches(concat!($prefix, "/responses/{id}"), Get),
            fetches(concat!($prefix, "/responses/{id}"), Delete),
            fetches(concat!($prefix, "/responses/{id}/cancel"), Post),
            fetches(concat!($prefix, "/responses/{id}/input_items"), Get),
            meters(concat!($prefix, "/messages"), Op::Chat, Wire::Messages),
            counts(concat!($prefix, "/messages/count_tokens")),
            reads(concat!($prefix, "/embeddings"), Op::Embeddings),
            reads(concat!($prefix, "/moderations"), Op::Moderation),
            meters(concat!($prefix, "/images/generations"), Op::ImageGeneration, Wire::Images),
            meters(concat!($prefix, "/images/edits"), Op::ImageGeneration, Wire::Images),
            meters(concat!($prefix, "/images/variations"), Op::ImageGeneration, Wire::Images),
            meters(concat!($prefix, "/audio/speech"), Op::Speech, Wire::Speech),
            meters(
                concat!($prefix, "/audio/transcriptions"),
                Op::Transcription,
                Wire::Transcriptions,
            ),
            meters(
                concat!($prefix, "/audio/translations"),
                Op::Transcription,
                Wire::Transcriptions,
            ),
            meters(concat!($prefix, "/videos"), Op::VideoGeneration, Wire::Videos),
            free(concat!($prefix, "/videos"), Get),
            // The film that it remakes says which model.
            meters(concat!($prefix, "/videos/{id}/remix"), Op::VideoGeneration, Wire::Videos),
            free(concat!($prefix, "/videos/{id}"), Get),
            free(concat!($prefix, "/videos/{id}"), Delete),
            free(concat!($prefix, "/videos/{id}/content"), Get),
            meters(concat!($prefix, "/ocr"), Op::Ocr, Wire::Ocr),
            free(concat!($prefix, "/models"), Get),
            free(concat!($prefix, "/models/{model}"), Get),
            batch(concat!($prefix, "/batches")),
            free(concat!($prefix, "/batches"), Get),
            batch_by_id(concat!($prefix, "/batches/{id}"), Get),
            batch_by_id(concat!($prefix, "/batches/{id}/cancel"), Post),
            batch_by_id(concat!($prefix, "/batches/{id}/results"), Get),
            batch(concat!($prefix, "/messages/batches")),
            free(concat!($prefix, "/messages/batches"), Get),
            batch_by_id(concat!($prefix, "/messages/batches/{id}"), Get),
            batch_by_id(concat!($prefix, "/messages/batches/{id}"), Delete),
            batch_by_id(concat!($prefix, "/messages/batches/{id}/cancel"), Post),
            batch_by_id(concat!($prefix, "/messages/batches/{id}/results"), Get),
            batch(concat!($prefix, "/batch/jobs")),
            free(concat!($prefix, "/batch/jobs"), Get),
            batch_by_id(concat!($prefix, "/batch/jobs/{id}"), Get),
            batch_by_id(concat!($prefix, "/batch/jobs/{id}"), Delete),
            batch_by_id(concat!($prefix, "/batch/jobs/{id}/cancel"), Post),
            fetches(concat!($prefix, "/chat/deferred-completion/{id}"), Get),
            free(concat!($prefix, "/files"), Post),
            free(concat!($prefix, "/files"), Get),
            free(concat!($prefix, "/files/{id}"), Get),
            free(concat!($prefix, "/files/{id}"), Delete),
            batch_by_id(concat!($prefix, "/files/{id}/content"), Get),
            counts(concat!($prefix, "/tokenize")),
            counts(concat!($prefix, "/detokenize")),
            // xAI, Moonshot.
            counts(concat!($prefix, "/tokenize-text")),
            counts(concat!($prefix, "/tokenizers/estimate-token-count")),
            // vLLM.
            counts(concat!($prefix, "/chat/completions/render")),
            counts(concat!($prefix, "/completions/render")),
            reads(concat!($prefix, "/rerank"), Op::Rerank),
            reads(concat!($prefix, "/reranking"), Op::Rerank),
            reads(concat!($prefix, "/score"), Op::Rerank),
            reads(concat!($prefix, "/classify"), Op::Embeddings),
            free(concat!($prefix, "/conversations"), Post),
            free(concat!($prefix, "/conversations/{id}"), Get),
            free(concat!($prefix, "/conversations/{id}"), Post),
            free(concat!($prefix, "/conversations/{id}"), Delete),
            free(concat!($prefix, "/conversations/{id}/items"), Get),
            free(concat!($prefix, "/conversations/{id}/items"), Post),
            free(concat!($prefix, "/conversations/{id}/items/{item}"), Get),
            free(concat!($prefix, "/conversations/{id}/items/{item}"), Delete),
        ]
    };
}

/// Behind `/v1`.
static V1: &[Route] = openai!("/v1");
/// Without `/v1`, as llama.cpp and many providers serve it too.
static BARE: &[Route] = openai!("");
/// Of Azure.
static AZURE_V1: &[Route] = openai!("/openai/v1");

/// All others.
static OTHERS: &[Route] = &[
    reads("/v2/rerank", Op::Rerank),
    reads("/pooling", Op::Embeddings),
    reads("/encode", Op::Embeddings),
    meters("/inference/v1/generate", Op::TextCompletion, Wire::TokenIds),
    meters("/invocations", Op::Chat, Wire::Invocations),
    meters("/generate", Op::TextCompletion, Wire::Generate),
    meters("/generate_stream", Op::TextCompletion, Wire::Generate),
    meters("/", Op::TextCompletion, Wire::Generate),
    meters("/vertex_generate", Op::TextCompletion, Wire::VertexGenerate),
    meters("/completion", Op::TextCompletion, Wire::LlamaCompletion),
    meters("/infill", Op::TextCompletion, Wire::LlamaCompletion),
    reads("/embedding", Op::Embeddings),
    counts("/apply-template"),
    // TGI.
    counts("/chat_tokenize"),
    meters("/api/chat", Op::Chat, Wire::OllamaChat),
    meters("/api/generate", Op::TextCompletion, Wire::OllamaGenerate),
    reads("/api/embed", Op::Embeddings),
    reads("/api/embeddings", Op::Embeddings),
    free("/api/show", Post),
    free("/api/tags", Get),
    free("/api/ps", Get),
    free("/api/version", Get),
    // LM Studio.
    meters("/api/v0/chat/completions", Op::Chat, Wire::ChatCompletions),
    meters("/api/v0/completions", Op::TextCompletion, Wire::Completions),
    reads("/api/v0/embeddings", Op::Embeddings),
    free("/api/v0/models", Get),
    free("/api/v0/models/{model}", Get),
    meters("/openai/deployments/{model}/chat/completions", Op::Chat, Wire::ChatCompletions),
    meters("/openai/deployments/{model}/completions", Op::TextCompletion, Wire::Completions),
    reads("/openai/deployments/{model}/embeddings", Op::Embeddings),
    meters("/openai/deployments/{model}/images/generations", Op::ImageGeneration, Wire::Images),
    meters("/openai/deployments/{model}/images/edits", Op::ImageGeneration, Wire::Images),
    meters("/openai/deployments/{model}/audio/speech", Op::Speech, Wire::Speech),
    meters(
        "/openai/deployments/{model}/audio/transcriptions",
        Op::Transcription,
        Wire::Transcriptions,
    ),
    meters(
        "/openai/deployments/{model}/audio/translations",
        Op::Transcription,
        Wire::Transcriptions,
    ),
    meters("/openai/responses", Op::Chat, Wire::Responses),
    counts("/openai/responses/input_tokens"),
    meters("/openai/responses/compact", Op::Chat, Wire::Responses),
    fetches("/openai/responses/{id}", Get),
    fetches("/openai/responses/{id}", Delete),
    fetches("/openai/responses/{id}/cancel", Post),
    fetches("/openai/responses/{id}/input_items", Get),
    batch("/openai/batches"),
    free("/openai/batches", Get),
    batch_by_id("/openai/batches/{id}", Get),
    batch_by_id("/openai/batches/{id}/cancel", Post),
    free("/openai/files", Post),
    free("/openai/files", Get),
    free("/openai/files/{id}", Get),
    free("/openai/files/{id}", Delete),
    batch_by_id("/openai/files/{id}/content", Get),
    meters("/v1beta/openai/chat/completions", Op::Chat, Wire::ChatCompletions),
    reads("/v1beta/openai/embeddings", Op::Embeddings),
    meters("/v1beta/openai/images/generations", Op::ImageGeneration, Wire::Images),
    free("/v1beta/openai/models", Get),
    free("/v1beta/openai/models/{model}", Get),
    gemini("/v1beta/models/{model}:generateContent", Wire::GenerateContent),
    gemini("/v1beta/models/{model}:streamGenerateContent", Wire::GenerateContent),
    gemini("/v1beta/models/{model}:embedContent", Wire::Embeddings),
    gemini("/v1beta/models/{model}:batchEmbedContents", Wire::Embeddings),
    gemini("/v1beta/models/{model}:countTokens", Wire::Opaque),
    gemini("/v1/models/{model}:generateContent", Wire::GenerateContent),
    gemini("/v1/models/{model}:streamGenerateContent", Wire::GenerateContent),
    gemini("/v1/models/{model}:embedContent", Wire::Embeddings),
    gemini("/v1/models/{model}:batchEmbedContents", Wire::Embeddings),
    gemini("/v1/models/{model}:countTokens", Wire::Opaque),
    batch("/v1beta/models/{model}:batchGenerateContent"),
    batch("/v1beta/models/{model}:asyncBatchEmbedContent"),
    free("/v1beta/batches", Get),
    batch_by_id("/v1beta/batches/{id}:cancel", Post),
    batch_by_id("/v1beta/batches/{id}", Get),
    batch_by_id("/v1beta/batches/{id}", Delete),
    batch_by_id("/download/v1beta/files/{id}:download", Get),
    free("/v1beta/models", Get),
    free("/v1beta/models/{model}", Get),
    meters("/v2/chat", Op::Chat, Wire::CohereChat),
    reads("/v2/embed", Op::Embeddings),
    meters("/model/{model}/converse", Op::Chat, Wire::Converse),
    meters("/model/{model}/converse-stream", Op::Chat, Wire::Converse),
    counts("/model/{model}/count-tokens"),
    free("/inference-profiles", Get),
    probes("/health"),
    // llama.cpp.
    probes("/v1/health"),
    // SGLang, TensorRT-LLM: generates one token where nothing else runs.
    probes("/health_generate"),
    // NIM, Triton, and engines behind KServe.
    probes("/health/live"),
    probes("/health/ready"),
    probes("/v1/health/live"),
    probes("/v1/health/ready"),
    probes("/v2/health/live"),
    probes("/v2/health/ready"),
    probes("/ping"),
    probes("/version"),
    probes("/v1/version"),
    // Claude Code and Ollama's program ask this at their start.
    route("/", Op::Other, Wire::Opaque, Probe, Head),
    probes("/api/hello"),
];

/// What is passed through without being known: on the ledger, usage unknown.
pub(super) static PASSED_THROUGH: Route = route("other", Op::Other, Wire::Opaque, Ledger, Any);

/// The rows that a path may fit, those of the route that most requests take first.
pub(super) fn rows(path: &str) -> impl Iterator<Item = &'static Route> + Clone + use<> {
    let family = if path.starts_with("/v1/") {
        V1
    } else if path.starts_with("/openai/v1/") {
        AZURE_V1
    } else {
        BARE
    };
    family.iter().chain(OTHERS)
}

/// Every row.
pub(super) fn all() -> impl Iterator<Item = &'static Route> + Clone {
    [V1, BARE, AZURE_V1, OTHERS].into_iter().flatten()
}

/// What shows a list or a state, and uses nothing.
const fn free(template: &'static str, method: Allowed) -> Route {
    route(template, Op::Other, Wire::Opaque, Free, method)
}

/// What counts tokens, or writes them as text, and generates nothing. It is recorded, and free.
const fn counts(template: &'static str) -> Route {
    meters(template, Op::CountTokens, Wire::Opaque)
}

/// What shows an answer that was generated in the background.
const fn fetches(template: &'static str, method: Allowed) -> Route {
    route(template, Op::FetchResponse, Wire::Opaque, Free, method)
}

/// What makes a batch. What it uses is told later, by its object or in a file.
const fn batch(template: &'static str) -> Route {
    meters(template, Op::Batch, Wire::Batches)
}

/// A batch that is asked for, cancelled or deleted, or its results.
const fn batch_by_id(template: &'static str, method: Allowed) -> Route {
    route(template, Op::FetchBatch, Wire::Opaque, Free, method)
}

/// What has tokens as its input, and generates none.
const fn reads(template: &'static str, operation: Op) -> Route {
    route(template, operation, Wire::Embeddings, Ledger, Post)
}

/// What is on the ledger.
const fn meters(template: &'static str, operation: Op, wire: Wire) -> Route {
    route(template, operation, wire, Ledger, Post)
}

/// Whether an engine lives, or which it is.
const fn probes(template: &'static str) -> Route {
    route(template, Op::Other, Wire::Opaque, Probe, Get)
}

/// A method of Gemini's own API; one that is not read counts tokens.
const fn gemini(template: &'static str, wire: Wire) -> Route {
    match wire {
        Wire::GenerateContent => meters(template, Op::GenerateContent, wire),
        Wire::Embeddings => reads(template, Op::Embeddings),
        _ => counts(template),
    }
}
