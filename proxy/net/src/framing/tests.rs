//! Tests of the framing checks.

use proptest::prelude::*;

use super::*;

const OK: &str = "HTTP/1.1 200 OK\r\n";

fn framing() -> Framing {
    Framing::answers(1 << 10)
}

fn requests() -> Framing {
    Framing::requests(1 << 10, 10)
}

/// What is wrong with the answer, and how much of it is good; `None` where it ends as it should.
fn read(answer: &str) -> Option<(usize, FramingFault)> {
    let mut framing = framing();
    framing.expect(false);
    match framing.read(answer.as_bytes()) {
        Err(broken) => Some((broken.at, broken.fault)),
        Ok(()) => {
            assert!(matches!(framing.state, State::Between | State::UntilClose), "{framing:?}");
            None
        }
    }
}

/// Answers in one way only, each with a body that looks like the end of another.
fn clear() -> Vec<String> {
    [
        "Content-Length: 5\r\n\r\n0\r\n\r\n",
        "content-length:\t0 \r\n\r\n",
        "Transfer-Encoding: Chunked\r\n\r\n5\r\n0\r\n\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n00005;a=\"b\";c\r\nhello\r\nA\r\n0123456789\r\n000\r\n\
         X-Checksum: 1\r\n\r\n",
        "TE: x\r\nContent-Type: text/plain\r\nTransfer: y\r\n\r\nup to \n the \r close",
    ]
    .map(|rest| format!("{OK}{rest}"))
    .into_iter()
    .chain([
        "HTTP/1.0 200 \r\n\r\nuntil the close".into(),
        "HTTP/1.1 204\r\nContent-Length: 5\r\n\r\n".into(),
        "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n".into(),
        format!("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n{OK}Content-Length: 2\r\n\r\n{{}}"),
        "HTTP/1.1 101 Switching Protocols\r\n\r\n\n\n".into(),
    ])
    .collect()
}

/// Answers with what is wrong with them; all before the `|` is good.
const UNCLEAR: [(&str, FramingFault); 29] = [
    ("\r|\n", FramingFault::StatusLine),
    ("220 mail.example ESMTP\r|\n", FramingFault::StatusLine),
    ("HTTP/1.1 2xx OK\r|\n", FramingFault::StatusLine),
    ("HTTP/1.1 2000 OK\r|\n", FramingFault::StatusLine),
    ("HTTP/1.1 200 OK|\n\n", FramingFault::LineEnd),
    ("HTTP/1.1 200 OK\r|\r\n", FramingFault::LineEnd),
    ("HTTP/1.1 200 OK\r\nX: 1|\nContent-Length: 0\r\n\r\n", FramingFault::LineEnd),
    ("HTTP/1.1 200 OK\r\nX: 1\r|2\r\n\r\n", FramingFault::LineEnd),
    ("HTTP/1.1 200 OK\r\nX: 1\r\n|\n", FramingFault::LineEnd),
    ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r|\n", FramingFault::ContentLength),
    ("HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r|\n", FramingFault::ContentLength),
    ("HTTP/1.1 200 OK\r\nContent-Length: +2\r|\n", FramingFault::ContentLength),
    ("HTTP/1.1 200 OK\r\nContent-Length:\r|\n", FramingFault::ContentLength),
    ("HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775809\r|\n", FramingFault::ContentLength),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r|\n", FramingFault::TransferEncoding),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r|\n", FramingFault::TransferEncoding),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\ntransfer-encoding: chunked\r|\n",
        FramingFault::TransferEncoding,
    ),
    ("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r|\n", FramingFault::TransferEncoding),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r|\n", FramingFault::ClTe),
    ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r|\n", FramingFault::ClTe),
    ("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nX: 1|\n", FramingFault::LineEnd),
    ("chunked 5\r\nhello\r\n|zz\r\n", FramingFault::ChunkSize),
    ("chunked |\r\n", FramingFault::ChunkSize),
    ("chunked |;a\r\n", FramingFault::ChunkSize),
    ("chunked 5| \r\nhello\r\n", FramingFault::ChunkSize),
    ("chunked 5|h\r\nhello\r\n", FramingFault::ChunkSize),
    ("chunked 0000000000000000|5\r\nhello\r\n", FramingFault::ChunkSize),
    ("chunked 5|\nhello\r\n", FramingFault::LineEnd),
    ("chunked 5\r\nhello|world", FramingFault::ChunkEnd),
];

