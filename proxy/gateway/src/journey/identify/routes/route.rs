//! What a route is: its template, its wire format, and how it is charged.

use http::Method;
use taximeter_ledger::COUNT_TOKENS;
use taximeter_meter::Wire;

/// `gen_ai.operation.name`; values outside the OpenTelemetry registry are ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    Chat,
    TextCompletion,
    GenerateContent,
    Embeddings,
    FetchResponse,
    Batch,
    FetchBatch,
    Rerank,
    CountTokens,
    Moderation,
    ImageGeneration,
    Speech,
    Transcription,
    VideoGeneration,
    Ocr,
    /// Models, and what is passed through without being known.
    Other,
}

impl Operation {
    /// The value as telemetry and records have it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::TextCompletion => "text_completion",
            Self::GenerateContent => "generate_content",
            Self::Embeddings => "embeddings",
            Self::FetchResponse => "fetch_response",
            Self::Batch => "batch",
            Self::FetchBatch => "fetch_batch",
            Self::Rerank => "rerank",
            Self::CountTokens => COUNT_TOKENS,
            Self::Moderation => "moderation",
            Self::ImageGeneration => "image_generation",
            Self::Speech => "speech",
            Self::Transcription => "transcription",
            Self::VideoGeneration => "video_generation",
            Self::Ocr => "ocr",
            Self::Other => "other",
        }
    }
}

/// Whether a route's requests go on the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Billing {
    /// They use tokens, or may: reserved and posted. To count tokens is free, and posted as such.
    Ledger,
    /// They use none (lists, a GET of what was billed before): served, never billed.
    Free,
    /// They ask whether the engine lives: answered to everybody, and never billed.
    Probe,
}

/// What an answer may show of an earlier request: what it has used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shows {
    /// A response, by its own id.
    Response,
    /// A chat completion, by the id in the path.
    Deferred,
    /// A batch.
    Batch,
    /// The results of the batch in the path.
    Results,
    /// A file, which may have the results of a batch.
    File,
}

/// One route.
#[derive(Debug, PartialEq, Eq)]
pub struct Route {
    /// `http.route`: a template from a fixed set.
    pub template: &'static str,
    /// The operation, as `gen_ai.operation.name` says it.
    pub operation: Operation,
    /// The shape of requests and answers.
    pub wire: Wire,
    /// How the route is charged.
    pub billing: Billing,
    pub(super) method: Allowed,
    /// Length of the template up to its first `{…}` segment.
    fixed: usize,
}

/// Methods that a row takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Allowed {
    Get,
    Head,
    Post,
    Delete,
    Any,
}

/// Methods that are passed through: `TRACE` would show an engine's headers.
pub(super) const ANY_METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";
const ANY: [Method; 7] = [
    Method::GET,
    Method::HEAD,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
    Method::OPTIONS,
];

impl Allowed {
    pub(super) fn takes(self, method: &Method) -> bool {
        match self {
            Self::Get => method == Method::GET || method == Method::HEAD,
            Self::Head => method == Method::HEAD,
            Self::Post => method == Method::POST,
            Self::Delete => method == Method::DELETE,
            Self::Any => ANY.iter().any(|known| known == method),
        }
    }
}

impl Route {
    /// Whether a JSON body names a model at its top, where nothing else of it is read.
    pub(crate) const fn names_model(&self) -> bool {
        !matches!(
            self.operation,
            Operation::Other | Operation::Batch | Operation::FetchResponse | Operation::FetchBatch
        )
    }

    /// Whether requests usually name a model. On the other routes engines serve the model that they
    /// have loaded, and providers have a default.
    pub(crate) fn expects_model(&self) -> bool {
        self.wire.expects_model()
            && self.operation != Operation::Moderation
            && self.template != "/embedding"
    }

    /// Whether its requests use nothing, whatever the answer is.
    pub(crate) fn uses_nothing(&self) -> bool {
        self.operation == Operation::CountTokens
    }

    /// Whether its path asks for a stream.
    pub fn streams(&self) -> bool {
        self.template.contains("stream")
    }

    /// Whether its path names the model that is to answer.
    pub(super) fn names_model_in_path(&self) -> bool {
        self.method == Allowed::Post && self.template.contains("{model}")
    }

    /// Whether clients may send their key in the query: Google's do, on its own routes.
    pub(crate) fn takes_key_in_query(&self) -> bool {
        let begins = |with: &&str| self.template.starts_with(with);
        self.template.contains("{model}:")
            || ["/v1beta/models", "/v1beta/batches", "/download/v1beta/"].iter().any(begins)
    }

    /// What the answers of this route may show of an earlier request.
    pub(crate) fn shows(&self) -> Option<Shows> {
        let ends = |with: &str| self.template.ends_with(with);
        match self.operation {
            _ if self.method == Allowed::Delete || ends("/input_items") => None,
            Operation::FetchResponse if ends("/chat/deferred-completion/{id}") => {
                Some(Shows::Deferred)
            }
            Operation::FetchResponse => Some(Shows::Response),
            Operation::FetchBatch if ends("/results") => Some(Shows::Results),
            Operation::FetchBatch if ends("/content") || ends(":download") => Some(Shows::File),
            Operation::FetchBatch => Some(Shows::Batch),
            _ => None,
        }
    }

    /// Whether it changes what was said in the conversation in the path.
    pub(crate) fn changes_conversation(&self) -> bool {
        let is_change = matches!(self.method, Allowed::Post | Allowed::Delete);
        let has_items = self.template.contains("/conversations/{id}/items");
        let ends_it = self.method == Allowed::Delete && self.template.contains("/conversations/");
        is_change && has_items || ends_it
    }

    /// What stands for the first `{…}` segment in `path` (empty where there is none), if the path
    /// fits.
    pub(crate) fn parameter<'a>(&self, path: &'a str) -> Option<&'a str> {
        let (head, rest) = self.template.split_at_checked(self.fixed)?;
        let behind = path.strip_prefix(head)?;
        let Some((_, tail)) = rest.split_once('}') else {
            return behind.is_empty().then_some("");
        };
        let parameter = match tail.split_once('{') {
            None => behind.strip_suffix(tail)?,
            Some((between, _)) => {
                let (parameter, last) = behind.split_once(between)?;
                let is_segment = !last.is_empty() && !last.contains('/');
                is_segment.then_some(parameter)?
            }
        };
        let takes_slashes = tail.is_empty() && head.ends_with("/models/");
        let plain = !parameter.is_empty() && (takes_slashes || !parameter.contains('/'));
        plain.then_some(parameter)
    }

    /// Whether bodies are JSON whatever their type says: Ollama never looks, and its documentation
    /// has requests without one.
    pub(crate) fn takes_any_type(&self) -> bool {
        self.template.starts_with("/api/")
    }
}

/// A row of the table.
pub(super) const fn route(
    template: &'static str,
    operation: Operation,
    wire: Wire,
    billing: Billing,
    method: Allowed,
) -> Route {
    let bytes = template.as_bytes();
    let mut fixed = 0;
    while let Some((&byte, _)) = bytes.split_at(fixed).1.split_first() {
        if byte == b'{' {
            break;
        }
        fixed += 1;
    }
    Route { template, operation, wire, billing, method, fixed }
}
