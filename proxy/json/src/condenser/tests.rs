//! Tests that condensed texts are valid, bounded, and say the same but for what they lack.

use proptest::collection::{hash_map, vec};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::*;
use crate::{Reader, Text};

/// Bounds that small documents meet.
const SMALL: Bounds = Bounds { details: 300, elements: 450, members: 600, string: 12, data: 40 };

fn condensed(document: &[u8], step: usize, bounds: Bounds) -> Condenser {
    let mut condenser = Condenser::within(bounds);
    document.chunks(step).for_each(|piece| condenser.push(piece));
    condenser
}

fn text_of(condenser: &Condenser) -> &str {
    str::from_utf8(condenser.condensed().text()).unwrap()
}

/// Whether `short` is what a condenser may leave of `long`.
fn is_short_for(short: &Value, long: &Value) -> bool {
    match (short, long) {
        (Value::String(short), Value::String(long)) => long.starts_with(short.as_str()),
        (Value::Array(short), Value::Array(long)) => {
            short.len() <= long.len() && short.iter().zip(long).all(|(a, b)| is_short_for(a, b))
        }
        (Value::Object(short), Value::Object(long)) => short.iter().all(|(key, short)| {
            // Keys are cut as strings are.
            let mut like = long.iter().filter(|(long, _)| long.starts_with(key.as_str()));
            like.any(|(_, long)| is_short_for(short, long))
        }),
        (short, long) => short == long,
    }
}

/// A string as JSON, some of its characters as escapes.
fn written(text: &str, escapes: bool) -> String {
    let written = serde_json::to_string(text).unwrap();
    let mut out = String::new();
    for character in written.chars() {
        if escapes && !character.is_ascii() {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            out.push(character);
        }
    }
    out
}

fn strings() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[a-z]{0,8}",
        1 => "[A-Za-z0-9+/]{0,120}",
        1 => "[a-é𝄞-𝄢\n\"\\\\{}\\[\\], ]{0,120}",
    ]
}

fn documents() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        strings().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 200, 20, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..20).prop_map(Value::from),
            hash_map(strings(), inner, 0..6).prop_map(|members| Value::from(
                members.into_iter().collect::<serde_json::Map<_, _>>()
            )),
        ]
    })
}

/// Parts of bytes that may be no JSON.
const PARTS: &[&[u8]] = &[
    b"\"",
    b"\\",
    b"\\u",
    b"d83d",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b" ",
    b"\xff",
    b"\x80",
    b"abcdefgh",
    b"12345678901234567890",
];

proptest! {
    #[test]
    fn a_condensed_text_is_valid_and_short_and_says_the_same_for_any_split(
        document in documents(),
        step in 1_usize..80,
        is_pretty: bool,
        escapes: bool,
    ) {
        let plain = if is_pretty {
            serde_json::to_string_pretty(&document).unwrap()
        } else {
            document.to_string()
        };
        let plain = if escapes {
            let mut out = String::new();
            for part in plain.split_inclusive(|character: char| !character.is_ascii()) {
                let at = part.find(|character: char| !character.is_ascii()).unwrap_or(part.len());
                let (ascii, other) = part.split_at(at);
                out.push_str(ascii);
                out.push_str(written(other, true).trim_matches('"'));
            }
            out
        } else {
            plain
        };
        let whole = condensed(plain.as_bytes(), plain.len(), SMALL);
        let pieces = condensed(plain.as_bytes(), step, SMALL);
        prop_assert_eq!(text_of(&pieces), text_of(&whole));
        prop_assert_eq!(pieces.condensed(), whole.condensed());
        let read: Value = serde_json::from_str(text_of(&whole)).unwrap();
        prop_assert!(is_short_for(&read, &document), "{} of {}", read, document);
        prop_assert!(whole.condensed().text().len() < SMALL.members + 200, "{}", whole.condensed().text().len());
        if plain.len() < SMALL.data {
            prop_assert_eq!(read, document);
        }
    }

    #[test]
    fn any_bytes_are_bounded_and_condensed_alike_for_any_split(
        parts in vec(select(PARTS), 0..200),
        step in 1_usize..40,
    ) {
        let bytes = parts.concat();
        let bounds = Bounds { details: 40, elements: 60, members: 80, ..SMALL };
        let whole = condensed(&bytes, bytes.len().max(1), bounds);
        let pieces = condensed(&bytes, step, bounds);
        prop_assert_eq!(pieces.condensed(), whole.condensed());
        prop_assert_eq!(pieces.condensed(), whole.condensed());
    }

    #[test]
    fn what_is_missing_in_a_string_is_told(text in "[a-é𝄞-𝄢\n\"\\\\ ]{0,400}", escapes: bool) {
        let document = format!("[{}]", written(&text, escapes));
        let condenser = condensed(document.as_bytes(), 7, SMALL);
        let condensed = condenser.condensed();
        let mut kept = None;
        Reader::new(condensed.text()).array(|value| {
            kept = value.text()?;
            Ok(())
        }).unwrap();
        let kept: Text<'_> = kept.unwrap();
        let missing = condensed.left_out_of(&kept);
        prop_assert_eq!(kept.decode().len() as u64 + missing, text.len() as u64);
        prop_assert_eq!(condensed.lacks_text(), missing > 0);
        prop_assert!(!condensed.lacks_values());
    }
}