fn unclear(answer: &str) -> (String, usize) {
    let chunked = format!("{OK}Transfer-Encoding: chunked\r\n\r\n");
    let answer = match answer.strip_prefix("chunked ") {
        Some(body) => format!("{chunked}{body}"),
        None => answer.to_owned(),
    };
    let at = answer.find('|').unwrap();
    (answer.replacen('|', "", 1), at)
}

#[test]
fn an_answer_that_can_be_read_in_one_way_is_read_to_its_end() {
    for answer in clear() {
        assert_eq!(read(&answer), None, "{answer:?}");
        let cut = answer.split_at(answer.len() - 1).0;
        let mut framing = framing();
        framing.expect(false);
        framing.read(cut.as_bytes()).unwrap();
        let ends = answer.contains("close") || answer.contains(" 101 ");
        assert_ne!(framing.state, State::Between, "{cut:?}");
        assert_eq!(framing.state == State::UntilClose, ends, "{cut:?}");
    }
}

#[test]
fn an_answer_that_two_readers_could_read_differently_is_good_up_to_where_they_would() {
    for (answer, fault) in UNCLEAR {
        let (answer, at) = unclear(answer);
        assert_eq!(read(&answer), Some((at, fault)), "{answer:?}");
    }
}

#[test]
fn requests_follow_one_another_and_the_first_unclear_one_is_the_last() {
    let clear = [
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "\r\nPOST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n\n\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding:Chunked \r\n\r\n2\r\n\n\n\r\n0\r\n\r\n",
        "OPTIONS * HTTP/1.0\r\nX:\r\nY: \u{e9}\t1\r\n\r\nCONNECT a.b-c:1 HTTP/1.1\r\n\r\n",
    ];
    for (unclear, fault) in [
        ("|\nGET / HTTP/1.1\r\n", FramingFault::LineEnd),
        ("\r|\r\n", FramingFault::LineEnd),
        ("GET /|\n\r\n", FramingFault::LineEnd),
        ("|\u{16}\u{3}\u{1}", FramingFault::RequestLine),
        ("| / HTTP/1.1\r\n", FramingFault::RequestLine),
        ("|GET\r\n", FramingFault::RequestLine),
        ("|GET  HTTP/1.1\r\n", FramingFault::RequestLine),
        ("|GET /\r\n", FramingFault::Version),
        ("|GET / \r\n", FramingFault::Version),
        ("|PRI * HTTP/2.0\r\n", FramingFault::Version),
        ("|GET / HTTP/1.2\r\n", FramingFault::Version),
        ("|GET / HTTP/1.1 \r\n", FramingFault::Version),
        ("|GET / http/1.1\r\n", FramingFault::Version),
        ("|GET http://a/ HTTP/1.1\r\n", FramingFault::Target),
        ("|GET a:1 HTTP/1.1\r\n", FramingFault::Target),
        ("|GET /#a HTTP/1.1\r\n", FramingFault::Target),
        ("|GET /\u{e9} HTTP/1.1\r\n", FramingFault::Target),
        ("|OPTIONS *x HTTP/1.1\r\n", FramingFault::Target),
        ("|OPTIONS ** HTTP/1.1\r\n", FramingFault::Target),
        ("|CONNECT /a HTTP/1.1\r\n", FramingFault::Target),
        ("|CONNECT a/b HTTP/1.1\r\n", FramingFault::Target),
        ("|CONNECT a@b:1 HTTP/1.1\r\n", FramingFault::Target),
        ("|CONNECT a:1:2 HTTP/1.1\r\n", FramingFault::Target),
        ("|CONNECT :1 HTTP/1.1\r\n", FramingFault::Target),
        ("GET / HTTP/1.1\r\n| X: 1\r\n", FramingFault::HeaderName),
        ("GET / HTTP/1.1\r\n|\tX: 1\r\n", FramingFault::HeaderName),
        ("GET / HTTP/1.1\r\nX: 1\r\n| 2\r\n", FramingFault::HeaderValue),
        ("GET / HTTP/1.1\r\n|X: a\0b\r\n", FramingFault::HeaderValue),
        ("GET / HTTP/1.1\r\n|X: a\u{7f}\r\n", FramingFault::HeaderValue),
        ("GET / HTTP/1.1\r\n|X : 1\r\n", FramingFault::HeaderName),
        ("GET / HTTP/1.1\r\n|: 1\r\n", FramingFault::HeaderName),
        ("GET / HTTP/1.1\r\n|X\r\n", FramingFault::HeaderName),
        ("GET / HTTP/1.1\r\n|X\u{e9}: 1\r\n", FramingFault::HeaderName),
        ("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r|\n", FramingFault::TransferEncoding),
        (
            "POST / HTTP/1.1\r\nContent-Length: 0\r\nContent-Length: 0\r|\n",
            FramingFault::ContentLength,
        ),
        (
            "POST / HTTP/1.1\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r|\n",
            FramingFault::ClTe,
        ),
        ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1|_0\r\n", FramingFault::ChunkSize),
    ] {
        for before in 0..=clear.len() {
            let before = clear[..before].concat();
            let good = before.len() + unclear.find('|').unwrap();
            let requests = before + &unclear.replace('|', "");
            let broken = Framing::requests(1 << 10, 10).read(requests.as_bytes());
            assert_eq!(broken, Err(Broken { at: good, fault }), "{requests:?}");
        }
    }
}

