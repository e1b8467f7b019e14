//! Reads the body of a request. It limits the size, inspects the pieces as they arrive, and keeps
//! them unchanged.

use std::error::Error as _;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, Method};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use taximeter_framing::{DecodeFault, Decoder, is_identity};
use taximeter_meter::Wire;
use taximeter_net::upstream::RequestBody;
use taximeter_request::{Members, RequestFacts, RequestReader};
use taximeter_system::clock;

use super::identify::Call;
use super::refuse::Refusal;
use crate::gateway::{Gateway, HeldBytes};

/// What the client ordered: its body, and what we read from it.
pub(super) struct Order {
    pub body: RequestBody,
    /// What the body says, where it came encoded and we have read it.
    pub plain: Option<RequestBody>,
    /// `None` where the body is not ours to read.
    pub facts: Option<RequestFacts>,
    /// Counts the body against the total while it is held.
    pub held: HeldBytes,
}

/// Reads the whole body.
///
/// Errors: too large, too slow, badly framed; where we meter also not JSON, or JSON that cannot be
/// taken, or encoded in a way that cannot be undone.
pub(super) async fn read(
    gateway: &Gateway,
    call: &Call,
    headers: &HeaderMap,
    noted: &Arc<Members>,
    mut incoming: Incoming,
) -> Result<Order, Refusal> {
    let limits = &gateway.config.limits;
    let bytes_max = limits.body_bytes_max;
    if announced(headers).is_some_and(|length| length > bytes_max as u64) {
        return Err(Refusal::TooLarge { bytes_max });
    }
    let mut reader = reader(call, headers, limits.json_depth_max)?;
    if let Some(reader) = &mut reader {
        reader.note(noted.clone());
    }
    // Spans tell of them, and nothing else.
    let reader = if gateway.telemetry.traces.is_some() {
        reader.map(RequestReader::with_parameters)
    } else {
        reader
    };
    let mut reading = reader.map(|reader| Reading::new(gateway, headers, reader)).transpose()?;
    let mut body = RequestBody::default();
    let mut held = gateway.hold();
    let deadline = call.started + limits.request_timeout;
    loop {
        let left = deadline.saturating_duration_since(clock::now());
        let limit = limits.body_read_timeout.min(left);
        let frame = match clock::within(limit, incoming.frame()).await {
            None => return Err(Refusal::BodyTimeout),
            Some(None) => break,
            Some(Some(Err(fault))) => return Err(broken(&fault)),
            Some(Some(Ok(frame))) => frame,
        };
        let Ok(piece) = frame.into_data() else { continue };
        if body.len() + piece.len() as u64 > bytes_max as u64 {
            return Err(Refusal::TooLarge { bytes_max });
        }
        held.add(piece.len())?;
        if let Some(reading) = &mut reading {
            reading.push(&piece, &mut held)?;
        }
        body.push(piece);
    }
    if call.method == Method::GET || call.method == Method::HEAD {
        // It means nothing, and an engine might take it for the next request.
        body = RequestBody::default();
    }
    let (facts, plain) = match reading {
        Some(reading) => reading.finish().map(|(facts, plain)| (Some(facts), plain))?,
        None => (None, None),
    };
    Ok(Order { body, plain, facts, held })
}

/// A body being read: as it comes, or beside it, decoded.
struct Reading {
    reader: RequestReader,
    encoded: Option<Encoded>,
}

/// A body that came encoded.
struct Encoded {
    decoder: Decoder,
    bytes_max: u64,
    plain: RequestBody,
    /// Counts the decoder's own memory while there is one.
    _window: HeldBytes,
}

impl Reading {
    fn new(gateway: &Gateway, headers: &HeaderMap, reader: RequestReader) -> Result<Self, Refusal> {
        let mut codings = Vec::new();
        for value in headers.get_all(CONTENT_ENCODING) {
            codings.push(value.to_str().map_err(|_| DecodeFault::Unknown)?);
        }
        let codings = codings.join(",");
        if codings.split(',').all(is_identity) {
            return Ok(Self { reader, encoded: None });
        }
        let limits = &gateway.config.limits;
        let decoder = Decoder::new(&codings, limits.decode_ratio_max)?;
        let mut window = gateway.hold();
        window.add(decoder.memory_bytes_max())?;
        let bytes_max = limits.decode_bytes_max as u64;
        let encoded =
            Encoded { decoder, bytes_max, plain: RequestBody::default(), _window: window };
        Ok(Self { reader, encoded: Some(encoded) })
    }

    fn push(&mut self, piece: &[u8], held: &mut HeldBytes) -> Result<(), Refusal> {
        let Self { reader, encoded } = self;
        let Some(Encoded { decoder, bytes_max, plain, .. }) = encoded else {
            return Ok(reader.push(piece)?);
        };
        decoder.feed(piece, &mut |text| {
            if plain.len() + text.len() as u64 > *bytes_max {
                return Err(DecodeFault::TooLarge.into());
            }
            held.add(text.len())?;
            reader.push(text)?;
            plain.push(Bytes::copy_from_slice(text));
            Ok(())
        })
    }

    /// What the body asks for, and its text where that is not what came.
    fn finish(self) -> Result<(RequestFacts, Option<RequestBody>), Refusal> {
        let plain = match self.encoded {
            None => None,
            Some(encoded) if encoded.decoder.is_whole() => Some(encoded.plain),
            Some(_) => return Err(DecodeFault::Damaged.into()),
        };
        Ok((self.reader.finish()?, plain))
    }
}

/// Why a body ended before its end: hyper says so by the kind of the cause.
fn broken(fault: &hyper::Error) -> Refusal {
    let cause = fault.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    match cause.map(io::Error::kind) {
        Some(io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) => {
            Refusal::BadFraming { cause: "body" }
        }
        _ => Refusal::ClientLeft,
    }
}

fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// A reader where the body must be one that we understand: wherever we meter.
fn reader(
    call: &Call,
    headers: &HeaderMap,
    depth_max: usize,
) -> Result<Option<RequestReader>, Refusal> {
    let wire = call.wire();
    let json = is_json(headers) || call.route.takes_any_type();
    if wire == Wire::Opaque && !(json && call.route.names_model()) {
        return Ok(None);
    }
    if json {
        return Ok(Some(RequestReader::json(wire).nested(depth_max)));
    }
    let form = media_type(headers).filter(|_| wire.takes_form());
    form.and_then(|form| RequestReader::form(wire, form)).ok_or(Refusal::MediaType).map(Some)
}

/// The media type with its parameters. Of two the engine could believe the other.
fn media_type(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(CONTENT_TYPE).iter();
    let one = values.next().filter(|_| values.next().is_none());
    one.and_then(|value| value.to_str().ok())
}

/// `application/json` with any parameters, and what ends in `+json`.
fn is_json(headers: &HeaderMap) -> bool {
    let Some(value) = media_type(headers) else { return false };
    let kind = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_told_by_its_media_type_alone() {
        for (value, json) in [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("application/problem+json", true),
            ("text/plain", false),
            ("multipart/form-data; boundary=x", false),
            ("application/jsonlines", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, value.parse().unwrap());
            assert_eq!(is_json(&headers), json, "{value}");
        }
        assert!(!is_json(&HeaderMap::new()));
        let mut two = HeaderMap::new();
        for value in ["application/json", "text/plain"] {
            two.append(CONTENT_TYPE, value.parse().unwrap());
        }
        assert!(!is_json(&two));
    }
}
