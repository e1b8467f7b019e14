use super::*;

/// Whether serde_json reads an object here. Its `IgnoredAny` knows no limits on depth and numbers.
fn oracle_accepts(body: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(body) else { return false };
    text.trim_start_matches([' ', '\t', '\r', '\n']).starts_with('{')
        && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// Bytes that mean something to JSON, and some that it refuses.
const JSON_BYTES: &[u8] = b"{}[]:,\"\\/bu0e1-. \n\x01\xc3\xa4";

proptest! {
    #[test]
    fn valid_json_is_what_serde_json_takes(
        value in any_value(),
        pretty: bool,
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4u8), 0..4),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) {
        let mut body = written(&json!({"x": value}), pretty);
        for (index, byte, edit) in edits {
            let at = index.index(body.len());
            match edit {
                0 => body[at] = byte,
                1 => body.insert(at, byte),
                2 => body.insert(at, b"{}[],:\"\\ue0-.+"[usize::from(byte) % 14]),
                _ => drop(body.remove(at)),
            }
        }
        let whole = read_in(Wire::Opaque, &[&body]);
        let valid = !matches!(whole, Err(RequestFault::InvalidJson { .. }));
        // A fault of another kind is told before the rest has been read.
        if whole.is_ok() || !valid {
            prop_assert_eq!(valid, oracle_accepts(&body), "{}", String::from_utf8_lossy(&body));
        }

        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len() + 1)).collect();
        cuts.sort_unstable();
        cuts.push(body.len());
        let mut from = 0;
        let pieces: Vec<&[u8]> = cuts
            .into_iter()
            .map(|cut| &body[std::mem::replace(&mut from, cut)..cut])
            .collect();
        prop_assert_eq!(read_in(Wire::Opaque, &pieces), whole);
    }

    #[test]
    fn a_splice_adds_the_question_and_changes_nothing_else(
        mut value in any_request(),
        pretty: bool,
    ) {
        let spliced = spliced(&written(&value, pretty)).expect("a splice");
        let options = &mut value["stream_options"];
        if options.is_null() {
            *options = json!({});
        }
        options["include_usage"] = json!(true);
        prop_assert_eq!(serde_json::from_slice::<Value>(&spliced).unwrap(), value);
        prop_assert_eq!(super::spliced(&spliced), None);
    }

    #[test]
    fn any_row_of_json_bytes_is_read_or_refused(
        inside in prop::collection::vec(prop::sample::select(JSON_BYTES), 0..16),
    ) {
        let body = [b"{\"\":", inside.as_slice(), b"}"].concat();
        prop_assert_eq!(read_in(Wire::Opaque, &[&body]).is_ok(), oracle_accepts(&body));
    }
}
