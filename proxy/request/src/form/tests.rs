use proptest::prelude::*;

use super::*;
use crate::RequestReader;

const TYPE: &str = "multipart/form-data; boundary=x-x";

/// A form of fields and a file, as clients write it.
const FORM: &str = concat!(
    "--x-x\r\n",
    "Content-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n",
    "Content-Type: audio/wav\r\n\r\n",
    "RIFF\r\n--x-\r\r\n--x\r\n--\r\n\r\nname=\"model\"\r\n",
    "--x-x\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nwhisper-1\r\n",
    "--x-x\r\ncontent-disposition: form-data; name=stream\r\n\r\nTrue\r\n",
    "--x-x\r\nContent-Disposition: form-data; name=\"n\"\r\n\r\n2\r\n",
    "--x-x\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\n\r\n",
    "--x-x--\r\n",
);

fn read_in(wire: Wire, pieces: &[&[u8]]) -> Result<RequestFacts, RequestFault> {
    let mut reader = RequestReader::form(wire, TYPE).unwrap();
    for piece in pieces {
        reader.push(piece)?;
    }
    reader.finish()
}

fn read(body: &str) -> Result<RequestFacts, RequestFault> {
    read_in(Wire::Transcriptions, &[body.as_bytes()])
}

/// A form of one field.
fn field(disposition: &str, value: &str) -> String {
    format!("--x-x\r\nContent-Disposition: {disposition}\r\n\r\n{value}\r\n--x-x--")
}

#[test]
fn a_form_is_read_however_it_is_cut() {
    let whole = read(FORM).unwrap();
    assert_eq!(
        (whole.model.as_deref(), whole.stream, whole.choices),
        (Some("whisper-1"), true, Some(2))
    );
    for at in 0..=FORM.len() {
        let (head, tail) = FORM.as_bytes().split_at(at);
        let facts = read_in(Wire::Transcriptions, &[head, tail]);
        assert_eq!(facts.as_ref(), Ok(&whole), "split at byte {at}");
    }
    let bytes: Vec<_> = FORM.as_bytes().chunks(1).collect();
    assert_eq!(read_in(Wire::Transcriptions, &bytes), Ok(whole));
}

#[test]
fn a_type_without_one_clear_boundary_is_no_form() {
    let is_form = |content_type: &str| RequestReader::form(Wire::Images, content_type).is_some();
    assert!(is_form(TYPE));
    assert!(is_form("Multipart/Form-Data; charset=UTF-8; boundary=\"a b\""));
    for wrong in [
        "multipart/form-data",
        "multipart/form-data; boundary=",
        "multipart/form-data; boundary=a; boundary=b",
        "multipart/form-data; boundary=a; charset=utf-16",
        "multipart/form-data; boundary=\"a\r\"",
        "multipart/mixed; boundary=a",
        "application/json",
        "",
    ] {
        assert!(!is_form(wrong), "{wrong}");
    }
    assert!(!is_form(&format!("multipart/form-data; boundary={}", "a".repeat(71))));
}

#[test]
fn what_two_readers_could_read_differently_is_refused() {
    let model = "form-data; name=\"model\"";
    let twice = field(model, "a").replace("--x-x--", "") + &field(model, "b");
    assert_eq!(read(&twice), Err(RequestFault::DuplicateKey { key: "model" }));
    for wrong in [
        String::new(),
        "preamble\r\n".to_owned() + FORM,
        FORM.replace("--x-x--\r\n", ""),
        FORM.replace("--x-x--\r\n", "--x-x--\r\nmore"),
        FORM.replace("\r\n", "\n"),
        FORM.replacen("--x-x\r\n", "--x-x \r\n", 1),
        field("form-data", "a"),
        field("form-data; name=\"a\"; name=\"model\"", "a"),
        field("form-data; name*=utf-8''model", "a"),
        field("form-data; filename=\"\\\"; name=\\\"model\"", "a"),
        field("form-data; name=\"mo\\del\"", "a"),
        field("form-data; name=\"model\"; filename=\"m\"", "a"),
        field("form-data; name=\"model\"\r\nContent-Transfer-Encoding: base64", "YQ=="),
        field("form-data; name=\"model\"\r\nContent-Disposition: form-data; name=\"a\"", "a"),
        field("form-data; name=\"a\"\r\n ; name=\"model\"", "a"),
        field("attachment; name=\"model\"", "a"),
        "--x-x\r\n\r\nno head\r\n--x-x--".to_owned(),
        field("form-data; name=\"a\"", "--x-x\r\nmore"),
        format!("--x-x\r\nX: {}", "a".repeat(9000)),
    ] {
        let fault = read(&wrong).unwrap_err();
        assert_eq!(fault.code(), "invalid_value", "{wrong}");
        assert!(matches!(fault, RequestFault::InvalidForm { .. }), "{wrong}");
    }
}

#[test]
fn values_that_we_act_on_are_what_they_may_be() {
    let value = |name: &str, value: &str| read(&field(&format!("form-data; name={name}"), value));
    for (name, wrong) in [("model", "a\u{7}"), ("stream", "maybe")] {
        let fault = value(name, wrong).unwrap_err();
        assert!(
            matches!(fault, RequestFault::InvalidValue { param, .. } if param == name),
            "{fault}"
        );
    }
    assert!(value("model", &"m".repeat(256)).is_ok());
    assert!(value("model", &"m".repeat(257)).is_err());
    assert_eq!(value("user", &"u".repeat(257)).unwrap().user, None);
    assert_eq!(value("model", "").unwrap().model, None);
    let choices = ["2", "-1", "0", "two", "nan"].map(|n| value("n", n).unwrap().choices);
    assert_eq!(choices, [Some(2), None, None, None, None]);
    let facts = read_in(Wire::Images, &[field("form-data; name=prompt", "a").as_bytes()]);
    assert_eq!(facts.unwrap().model, None);
}

proptest! {
    #[test]
    fn a_file_of_any_bytes_passes_unread(
        file in prop::collection::vec(prop_oneof![Just(b'\r'), Just(b'\n'), Just(b'-'), any::<u8>()], 0..300),
        length in 1_usize..50,
    ) {
        let head = "--x-x\r\nContent-Disposition: form-data; name=file; filename=f\r\n\r\n";
        let tail = "\r\n--x-x\r\nContent-Disposition: form-data; name=model\r\n\r\nm\r\n--x-x--\r\n";
        let body = [head.as_bytes(), &file, tail.as_bytes()].concat();
        prop_assume!(!file.windows(5).any(|bytes| bytes == b"--x-x"));
        let pieces: Vec<_> = body.chunks(length).collect();
        let facts = read_in(Wire::Images, &pieces).unwrap();
        prop_assert_eq!(facts.model.as_deref(), Some("m"));
    }

    #[test]
    fn any_bytes_are_read_or_refused(
        body in prop::collection::vec(any::<u8>(), 0..300),
        length in 1_usize..50,
    ) {
        let body = [b"--x-x\r\n".as_slice(), &body].concat();
        let whole = read_in(Wire::Images, &[&body]);
        let pieces: Vec<_> = body.chunks(length).collect();
        prop_assert_eq!(read_in(Wire::Images, &pieces), whole);
    }
}
