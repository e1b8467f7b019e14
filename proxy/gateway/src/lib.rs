//! The data plane: this crate accepts connections and carries each request from the client to the
//! engine and back.
//!
//! Begin with `journey.rs`. It is one request, top to bottom. `gateway.rs` holds what requests
//! share. `listen/` accepts connections.
//!
//! # Invariants
//!
//! - Each request that has a reservation in the ledger ends in exactly one post or void, whatever
//!   ends it.
//! - The reservation is in the kernel before any byte goes to the engine. The last bytes of an
//!   answer leave only when the journal has confirmed the entry that settles the request.
//!   `ledger.unavailable: serve` is the one exception.
//! - The bytes of an answer pass unchanged and at once.
//! - A fault in the meter never reaches the client. The bytes go on, and the usage becomes unknown.
//! - A panic ends one request and no other.
//!
//! This crate knows no provider's JSON (`meter` does), no price rules (`pricing`), no files of the
//! journal (`journal`), no database (`store`), and not how an event looks as a metric or a log line
//! (`telemetry`).
//!
//! # The steps of a request
//!
//! 1. **accept** (`listen/`): each worker is one thread with its own runtime and its own pool of
//!    engine connections. The first worker accepts connections. It hands each one to the worker
//!    that carries the fewest. One timer per connection ends slow heads and idle connections. The
//!    wrapper around the socket (`listen/peer.rs`) gives up on a client that does not read.
//! 2. **identify**: the gateway refuses a head that is ambiguous. It compares the path byte for
//!    byte with the routes. It finds the tenant: the first bytes of a key's SHA-256 select
//!    candidates, and the comparison takes constant time. It removes the key from the head.
//!    A credential of the client's own stays there, for an upstream that has none.
//! 3. **admit**: the gateway checks whether it is draining, whether memory is short, whether the
//!    ledger can be written and whether the tenant may have one more request. The reservation
//!    follows after the route is known, because the highest possible cost depends on the price, and
//!    the price depends on the upstream.
//! 4. **body** and **route**: the gateway reads the whole body, because it must be valid JSON
//!    before an engine sees it. It keeps the pieces as they came, inspects them as they arrive, and
//!    never serialises them again. It chooses the first upstream that serves the model. It splices
//!    the member that asks for usage between the bytes. An encoded request is read by a decoder and
//!    goes on as it came. Nothing can be spliced into it.
//! 5. **relay**: the body of the answer polls hyper's client connection itself. There is no task
//!    and no channel. Bytes that are ready together leave in one write, and nothing waits for more.
//!    A short answer with a `content-length` is collected first, so that its head can carry the
//!    receipt. If its bytes show a stream, it passes as it comes.
//! 6. **settle**: one value owns the open request from its reservation on. It makes exactly one
//!    post or void: at the end of the answer, at a refusal, or when it is dropped. A drop means
//!    that the client left. The entry is in the journal's queue when `settle` returns. The returned
//!    future is ready when the journal has confirmed the entry. The background runtime counts what
//!    the engine did not report.
//! 7. **report**: the gateway emits one event. `telemetry/src/events.rs` says how it looks.
//!
//! # Framing
//!
//! `net::framing` reads the bytes of both sides below hyper and is stricter than hyper. It reports
//! a fault where two readers could understand the bytes differently. The gateway cuts an answer at
//! that place. A client gets a refusal for a faulty request, in the usual format and after the
//! answers to its earlier requests (`listen/connection.rs`). On HTTP/2, `net::frames` reads the heads
//! of the frames. A connection that sends too many resets or empty frames ends.
//!
//! hyper's server cannot send interim answers (1xx). On HTTP/1.1 `listen/interim.rs` writes them
//! below hyper. On HTTP/2 they are dropped, because only hyper could write them.
//!
//! # Encoded answers
//!
//! An encoded answer passes as it came. A decoder in `meter` reads a copy, and stops at damage or
//! at its limits. So the client's `accept-encoding` goes to the engine, restricted to the encodings
//! that the decoder knows. The gateway asks for `identity` if the client names no encoding, and if
//! it must remove or add something: the usage event that only the gateway asked for, or a receipt.
//! If the engine encodes all the same, the gateway changes nothing: the usage event stays and the
//! receipt is left out.
//!
//! # The gateway's own question
//!
//! A stream may be asked for its usage (`request/src/json_reader/splice.rs`). If the engine answers 400 or
//! 422 and names a member that only the gateway has added, the client's own body goes to the engine
//! once more (`journey/relay/question.rs`). Nothing has been forwarded by then. The pieces of that
//! body are held until the head of the answer comes, and count as held. If the engine takes it,
//! `refused_questions.rs` remembers that for an hour.
//!
//! `known_dialect.rs` keeps apart what names the dialect of an upstream and what is only guessed from
//! marks in answers. A guess decides only whether a stream is asked.
//!
//! # When has a client left?
//!
//! A FIN from the client counts as leaving. A client that closes only its sending half looks the
//! same until the gateway writes. HTTP libraries do not do that, and an engine that works for
//! nobody is expensive.
//!
//! # What an aborted stream costs
//!
//! If the engine reported no usage, the gateway counts the text of every whole event that it handed
//! to the client's connection, including reasoning and the arguments of tool calls. Half an event
//! does not count, because nobody can read it. The gateway reads from the engine only as fast as
//! the client's socket takes the bytes. So the text that was counted but never left is at most
//! `relay_buffer_bytes` plus one write buffer (`header_bytes_max`), and none if the client kept up.
//! If the gateway has read the stream's end mark, the request is complete, even if the client has
//! left.
//!
//! With `on_client_left: drain` the gateway reads the rest of the answer for its usage alone
//! (`journey/relay/drain.rs`), for at most 30 s and for at most 64 answers at once. If no usage
//! comes, the count still ends where the client left.
//!
//! # Progress of streams
//!
//! About once a second a stream writes to the journal what its record would be if the client left
//! now, if that has changed (`journey/settle/progress.rs`). The timer that waits for the engine's
//! silence does this work. A tick over all open requests would need a lock on each. Nobody waits
//! for this entry. If the queue is full, the entry is left out.
//!
//! # Counting
//!
//! The gateway counts output while it passes if the vocabulary is surely the model's
//! (`journey/settle/passing.rs`, 512 bytes at a time). The background runtime counts the prompt
//! while the engine works, or at the end if the prompt is short. The engine's report is billed. The
//! gateway keeps its own count next to it, and flags a difference of more than a tenth.
//!
//! # Requests without a record
//!
//! `refusals.rs` counts by the minute what the gateway refuses, and requests that were admitted, used
//! nothing and came in a flood. Each request has a record or is counted, never both, but for the last
//! minute of a gateway that is killed.
//!
//! # Reload
//!
//! A `Gateway` is one configuration and the things made from it: the directory of keys, prices,
//! vocabularies. The state that lasts as long as the process is shared by all gateways of the
//! process: journal, telemetry, running requests. A reload makes a new `Gateway` and swaps it in. A
//! request keeps the `Gateway` under which it began, and the last request frees it. Connections
//! hold none. Each thread's `Worker` follows (`listen/worker.rs`) and keeps the idle connections to
//! upstreams that have not changed.
//!
//! # Running requests
//!
//! Each running request has a row in `live.rs`. The thread that carries the request writes it with
//! a few relaxed atomic stores per read and without a lock. Readers copy the rows.
//!
//! `/healthz` also depends on the workers: each worker reports every second. A worker that is
//! silent for 10 s makes `/healthz` answer 503, so that a liveness probe notices it.

pub mod batch_files;
pub mod chains;
mod charge_sum;
pub mod contexts;
pub mod counting;
mod fleet_vitals;
pub mod gateway;
pub mod health;
pub mod heartbeat;
mod held_bytes;
pub mod journey;
pub mod known_dialect;
pub mod listen;
pub mod live;
pub mod name_key;
pub mod permits;
mod probes;
mod recent;
pub mod recognise;
pub mod refusals;
pub mod refused_questions;
pub mod reload;
pub mod tariffs;
pub mod tokenizers;
mod unseen;
mod vitals;
