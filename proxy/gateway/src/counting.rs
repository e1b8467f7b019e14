//! Counts the tokens of a prompt. It renders the model's own chat template if one is known, and
//! OpenAI's message format otherwise.

use jiff::Timestamp;
use taximeter_meter::Wire;
use taximeter_request::{prompt_chats, prompt_text};
use taximeter_tokenizer::{ChatTemplate, Choice, Count, Tokenizer};

/// What counts the prompts of a model.
#[derive(Debug, Clone)]
pub struct Counting {
    /// The model's vocabulary, or the nearest one.
    pub choice: Choice,
    /// What stands around messages and prompts.
    pub form: Form,
}

/// What a model reads around the texts of a prompt.
#[derive(Debug, Clone)]
pub enum Form {
    /// OpenAI's.
    OpenAi,
    /// The model's own; its chat template, if it is known.
    Own(Option<ChatTemplate>),
}

impl Counting {
    /// What is built in for `model`.
    pub fn built_in(model: &str) -> Self {
        Self { choice: Tokenizer::for_model(model), form: Form::OpenAi }
    }

    /// The same, of which one count takes so much text, in bytes.
    pub fn within(self, bytes_max: usize) -> Self {
        let Choice { tokenizer, exact } = self.choice;
        Self { choice: Choice { tokenizer: tokenizer.within(bytes_max), exact }, ..self }
    }

    /// Whether a short prompt is counted in microseconds: nothing has to be loaded or rendered.
    pub(crate) fn is_quick(&self) -> bool {
        self.choice.tokenizer.is_loaded() && !matches!(self.form, Form::Own(Some(_)))
    }

    /// What was found in the files of a model.
    pub const fn of_files(tokenizer: Tokenizer, template: Option<ChatTemplate>) -> Self {
        Self { choice: Choice { tokenizer, exact: true }, form: Form::Own(template) }
    }
}

/// Tokens of the prompt in `body`, a request for `model` on `wire`; `None` is the model that the
/// body names.
///
/// Exact for texts, for chats of texts whose template is known, and for chats of OpenAI's models;
/// an estimate, and marked as one, otherwise. `now` is for templates that tell the date. Takes
/// milliseconds for long prompts.
pub fn input_tokens(
    wire: Wire,
    model: Option<&str>,
    body: &[u8],
    counting: &Counting,
    now: Timestamp,
) -> Count {
    let Choice { tokenizer, exact } = &counting.choice;
    let prompt = || prompt_text(wire, model, body);
    if let Form::Own(Some(template)) = &counting.form
        && let Some(chats) = prompt_chats(wire, body)
        && let Ok(rendered) =
            chats.iter().map(|chat| template.render(chat, now)).collect::<Result<Vec<_>, _>>()
    {
        let media = rendered.iter().any(|chat| chat.media);
        let image_tokens = if media { prompt().image_tokens } else { 0 };
        let none = Count { tokens: image_tokens, estimated: media || !exact };
        return rendered.iter().fold(none, |sum, chat| {
            let count = tokenizer.count_rendered(&chat.text);
            let tokens = sum.tokens + count.tokens;
            Count { tokens, estimated: sum.estimated || count.estimated }
        });
    }
    let prompt = prompt();
    let count = tokenizer.count(&prompt.texts);
    let is_plain = matches!(wire, Wire::Completions | Wire::Embeddings | Wire::TokenIds);
    let (around, fits) = match &counting.form {
        Form::OpenAi => (0, true),
        // Each prompt is framed by itself.
        Form::Own(_) if is_plain => (tokenizer.framing_tokens() * prompt.texts.len() as u64, true),
        Form::Own(_) => (0, false),
    };
    // Ids of tokens need no vocabulary.
    let is_known = *exact || is_plain && prompt.texts.is_empty();
    Count {
        tokens: prompt.tokens + prompt.image_tokens + around + count.tokens,
        estimated: count.estimated || prompt.estimated || !is_known || !fits,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHAT: &str = r#"{"model":"gpt-4o","messages":[{"role":"user","content":"hello world"}]}"#;

    fn own(template: Option<&str>) -> Counting {
        let template = template.map(|source| ChatTemplate::new(source, []).unwrap());
        Counting::of_files(Tokenizer::for_model("gpt-4o").tokenizer, template)
    }

    fn count(wire: Wire, body: &str, counting: &Counting) -> (u64, bool) {
        let count = input_tokens(wire, None, body.as_bytes(), counting, Timestamp::UNIX_EPOCH);
        (count.tokens, count.estimated)
    }

    #[test]
    fn a_chat_of_openais_is_its_texts_in_openais_form() {
        let counting = Counting::built_in("gpt-4o");
        assert_eq!(count(Wire::ChatCompletions, CHAT, &counting), (9, false));
        let unknown = Counting::built_in("tiny");
        assert_eq!(count(Wire::ChatCompletions, CHAT, &unknown), (9, true));
    }

    #[test]
    fn a_template_that_is_known_renders_the_prompt() {
        let template = "{% for m in messages %}{{ m.content }}{% endfor %}";
        assert_eq!(count(Wire::ChatCompletions, CHAT, &own(Some(template))), (2, false));
    }

    #[test]
    fn each_chat_of_a_batch_is_rendered_by_itself() {
        let template = "hello {% for m in messages %}{{ m.content }}{% endfor %}";
        let batch = r#"{"messages":[[{"role":"user","content":"world"}],[{"role":"user","content":"world"}]]}"#;
        assert_eq!(count(Wire::ChatBatch, batch, &own(Some(template))), (4, false));
    }

    #[test]
    fn a_response_is_rendered_where_it_is_plain() {
        let counting = own(Some("{% for m in messages %}{{ m.content }}{% endfor %}"));
        let of = |rest: &str| {
            count(Wire::Responses, &format!(r#"{{"input":"hello world"{rest}}}"#), &counting)
        };
        assert_eq!(of(""), (2, false));
        assert!(of(r#","previous_response_id":"resp_1""#).1);
    }

    #[test]
    fn a_template_that_cannot_render_leaves_an_estimate_in_openais_form() {
        let raising = "{{ raise_exception('no') }}";
        for counting in [own(Some(raising)), own(None)] {
            assert_eq!(count(Wire::ChatCompletions, CHAT, &counting), (9, true));
        }
    }

    #[test]
    fn images_are_added_to_what_a_template_renders() {
        let body = r#"{"messages":[{"role":"user","content":[{"type":"text","text":"hello world"},
            {"type":"image_url","image_url":{"url":"https://example.com/"}}]}]}"#;
        let template = "{% for m in messages %}{{ m.content }}{% endfor %}";
        assert_eq!(count(Wire::ChatCompletions, body, &own(Some(template))), (2 + 765, true));
    }

    #[test]
    fn a_plain_prompt_is_counted_as_it_is() {
        let body = r#"{"prompt":["hello world","hello"]}"#;
        assert_eq!(count(Wire::Completions, body, &own(None)), (3, false));
    }

    #[test]
    fn ids_of_tokens_are_counted_exactly_whatever_the_vocabulary() {
        let unknown = Counting::built_in("tiny");
        for (wire, body) in [
            (Wire::TokenIds, r#"{"token_ids":[1,2,3],"sampling_params":{"n":2}}"#),
            (Wire::Completions, r#"{"prompt":[1,2,3]}"#),
        ] {
            assert_eq!(count(wire, body, &unknown), (3, false), "{body}");
        }
        let images = r#"{"token_ids":[1,2],"features":{"mm_hashes":{}}}"#;
        assert_eq!(count(Wire::TokenIds, images, &unknown), (2, true));
    }
}
