//! Sends a request again without the gateway's own question for usage, where the engine refuses a
//! member that only the gateway has added. The client gets the answer to its own request.

use std::sync::Arc;

use http::StatusCode;
use http::header::CONTENT_ENCODING;
use http::request::Parts;
use taximeter_framing::is_identity;
use taximeter_meter::Hidden;
use taximeter_system::clock;
use taximeter_telemetry::events::{QuestionRefused, UpstreamRetried};

use super::super::refuse::Refusal;
use super::super::route::{Chosen, Question};
use super::super::settle::Settlement;
use super::call::{Answer, call};
use crate::listen::{Peer, Worker};
use crate::refused_questions::Asked;

/// How much of a refusal is read before it is passed on, in bytes.
pub(super) const REFUSAL_BYTES_MAX: usize = 64 << 10;

/// `taximeter.cause` of a request that is sent again.
const CAUSE: &str = "question_refused";

/// The client's own request, kept while the engine may refuse what we have added to it.
pub(super) struct BareRequest {
    pub(super) question: Box<Question>,
    pub(super) head: Parts,
}

/// Whether engines answer so that do not know a member.
pub(super) fn may_be_refusal(status: StatusCode) -> bool {
    matches!(status, StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY)
}

impl BareRequest {
    /// The answer to this request, where `answer` refuses a member that only we have added. Else
    /// `answer`.
    ///
    /// Errors: there is no answer to this request, and the settlement has ended.
    pub(super) async fn instead(
        self,
        worker: &Arc<Worker>,
        peer: &Arc<Peer>,
        chosen: &mut Chosen,
        mut answer: Answer,
        settlement: &mut Option<Settlement>,
    ) -> Result<Answer, Refusal> {
        let Some(member) = self.refused_member(worker, &mut answer, settlement).await else {
            return Ok(answer);
        };
        // Some engines close a connection behind a refusal without saying so.
        drop(answer);
        if let Some(settlement) = settlement {
            settlement.tried(CAUSE);
            settlement.unasked();
        }
        let (gateway, upstream) = (&worker.gateway, &worker.gateway.upstream(chosen.index).name);
        gateway.telemetry.emit(&UpstreamRetried { upstream, cause: CAUSE });
        chosen.hidden = Hidden::default();
        chosen.body = self.question.bare;
        let path = self.head.uri.path().to_owned();
        let answer = call(worker, peer, self.head, chosen, settlement).await?;
        // Another refusal may have nothing to do with what we asked.
        if answer.head.status.is_success() {
            let model = chosen.request_model.as_deref();
            gateway.telemetry.emit(&QuestionRefused { upstream, path: &path, model, member });
            let asked = Asked { path, model: chosen.request_model.clone() };
            gateway.refused_questions(chosen.index).remember(clock::now(), asked, member);
        }
        Ok(answer)
    }

    /// The member of ours that an answer names. What is read of its body comes again.
    async fn refused_member(
        &self,
        worker: &Worker,
        answer: &mut Answer,
        settlement: &mut Option<Settlement>,
    ) -> Option<&'static str> {
        let settlement = settlement.as_mut().filter(|settlement| !settlement.is_overdue())?;
        // A client that leaves now owes nothing.
        settlement.answered(answer.head.status.as_u16(), &answer.head.headers);
        let mut codings = answer.head.headers.get_all(CONTENT_ENCODING).iter();
        if !codings.all(|coding| coding.to_str().is_ok_and(is_identity)) {
            return None;
        }
        let limit = settlement.time_left(worker.gateway.config.limits.upstream_idle_timeout);
        let refusal = clock::within(limit, answer.exchange.peek(REFUSAL_BYTES_MAX)).await?;
        self.question.added.iter().copied().find(|member| names(&refusal, member))
    }
}

/// Whether a text has a name that is no part of a longer one.
fn names(text: &[u8], name: &str) -> bool {
    let is_part =
        |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    memchr::memmem::find_iter(text, name).any(|at| {
        let before = at.checked_sub(1).and_then(|before| text.get(before));
        !is_part(before) && !is_part(text.get(at + name.len()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_a_member_by_its_whole_name() {
        for text in [
            "Unrecognized request argument supplied: stream_options",
            r#"{"detail":[{"loc":["body","stream_options"],"msg":"Extra inputs"}]}"#,
            "stream_options.include_usage: not permitted",
            "upstream_options, stream_options",
        ] {
            assert!(names(text.as_bytes(), "stream_options"), "{text}");
        }
        for text in ["", "upstream_options", "stream_options_2", "my_stream_options", "stream"] {
            assert!(!names(text.as_bytes(), "stream_options"), "{text}");
        }
    }
}
