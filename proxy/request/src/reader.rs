//! Reads the body of a request, JSON or a form, while it passes.

use std::sync::Arc;

use crate::form::FormReader;
use crate::json_reader::{JsonReader, Members, RequestFacts, RequestFault};
use taximeter_meter::Wire;

/// Reads one request body.
#[derive(Debug)]
pub struct RequestReader {
    body: BodyReader,
    fault: Option<RequestFault>,
}

#[derive(Debug)]
enum BodyReader {
    Json(JsonReader),
    Form(FormReader),
}

impl RequestReader {
    /// A reader for a body in JSON on `wire`.
    #[must_use]
    pub fn json(wire: Wire) -> Self {
        Self::new(BodyReader::Json(JsonReader::new(wire)))
    }

    /// A reader for a body of `content_type` on `wire`; `None` when that is no form, or one whose
    /// boundary or text is not clear.
    #[must_use]
    pub fn form(wire: Wire, content_type: &str) -> Option<Self> {
        FormReader::new(wire, content_type).map(BodyReader::Form).map(Self::new)
    }

    const fn new(body: BodyReader) -> Self {
        Self { body, fault: None }
    }

    /// The same, for a body in JSON that is nested no deeper than this, the outermost object included.
    #[must_use]
    pub const fn nested(mut self, depth_max: usize) -> Self {
        if let BodyReader::Json(reader) = &mut self.body {
            reader.nest(depth_max);
        }
        self
    }

    /// The same, which also notes the request's parameters; a form has none.
    #[must_use]
    pub const fn with_parameters(mut self) -> Self {
        if let BodyReader::Json(reader) = &mut self.body {
            reader.note_parameters();
        }
        self
    }

    /// Notes these members as well; a form has none.
    pub fn note(&mut self, members: Arc<Members>) {
        if let BodyReader::Json(reader) = &mut self.body {
            reader.note(members);
        }
    }

    /// Feed the next bytes of the body. Where pieces begin and end carries no meaning.
    ///
    /// Errors: the first fault of the body; from then on the same again.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), RequestFault> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let result = match &mut self.body {
            BodyReader::Json(reader) => reader.read(bytes),
            BodyReader::Form(reader) => reader.read(bytes),
        };
        self.fault = result.clone().err();
        result
    }

    /// Close the body.
    ///
    /// Errors: the fault that `push` told; `InvalidJson` or `InvalidForm` when the body ends too
    /// early.
    pub fn finish(self) -> Result<RequestFacts, RequestFault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        match self.body {
            BodyReader::Json(reader) => reader.finish(),
            BodyReader::Form(reader) => reader.finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: &str = "multipart/form-data; boundary=x";

    #[test]
    fn a_fault_is_told_again_until_the_end() {
        let form = RequestReader::form(Wire::Images, FORM).unwrap();
        for mut reader in [RequestReader::json(Wire::ChatCompletions), form] {
            let fault = reader.push(b"{,").unwrap_err();
            assert_eq!(reader.push(br#""model":"m"}"#), Err(fault.clone()));
            assert_eq!(reader.finish(), Err(fault));
        }
    }
}
