//! The test vector on the page: a small segment in hexadecimal, and its entries.

use std::fmt::Write as _;

use taximeter_tests::generated::is_fresh;

use super::sample::{Segment, entry, reserve, whole_post};
use super::{assert_same, plainly};

const PAGE: &str = "docs/reference/journal-format.md";
const BEGIN: &str = "## Test vector\n";
const BYTES_OF_A_LINE: usize = 64;

/// A reservation, its record, and a void that shares strings with nothing.
fn segment() -> Vec<u8> {
    let mut segment = Segment::new();
    segment.append(&entry(reserve()));
    segment.append(&entry(whole_post()));
    segment.mark();
    segment.bytes()
}

#[test]
fn the_test_vector_on_the_page_is_what_the_program_writes_and_reads() {
    let bytes = segment();
    let entries = assert_same(&bytes);
    let page = |stands: &str| {
        let (before, _) = stands.split_once(BEGIN).unwrap_or((stands, ""));
        let mut page = format!(
            "{before}{BEGIN}\nThese {} bytes are a file with a reservation, its record and a sync \
             mark. Of the zeros at the end of the gateway's name, most\nare left out: `00 ×` says \
             how many.\n\n```text\n",
            bytes.len()
        );
        let name = 32 + usize::from(bytes[10]);
        for line in bytes[..name].chunks(BYTES_OF_A_LINE) {
            hex(line, &mut page);
        }
        let _ = writeln!(page, "00 × {}", 451 - name);
        for line in bytes[451..].chunks(BYTES_OF_A_LINE) {
            hex(line, &mut page);
        }
        page.push_str("```\n\nThe entries in JSON:\n\n```json\n");
        for entry in &entries {
            let _ =
                writeln!(page, "{}", serde_json::to_string_pretty(&plainly(entry)).expect("JSON"));
        }
        page.push_str("```\n");
        page
    };
    assert_eq!(is_fresh(PAGE, page), Ok(()));
}

fn hex(bytes: &[u8], to: &mut String) {
    for byte in bytes {
        let _ = write!(to, "{byte:02x}");
    }
    to.push('\n');
}
