//! The forms of requests: all that many requests have in common. A form is read once, and of each
//! request of it only the numbers.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use rust_decimal::Decimal;
use taximeter_billing::{BilledRequest, CostLines, HourKey};
use taximeter_ledger::{DecodeError, PostBytes, PostNumbers, PostNumbersReader};
use taximeter_pricing::{Flag, Source};

/// Most forms, and most bytes of their strings, that are kept for the next batch.
const KEPT_MAX: usize = 4096;
const KEPT_BYTES_MAX: usize = 2 << 20;

/// What requests with the same strings have in common.
#[derive(Debug)]
pub(super) struct Form {
    /// As [`PostBytes`] has them.
    pub(super) strings: Box<[u8]>,
    pub(super) tenant: String,
    pub(super) model: Option<String>,
    pub(super) upstream: String,
    provider: String,
    operation: String,
    route: String,
    key_id: Option<String>,
    labels: BTreeMap<String, String>,
    source: Source,
    is_pending: bool,
    numbers: PostNumbersReader,
    /// The lines of the cost of each request.
    pub(super) lines: CostLines,
}

/// Forms by their strings.
#[derive(Debug, Default)]
pub(super) struct Forms {
    forms: Vec<Form>,
    by_strings: HashMap<Box<[u8]>, usize, foldhash::fast::RandomState>,
    bytes: usize,
}

impl Form {
    fn read(post: &PostBytes<'_>) -> Result<Self, DecodeError> {
        let view = post.view()?;
        let numbers = PostNumbersReader::new(post.strings)?;
        let is_pending = view.flags.contains(&Flag::Pending);
        let source = if is_pending { Source::Unknown } else { view.source };
        let lines = numbers.cost().map(|cost| CostLines::of(cost, source));
        let model = view.response_model.or(view.request_model);
        Ok(Self {
            strings: post.strings.into(),
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
    pub(super) fn row(&self, numbers: &PostNumbers) -> BilledRequest<'_> {
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
        };
        if self.is_pending { row.pending() } else { row }
    }

    /// The key of the sums of such requests that were admitted in the hour of `at`.
    pub(super) fn key_in(&self, at: Timestamp) -> HourKey {
        let numbers = PostNumbers {
            started_at: at,
            input_tokens: None,
            cache_read_input_tokens: None,
            output_tokens: None,
            reasoning_output_tokens: None,
            amounts: None,
        };
        HourKey::of(&self.row(&numbers))
    }

    /// Whether a request of this form has used nothing, so that no bill counts it.
    pub(super) fn used_nothing(&self, numbers: &PostNumbers) -> bool {
        self.source == Source::None && numbers.amounts.is_none_or(|(amount, _)| amount.is_zero())
    }
}

impl Forms {
    /// Forgets the forms if there are too many.
    pub(super) fn tidy(&mut self) {
        if self.forms.len() > KEPT_MAX || self.bytes > KEPT_BYTES_MAX {
            *self = Self::default();
        }
    }

    pub(super) fn get(&self, index: usize) -> Option<&Form> {
        self.forms.get(index)
    }

    pub(super) const fn len(&self) -> usize {
        self.forms.len()
    }

    /// The form of a request, and its numbers. The quantities of its lines are appended to
    /// `quantities`.
    ///
    /// Errors: it is no request.
    pub(super) fn read(
        &mut self,
        post: &PostBytes<'_>,
        quantities: &mut Vec<Decimal>,
    ) -> Result<(usize, PostNumbers), DecodeError> {
        let index = match self.by_strings.get(post.strings) {
            Some(index) => *index,
            None => self.learn(post)?,
        };
        let form = self.forms.get(index).ok_or(DecodeError::Missing("form"))?;
        Ok((index, form.numbers.read(post.id, post.members, quantities)?))
    }

    fn learn(&mut self, post: &PostBytes<'_>) -> Result<usize, DecodeError> {
        let (form, index) = (Form::read(post)?, self.forms.len());
        self.bytes += form.strings.len();
        self.by_strings.insert(form.strings.clone(), index);
        self.forms.push(form);
        Ok(index)
    }
}
