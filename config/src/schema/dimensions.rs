//! The keys under `dimensions`.

use crate::json_schema::{required, without};
use crate::places::{BodyPath, HeaderPlace};
use crate::reader::{List, Optional, Required, Spanned, keys};
use crate::values::{BearerToken, Name};

keys! {
    /// Where requests say what they are part of, beside the names that Taximeter knows. What is given
    /// here comes first.
    RawDimensions {
        /// Where the session is: the task of an agent, with all its sub-agents.
        session: Optional<List<RawPlace>> = without("the names that Taximeter knows"),
        /// Where the agent within the session is.
        agent: Optional<List<RawPlace>> = without("the names that Taximeter knows"),
        /// Where the agent is that has started this one.
        parent_agent: Optional<List<RawPlace>> = without("the names that Taximeter knows"),
        /// Where the turn is.
        turn: Optional<List<RawPlace>> = without("the names that Taximeter knows"),
        /// Where the client program is.
        client: Optional<List<RawPlace>> = without("the names that Taximeter knows"),
        /// Where the end user is.
        end_user: Optional<List<RawPlace>> = without("the names that Taximeter knows"),
        /// Tags that records have, at most 8, each value with at most 64 bytes. A tag with several
        /// places has an entry for each, and the first that a request has counts.
        tags: Optional<List<RawTag>> = without("no tags"),
        /// The key of hashed names; at least 16 characters. Gateways that share a store need the same.
        secret: Optional<Spanned<BearerToken>> =
            without("a key that the gateway makes in `data_dir`").example("${env:TAXIMETER_SECRET}"),
    }
}

keys! {
    /// A place in a request: a header, or a member of the body.
    RawPlace {
        /// The header.
        header: Optional<Spanned<HeaderPlace>> = without("`body`").example("x-my-run"),
        /// The member of the body: `a`, or `a.b` for a member of an object.
        body: Optional<Spanned<BodyPath>> = without("`header`").example("metadata.run"),
    }
}

keys! {
    /// A tag, and where a request has it.
    RawTag {
        /// The name of the tag.
        name: Required<Spanned<Name>> = required().example("team"),
        /// The header.
        header: Optional<Spanned<HeaderPlace>> = without("`body`").example("x-team"),
        /// The member of the body: `a`, or `a.b` for a member of an object.
        body: Optional<Spanned<BodyPath>> = without("`header`").example("metadata.team"),
    }
}