#[test]
fn no_transfer_coding_passes_but_chunked() {
    for (codings, fault) in [
        ("chunked", None),
        (" \tCHUNKED\t", None),
        ("gzip, chunked", Some(FramingFault::Encoded)),
        ("X-Compress ,deflate,Chunked", Some(FramingFault::Encoded)),
        ("gzip", Some(FramingFault::TransferEncoding)),
        ("chunked, gzip", Some(FramingFault::TransferEncoding)),
        ("chunked, chunked", Some(FramingFault::TransferEncoding)),
        ("identity, chunked", Some(FramingFault::TransferEncoding)),
        (", chunked", Some(FramingFault::TransferEncoding)),
        ("chunked,", Some(FramingFault::TransferEncoding)),
        ("chunked;q=1", Some(FramingFault::TransferEncoding)),
        ("xchunked", Some(FramingFault::TransferEncoding)),
        ("", Some(FramingFault::TransferEncoding)),
        ("chunked\r\nTransfer-Encoding: chunked", Some(FramingFault::TransferEncoding)),
        (&"gzip, ".repeat(20), Some(FramingFault::TransferEncoding)),
    ] {
        let head = |version| format!("POST / {version}\r\nTransfer-Encoding: {codings}\r\n\r\n");
        let read = |head: String| requests().read(head.as_bytes()).map_err(|b| b.fault).err();
        assert_eq!(read(head("HTTP/1.1")), fault, "{codings:?}");
        assert_eq!(read(head("HTTP/1.0")), Some(FramingFault::TransferEncoding), "{codings:?}");
    }
}

#[test]
fn a_requests_head_is_bounded_in_bytes_and_in_fields() {
    let read = |fields: usize, bytes: usize| {
        let start = format!("GET / HTTP/1.1\r\n{}", "a:1\r\n".repeat(fields - 1));
        let padding = "x".repeat(bytes - start.len() - "b:\r\n\r\n".len());
        let mut requests = requests();
        let head = format!("{start}b:{padding}\r\n\r\n");
        (requests.read(head.as_bytes()).map_err(|broken| broken.fault), requests)
    };
    let (fault, mut requests) = read(10, 1 << 10);
    assert_eq!((fault, requests.state), (Ok(()), State::Between));
    requests.read(b"GET /next HTTP").unwrap();
    assert_eq!(requests.first_line(), b"GET /next HTTP");
    assert_eq!(read(10, (1 << 10) + 1).0, Err(FramingFault::HeadTooLarge));
    for (length, fault) in [(65_534, Ok(())), (65_535, Err(FramingFault::TargetTooLong))] {
        let mut requests = Framing::requests(1 << 20, 10);
        let target = "x".repeat(length - 1);
        assert_eq!(requests.read(format!("GET /{target}").as_bytes()).map_err(|b| b.fault), fault);
    }
    let (fault, requests) = read(11, 1 << 10);
    assert_eq!(fault, Err(FramingFault::TooManyFields));
    assert_eq!(requests.first_line(), b"GET / HTTP/1.1");
}