#[test]
fn malformed_bytes_without_an_end_are_bounded() {
    for part in ["\"a\"", ":", "7", "[\"\",", "{\"a\":", "]", "}", "[[", "\\u12", "x y "] {
        let condenser = condensed(part.repeat(2_500_000 / part.len()).as_bytes(), 4_096, BOUNDS);
        assert!(
            condenser.condensed().text().len() <= BOUNDS.members + MALFORMED_BYTES_MAX + 256,
            "{part}"
        );
        assert!(condenser.open.len() <= DEPTH_MAX + 1, "{part}");
    }
}

#[test]
fn members_behind_what_is_long_are_there() {
    let picture = "iVBORw0KGgo".repeat(300_000);
    let words = "To the station. ".repeat(200_000);
    let floats = "-0.0123456,".repeat(400_000);
    let tokens = r#"{"token":"a","logprob":-0.5,"top_logprobs":[{"token":"a"},{"token":"b"}]},"#;
    for long in [
        format!("\"data:image/png;base64,{picture}\""),
        format!("\"{words}\""),
        format!("[{floats}0]"),
        format!("[[{}]]", format!("[{floats}0],").repeat(3) + "[]"),
        format!("[{{\"content\":[{}{{}}]}},{{\"role\":\"a\"}}]", tokens.repeat(80_000)),
        format!("[{}{{}}]", tokens.repeat(80_000)),
        format!("{}7{}", "[".repeat(3_000_000), "]".repeat(3_000_000)),
        " \n".repeat(3_000_000) + "7",
    ] {
        let document = format!("{{\"id\":\"x\",\"long\":{long},\"usage\":{{\"total_tokens\":7}}}}");
        let condenser = condensed(document.as_bytes(), 65_536, BOUNDS);
        let read: Value = serde_json::from_str(text_of(&condenser)).unwrap_or_else(|_| {
            // Deeper than that reader reads.
            let text = text_of(&condenser);
            let at = text.find(",\"usage\"").unwrap();
            serde_json::from_str(&format!("{{\"id\":\"x\"{}", &text[at..])).unwrap()
        });
        assert_eq!((&read["id"], &read["usage"]["total_tokens"]), (&json!("x"), &json!(7)));
        assert!(condenser.condensed().text().len() < 2 << 20);
    }
}

#[test]
fn data_takes_no_room_from_the_text_behind_it() {
    let picture = "iVBORw0KGgo".repeat(300_000);
    let text = "To the station. ".repeat(50_000);
    let document = format!("[{{\"data\":\"{picture}\"}},{{\"text\":\"{text}\"}}]");
    let condenser = condensed(document.as_bytes(), 10_000, BOUNDS);
    let read: Value = serde_json::from_str(text_of(&condenser)).unwrap();
    assert_eq!(read[0]["data"], picture[..BOUNDS.data]);
    assert_eq!(read[1]["text"], text);
    let condensed = condenser.condensed();
    assert!(!condensed.lacks_text() && !condensed.lacks_values());
}

#[test]
fn elements_of_a_list_that_are_missing_are_counted() {
    let ids = vec!["12345"; 400_000].join(", ");
    let document = format!("{{\"a\":[[{ids}]],\"ids\":[{ids}]}}");
    let condenser = condensed(document.as_bytes(), 10_000, BOUNDS);
    let condensed = condenser.condensed();
    let count = |list: Text<'_>| {
        let kept = list.raw().iter().filter(|byte| **byte == b',').count() as u64 + 1;
        kept + condensed.left_out_of(&list)
    };
    let mut counts = Vec::new();
    Reader::new(condensed.text())
        .document(|_, value| {
            counts.push(count(value.verbatim()?));
            Ok(())
        })
        .unwrap();
    assert_eq!(counts, [400_000, 400_000]);
    assert!(!condensed.lacks_values());
}

#[test]
fn texts_objects_and_lists_that_are_missing_are_told() {
    for (long, lacks) in [("\"a\"", true), ("{}", true), ("[]", true), ("true", false)] {
        let document = format!("[{}7]", format!("{long},").repeat(1_000_000));
        let condenser = condensed(document.as_bytes(), 10_000, BOUNDS);
        assert_eq!(condenser.condensed().lacks_values(), lacks, "{long}");
    }
}
