//! The forms of requests: all that many requests have in common. A form is read once, and of each
//! request of it only the numbers.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use foldhash::fast::RandomState;
use jiff::Timestamp;
use taximeter_billing::{BilledRequest, CostLines, HourKey};
use taximeter_ledger::{
    CostNumbers, DecodeError, LineQuantities, PostBytes, PostNumbers, PostNumbersReader, PostView,
};
use taximeter_pricing::{Flag, Source};

/// Most forms, and most bytes of their strings, that are kept for the next batch.
const KEPT_MAX: usize = 4096;
const KEPT_BYTES_MAX: usize = 2 << 20;

/// What requests with the same strings have in common.
#[derive(Debug)]
pub struct Form {
    /// As [`PostBytes`] has them.
    pub strings: Arc<[u8]>,
    /// The tenant.
    pub tenant: String,
    /// The model that a bill names.
    pub model: Option<String>,
    /// The upstream.
    pub upstream: String,
    provider: String,
    operation: String,
    route: String,
    key_id: Option<String>,
    labels: BTreeMap<String, String>,
    source: Source,
    is_pending: bool,
    numbers: PostNumbersReader,
    /// The lines of the cost of each request.
    pub lines: CostLines,
}

/// Forms by their strings.
#[derive(Debug, Default)]
pub struct Forms {
    forms: Vec<Arc<Form>>,
    by_strings: HashMap<Arc<[u8]>, usize, RandomState>,
    /// By where the strings are in memory, of those that several requests share. It costs a small
    /// part of looking at the strings.
    by_place: HashMap<usize, Shared, RandomState>,
    bytes: usize,
}

/// Strings that stay where they are, and their form.
#[derive(Debug)]
struct Shared {
    strings: Arc<[u8]>,
    form: usize,
}

impl Form {
    fn read(post: &PostBytes<'_>) -> Result<Self, DecodeError> {
        let view = PostView::of_pieces(post)?;
        let numbers = PostNumbersReader::new(post.strings)?;
        let is_pending = view.flags.contains(&Flag::Pending);
        let source = if is_pending { Source::Unknown } else { view.source };
        let lines = numbers.cost().map(|cost| CostLines::of(cost, source));
        let model = view.response_model.or(view.request_model);
        Ok(Self {
            strings: Arc::clone(post.strings),
            tenant: view.tenant.to_owned(),
            model: model.map(str::to_owned),
            upstream: view.upstream.to_owned(),
            provider: view.provider.to_owned(),
            operation: view.operation.to_owned(),
            route: view.route.to_owned(),
            key_id: view.key_id,
            labels: view.labels,
            source: view.source,
            is_pending,
            numbers,
            lines: lines.unwrap_or_default(),
        })
    }

    /// A request of this form as a row of bills, but for the numbers of its cost.
    pub fn row(&self, numbers: &PostNumbers) -> BilledRequest<'_> {
        let row = BilledRequest {
            started_at: numbers.started_at,
            tenant: &self.tenant,
            model: self.model.as_deref(),
            provider: &self.provider,
            upstream: &self.upstream,
            operation: &self.operation,
            route: &self.route,
            key_id: self.key_id.as_deref(),
            labels: &self.labels,
            source: self.source,
            input_tokens: numbers.input_tokens,
            cache_read_input_tokens: numbers.cache_read_input_tokens,
            output_tokens: numbers.output_tokens,
            reasoning_output_tokens: numbers.reasoning_output_tokens,
            cost: self.numbers.cost(),
            dimensions: None,
        };
        if self.is_pending { row.pending() } else { row }
    }

    /// The key of the sums of such requests that were admitted in the hour of `at`.
    pub fn key_in(&self, at: Timestamp) -> HourKey {
        let numbers = PostNumbers {
            started_at: at,
            input_tokens: None,
            cache_read_input_tokens: None,
            output_tokens: None,
            reasoning_output_tokens: None,
            cost: CostNumbers::None,
        };
        HourKey::of(&self.row(&numbers))
    }

    /// Whether a request of this form has used nothing, so that no bill counts it.
    pub fn used_nothing(&self, numbers: &PostNumbers, quantities: &LineQuantities) -> bool {
        self.source == Source::None
            && match &numbers.cost {
                CostNumbers::None => true,
                CostNumbers::Tokens(tokens) => {
                    let tokens = quantities.tokens.get(tokens.clone()).unwrap_or_default();
                    let rates = self.numbers.cost().map(|cost| &*cost.lines).unwrap_or_default();
                    let mut lines = tokens.iter().zip(rates);
                    lines.all(|(tokens, rate)| *tokens == 0 || rate.unit_price.is_zero())
                }
                CostNumbers::Amounts { amount, .. } => amount.is_zero(),
            }
    }
}

impl Forms {
    /// Forgets the forms if there are too many.
    pub fn tidy(&mut self) {
        if self.forms.len().max(self.by_place.len()) > KEPT_MAX || self.bytes > KEPT_BYTES_MAX {
            *self = Self::default();
        }
    }

    /// The form with this number here.
    pub fn get(&self, index: usize) -> Option<&Arc<Form>> {
        self.forms.get(index)
    }

    /// How many there are.
    pub const fn count(&self) -> usize {
        self.forms.len()
    }

    /// The form of a request, and its numbers. The quantities of the lines of its cost are appended
    /// to `quantities`.
    ///
    /// Errors: it is no request.
    pub fn read(
        &mut self,
        post: &PostBytes<'_>,
        quantities: &mut LineQuantities,
    ) -> Result<(usize, PostNumbers), DecodeError> {
        let index = self.index(post)?;
        let form = self.forms.get(index).ok_or(DecodeError::Missing("form"))?;
        Ok((index, form.numbers.read(post.id, post.members, quantities)?))
    }

    fn index(&mut self, post: &PostBytes<'_>) -> Result<usize, DecodeError> {
        let place = post.strings.as_ptr().addr();
        if let Some(Shared { strings, form }) = self.by_place.get(&place)
            && Arc::ptr_eq(strings, post.strings)
        {
            return Ok(*form);
        }
        let is_shared = Arc::strong_count(post.strings) > 1;
        let form = match self.by_strings.get(post.strings) {
            Some(form) => *form,
            None => {
                let (form, index) = (Form::read(post)?, self.forms.len());
                self.bytes += form.strings.len();
                self.by_strings.insert(Arc::clone(post.strings), index);
                self.forms.push(Arc::new(form));
                index
            }
        };
        if is_shared {
            let strings = Arc::clone(post.strings);
            self.bytes += strings.len();
            self.by_place.insert(place, Shared { strings, form });
        }
        Ok(form)
    }
}