#[test]
fn the_answer_to_head_has_no_body() {
    let mut framing = framing();
    framing.expect(true);
    framing.read(format!("{OK}Content-Length: 50\r\n\r\n").as_bytes()).unwrap();
    assert_eq!(framing.state, State::Between);
}

#[test]
fn a_head_is_bounded_with_the_interim_ones_before_it() {
    let hints = "HTTP/1.1 103 Early Hints\r\n\r\n";
    for (before, spare) in [("", 0), (hints, 0), ("", 1), (hints, 1)] {
        let rest = "Content-Length: 0\r\n\r\n";
        let padding = (1 << 10) - before.len() - OK.len() - "X: \r\n".len() - rest.len() + spare;
        let answer = format!("{before}{OK}X: {}\r\n{rest}", "x".repeat(padding));
        let fault = (spare > 0).then_some((1 << 10, FramingFault::HeadTooLarge));
        assert_eq!(read(&answer), fault);
    }
}

#[test]
fn what_nobody_asked_for_is_not_looked_at() {
    let mut framing = framing();
    framing.read(b"\n\n").unwrap();
    framing.expect(false);
    framing.read(format!("{OK}Content-Length: 0\r\n\r\nHTTP/1.1 200 OK\n").as_bytes()).unwrap();
    framing.expect(false);
    assert_eq!(framing.read(b"HTTP/1.1 200 OK\n").map_err(|broken| broken.at), Err(15));
}

proptest! {
    #[test]
    fn reads_may_split_anywhere(cuts in proptest::collection::vec(0..200usize, 0..8)) {
        let unclear = UNCLEAR.iter().map(|(answer, _)| unclear(answer).0);
        for answer in clear().into_iter().chain(unclear) {
            let mut framing = framing();
            framing.expect(false);
            let mut cuts: Vec<_> = cuts.iter().map(|&cut| cut.min(answer.len())).collect();
            cuts.sort_unstable();
            let (mut at, mut broken) = (0, None);
            for cut in cuts.into_iter().chain([answer.len()]) {
                let part = framing.read(&answer.as_bytes()[at..cut]);
                broken = part.map_err(|broken| (at + broken.at, broken.fault)).err();
                at = cut;
                if broken.is_some() {
                    break;
                }
            }
            prop_assert_eq!(broken, read(&answer), "{:?}", answer);
        }
    }

    #[test]
    fn a_requests_fault_is_the_same_however_it_comes(cut in 0..60usize) {
        for (request, fault) in [
            ("GET / HTTP/1.1\r\nHost: a\r\nX : 1\r\n", FramingFault::HeaderName),
            ("GET / HTTP/1.1\r\nHost: a\0b\r\n", FramingFault::HeaderValue),
            ("GET / HTTP/2.0\r\nHost: a\r\n", FramingFault::Version),
            ("GET http://a/ HTTP/1.1\r\nHost: a\r\n", FramingFault::Target),
            ("GET /\r\nHost: a\r\n", FramingFault::Version),
        ] {
            let (one, two) = request.as_bytes().split_at(cut.min(request.len()));
            let mut requests = requests();
            let broken = requests.read(one).and_then(|()| requests.read(two));
            prop_assert_eq!(broken.map_err(|broken| broken.fault), Err(fault), "{:?}", request);
        }
    }

    #[test]
    fn nothing_that_comes_is_too_much(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let mut framing = framing();
        framing.expect(false);
        if let Err(broken) = framing.read(&bytes) {
            prop_assert!(broken.at < bytes.len());
        }
    }
}
