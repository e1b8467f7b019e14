use proptest::prelude::*;

use crate::kept::{FileKind, KeptFile, KeptWriter, RowFilter};
use crate::table::{Field, FieldKind, Layout, Rows};

const KEY: &str = "taximeter.test";
const COLUMNS: [&str; 4] = ["quantity", "host", "time", "value"];

#[derive(serde::Deserialize)]
struct Format {
    #[expect(dead_code, reason = "the reader of the footer looks at it")]
    format: u32,
}

/// Rows in a row with these texts.
type TestRun = (String, Option<String>, usize);

fn fields() -> [Field; 4] {
    let field = |name, kind, nullable| Field { name, kind, nullable, distinct: false };
    let [quantity, host, time, value] = COLUMNS;
    [
        field(quantity, FieldKind::Text, false),
        field(host, FieldKind::Text, true),
        field(time, FieldKind::Time, false),
        field(value, FieldKind::Int64, false),
    ]
}

/// A file of these rows: run by run, or as Parquet's own writer does.
fn written(runs: &[TestRun], in_runs: bool, (group, page): (usize, usize)) -> Vec<u8> {
    let layout = if in_runs { Layout::small_runs(group, page) } else { Layout::small(group, page) };
    let fields = fields().into_iter();
    let mut writer = KeptWriter::new(Vec::new(), "test", &layout, fields.clone()).unwrap();
    let mut rows = if in_runs { Rows::of_runs(&layout, fields) } else { Rows::new(fields) };
    let mut number = 0;
    for (quantity, host, times) in runs {
        let numbers = number..number + i64::try_from(*times).unwrap();
        number = numbers.end;
        if in_runs {
            let mut run = rows.run(*times);
            run.text(Some(quantity));
            run.text(host.as_deref());
            run.int64s(numbers.clone());
            run.int64s(numbers.rev());
        } else {
            for number in numbers {
                let mut row = rows.row();
                row.text(quantity.as_bytes());
                match host {
                    Some(host) => row.text(host.as_bytes()),
                    None => row.null(),
                }
                row.int64(number);
                row.int64(-number);
            }
        }
        writer.add(&mut rows).unwrap();
    }
    writer.finish(KEY, r#"{"format":1}"#.to_owned()).unwrap().out
}

fn opened(bytes: Vec<u8>, rows: usize) -> KeptFile<Vec<u8>> {
    let kind =
        FileKind { key: KEY, format: 1, columns: COLUMNS.to_vec(), selected: ["quantity", "time"] };
    KeptFile::open(bytes, &kind, |_: &Format| rows as u64).unwrap().0
}

/// All texts of a column, of each row group from its first row or, sometimes, from a later one.
fn texts(
    file: &KeptFile<Vec<u8>>,
    column: usize,
    mut skip: impl FnMut() -> usize,
) -> Vec<Option<Option<String>>> {
    let mut texts = Vec::new();
    for group in 0..file.groups() {
        let mut cursor = file.text_cursor(group, column).unwrap();
        let (mut row, all) = (0, file.rows(group).unwrap());
        while row < all {
            let to = all.min(row + skip());
            cursor.skip_to(to).unwrap();
            texts.extend((row..to).map(|_| None));
            row = to;
            if row < all {
                let (text, rows) = cursor.next_run(all.min(row + 1 + skip()) - row).unwrap();
                let text = text.map(|text| str::from_utf8(text).unwrap().to_owned());
                texts.extend((0..rows).map(|_| Some(text.clone())));
                row += rows;
            }
        }
        assert!(cursor.next_run(1).is_err(), "there is no further row");
    }
    texts
}

fn run() -> impl Strategy<Value = TestRun> {
    // Long ones fill the dictionary of Parquet's own writer, which goes on without one.
    let text = || prop_oneof!["[a-d]{0,2}", "[a-z]{3000}", Just("Zürich".to_owned())];
    (text(), proptest::option::of(text()), prop_oneof![1..4_usize, 1..70_usize])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn texts_are_read_as_they_were_written_by_either_writer(
        runs in prop::collection::vec(run(), 1..40),
        in_runs in any::<bool>(),
        sizes in (1..300_usize, 1..100_usize),
        skips in prop::collection::vec(0..90_usize, 1..9),
    ) {
        let rows: usize = runs.iter().map(|run| run.2).sum();
        let file = opened(written(&runs, in_runs, sizes), rows);
        let of_rows = |run: &TestRun| std::iter::repeat_n((Some(run.0.clone()), run.1.clone()), run.2);
        let all: Vec<_> = runs.iter().flat_map(of_rows).collect();
        let columns = [
            all.iter().map(|row| row.0.clone()).collect::<Vec<_>>(),
            all.iter().map(|row| row.1.clone()).collect(),
        ];
        for (column, wanted) in columns.iter().enumerate() {
            let mut next = skips.iter().cycle().copied();
            let found = texts(&file, column, || next.next().unwrap_or_default());
            prop_assert_eq!(found.len(), wanted.len());
            for (found, wanted) in found.iter().zip(wanted) {
                prop_assert!(found.as_ref().is_none_or(|found| found == wanted));
            }
            let unskipped = texts(&file, column, || 0);
            prop_assert_eq!(unskipped.into_iter().map(Option::unwrap).collect::<Vec<_>>(), wanted.clone());
            // Parquet's own reader finds the same.
            let mut others = Vec::new();
            for group in 0..file.groups() {
                let mut cursor = file.cursor(group, column).unwrap();
                cursor.read(0, file.rows(group).unwrap()).unwrap();
                for _ in 0..file.rows(group).unwrap() {
                    others.push(cursor.next_value().map(|text| text.owned().unwrap()));
                }
            }
            prop_assert_eq!(&others, wanted);
        }
    }

    /// The smallest and the largest text of pages and groups lead to all rows with a text.
    #[test]
    fn rows_with_a_text_are_found_by_the_bounds_of_their_pages(
        runs in prop::collection::vec(run(), 1..40),
        sizes in (1..300_usize, 1..100_usize),
    ) {
        let rows: usize = runs.iter().map(|run| run.2).sum();
        let file = opened(written(&runs, true, sizes), rows);
        for (wanted, ..) in &runs {
            let filter = RowFilter { tenant: Some(wanted.clone()), ..RowFilter::default() };
            let matching = (0..file.groups()).map(|group| file.matching(group, &filter).unwrap());
            let found: usize = matching.flatten().map(|rows| rows.len()).sum();
            let all: usize = runs.iter().filter(|run| run.0 == *wanted).map(|run| run.2).sum();
            prop_assert_eq!(found, all);
        }
    }
}
