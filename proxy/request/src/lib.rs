//! Reads requests: the body of a request in, what it asks for and its prompt out.
//!
//! Begin with `reader.rs`. A body is read while it passes, in JSON (`json_reader`) or as a form
//! (`form`): its model, whether it asks for a stream, its limits, and where to splice in the
//! question for usage. `prompt` reads a kept body again, for the text that is counted.
//!
//! # Invariants
//!
//! - Bytes are arguments. There is no socket, no clock, no async and no logging.
//! - Where one read ends and the next begins never changes the result.
//! - Requests are read strictly where readers differ, because an engine reads them too.
//! - What only the engine can judge passes.
//!
//! The shapes of routes and the habits of engines are those of the crate `meter`.

mod form;
mod json_reader;
mod prompt;
mod reader;

pub use json_reader::{
    BodyEdits, Context, Members, Note, Noted, Parameter, RequestFacts, RequestFault, Splice,
    names_context,
};
pub use prompt::{Prompt, prompt_chats, prompt_text, spoken_characters};
pub use reader::RequestReader;
