//! When the admin address answers each problem, and what to do: the last part of
//! `docs/reference/errors.md`.

use std::fmt::Write as _;

use jiff::Timestamp;
use taximeter_store::StoreError;
use taximeter_tests::generated::is_fresh;

use super::ApiError;

/// Names each problem type, with an example, when it happens, and what to do. A problem that is not
/// named does not compile.
macro_rules! explained {
    ($($named:pat => $example:expr, $when:literal, $action:literal;)+) => {
        fn explained() -> Vec<(ApiError, &'static str, &'static str)> {
            let all = vec![$(($example, $when, $action)),+];
            for (problem, ..) in &all {
                match problem {
                    $($named => {})+
                }
            }
            all
        }
    };
}

explained! {
    ApiError::Parameter { .. }
    | ApiError::Unknown { .. }
    | ApiError::Repeated { .. }
    | ApiError::Missing { .. }
    | ApiError::Period(_)
    | ApiError::PeriodParams => ApiError::PeriodParams,
        "A query parameter is unknown, missing, given twice, or cannot be read.",
        "Correct the parameter. `parameter`, `got` and `allowed` name it, its value and what it may be.";
    ApiError::Unauthorised => ApiError::Unauthorised,
        "The request has no token of `admin_token` or `admin_tokens`, or a wrong one. Every request \
         that is not GET or HEAD needs one, also on loopback.",
        "Send `authorization: Bearer TOKEN`, or the token as the password of HTTP Basic.";
    ApiError::NoRight(_) => ApiError::NoRight("change"),
        "The token is one of the configuration, and its `may` lacks what this needs. `admin_token` \
         may only read.",
        "Use another token, or add the right to it.";
    ApiError::ForeignOrigin => ApiError::ForeignOrigin,
        "A browser sent a request that is not GET or HEAD for a page of another origin.",
        "Send the request from a program.";
    ApiError::Uncertified => ApiError::Uncertified,
        "There is no `admin_token`, and the caller shows no certificate that `admin_tls.client_ca` \
         has signed.",
        "Connect with such a certificate.";
    ApiError::Misdirected(_) => ApiError::Misdirected("example.com".to_owned()),
        "The `host` header is not an IP address or localhost, and there is no `admin_token`. A web \
         page may have sent the request through a browser.",
        "Use the IP address or `localhost`, or set an `admin_token`.";
    ApiError::NotFound(_) => ApiError::NotFound("x".to_owned()),
        "Nothing is at this path, or no record has this id.",
        "Check the path against the [API](api.md). A record appears a moment after its request ends.";
    ApiError::Method => ApiError::Method,
        "The method is not GET or HEAD.",
        "Use GET. Nothing can be changed here.";
    ApiError::Bill(_) | ApiError::TooLarge(_) | ApiError::Lines { .. } =>
        ApiError::Lines { lines: 2, max: 1 },
        "The sum cannot be made: it has too many lines, two currencies, or an amount that is too \
         large.",
        "Group by less, or ask for a shorter period.";
    ApiError::Outside(_) => ApiError::Outside("x".to_owned()),
        "An export with `strict=true` has events that the receiver takes no more, because of their \
         age. `detail` says how many, and from when.",
        "Ask for a shorter period, or without `strict`.";
    ApiError::DetailsGone(_) =>
        ApiError::DetailsGone(StoreError::DetailsGone { from: Timestamp::UNIX_EPOCH }),
        "Only sums by the hour are left of the time that was asked for: its single requests are older than \
         they are kept, or there was no room for them.",
        "Ask for a time from the day on that `detail` names, or for bills of whole hours.";
    ApiError::Busy(_) => ApiError::Busy("x".to_owned()),
        "Too many requests of this kind run already.",
        "Try again when one has ended.";
    ApiError::Slow { .. } => ApiError::Slow { seconds: 1 },
        "The store did not answer in time.",
        "Ask for a shorter period.";
    ApiError::Store(_) | ApiError::Export(_) => ApiError::Export("x".to_owned()),
        "The store cannot answer.",
        "Check the database and `fault` in `/api/v1/status`.";
    ApiError::Internal => ApiError::Internal,
        "Taximeter has a bug.",
        "Look in the log, and report the bug.";
}

const HEAD: &str = "
## The admin address

The API on the admin address answers errors as problem details (RFC 9457), with the media type `application/problem+json`. `type`
is `urn:taximeter:problem:` and one of the words below. `detail` says what happened and what to do. Browsers get a page instead.

| status | type | title | when | what to do |
|---|---|---|---|---|
";

fn page() -> String {
    let mut page = HEAD.to_owned();
    for (problem, when, action) in explained() {
        let (status, word, title) = problem.facts();
        let status = status.as_u16();
        // Writing to a string cannot fail.
        let _ = writeln!(page, "| {status} | `{word}` | {title} | {when} | {action} |");
    }
    page
}

#[test]
fn the_reference_of_problems_is_fresh() {
    let with_part = |stands: &str| {
        let at = stands.find("\n## The admin address\n").unwrap_or(stands.len());
        stands[..at].to_owned() + &page()
    };
    assert_eq!(is_fresh("docs/reference/errors.md", with_part), Ok(()));
}
