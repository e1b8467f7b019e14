use bytes::Bytes;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use proptest::prelude::*;

use super::*;

const MONEY: FieldKind = FieldKind::Decimal { precision: 38, scale: 18 };

fn written(fields: &[Field], fill: impl FnOnce(&mut ParquetWriter<Vec<u8>>)) -> Bytes {
    let mut writer = ParquetWriter::new(Vec::new(), "test", fields.iter().copied()).unwrap();
    fill(&mut writer);
    writer.finish().unwrap().into()
}

const fn field(name: &'static str, kind: FieldKind, nullable: bool) -> Field {
    Field { name, kind, nullable, distinct: false }
}

#[test]
fn what_is_written_is_read_back() {
    let fields = [
        field("text", FieldKind::Text, true),
        field("at", FieldKind::Time, false),
        field("count", FieldKind::Int64, true),
        field("flag", FieldKind::Bool, false),
        field("seconds", FieldKind::Double, true),
    ];
    let at: Timestamp = "2026-11-20T16:59:59.123456Z".parse().unwrap();
    let bytes = written(&fields, |writer| {
        let mut row = writer.row();
        row.text("Zürich");
        row.time(at);
        row.count(Some(7)).unwrap();
        row.bool(true);
        row.maybe_double(Some(0.5));
        writer.end_row().unwrap();
        let mut row = writer.row();
        row.maybe_text(None);
        row.time(at);
        row.count(None).unwrap();
        row.bool(false);
        row.maybe_double(None);
        writer.end_row().unwrap();
    });
    let reader = SerializedFileReader::new(bytes).unwrap();
    let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0].get_string(0).unwrap(), "Zürich");
    assert_eq!(rows[0].get_timestamp_micros(1).unwrap(), at.as_microsecond());
    assert_eq!(rows[0].get_long(2).unwrap(), 7);
    assert!(rows[0].get_bool(3).unwrap());
    assert!(rows[1].get_string(0).is_err() && rows[1].get_long(2).is_err());
}

#[test]
fn groups_are_bounded_by_rows() {
    let bytes = written(&[field("flag", FieldKind::Bool, false)], |writer| {
        for _ in 0..=GROUP_ROWS_MAX {
            writer.row().bool(true);
            writer.end_row().unwrap();
        }
    });
    let reader = SerializedFileReader::new(bytes).unwrap();
    let rows: Vec<_> =
        reader.metadata().row_groups().iter().map(|group| group.num_rows()).collect();
    assert_eq!(rows, [GROUP_ROWS_MAX as i64, 1]);
}

#[test]
fn texts_of_a_later_group_are_its_own() {
    let name = |row: usize| format!("tenant-{}", row % 7 + row / GROUP_ROWS_MAX * 7);
    let bytes = written(&[field("text", FieldKind::Text, true)], |writer| {
        for row in 0..GROUP_ROWS_MAX + 9 {
            writer.row().maybe_text((row % 5 > 0).then(|| name(row)).as_deref());
            writer.end_row().unwrap();
        }
    });
    let reader = SerializedFileReader::new(bytes).unwrap();
    for (row, read) in reader.get_row_iter(None).unwrap().enumerate() {
        let read = read.unwrap();
        let expected = (row % 5 > 0).then(|| name(row));
        assert_eq!(read.get_string(0).ok(), expected.as_ref());
    }
}

#[test]
fn a_file_without_rows_is_a_file() {
    let bytes = written(&[field("text", FieldKind::Text, false)], |_| {});
    let reader = SerializedFileReader::new(bytes).unwrap();
    assert_eq!(reader.metadata().file_metadata().num_rows(), 0);
}

#[test]
fn a_decimal_with_too_many_digits_is_an_error() {
    let mut writer =
        ParquetWriter::new(Vec::new(), "t", [field("cost", MONEY, false)].into_iter()).unwrap();
    let outcome = writer.row().decimal("100000000000000000000".parse().unwrap());
    assert!(matches!(outcome, Err(ExportError::TooLarge { .. })));
}

#[test]
fn a_decimal_with_too_many_places_is_rounded_half_to_even() {
    let number = |text: &str| {
        let (bytes, _) = decimal_bytes(text.parse().unwrap(), MONEY).unwrap();
        i128::from_be_bytes(bytes)
    };
    assert_eq!(number("0.0000000000000000005"), 0);
    assert_eq!(number("0.0000000000000000015"), 2);
    assert_eq!(number("-0.0000000000000000025"), -2);
}

proptest! {
    #[test]
    fn decimals_keep_every_digit(digits in -99_999_999_999_999_999_i64.., scale in 0_u32..=18) {
        let value = Decimal::new(digits, scale);
        let (bytes, _) = decimal_bytes(value, MONEY).unwrap();
        let back = Decimal::try_from_i128_with_scale(i128::from_be_bytes(bytes), 18);
        // More digits than a decimal has are checked by the number alone.
        if let Ok(back) = back {
            prop_assert_eq!(back, value);
        } else {
            let number = i128::from(digits) * 10_i128.pow(18 - scale);
            prop_assert_eq!(i128::from_be_bytes(bytes), number);
        }
    }
}

#[test]
fn the_same_rows_are_the_same_bytes() {
    let fields = [field("text", FieldKind::Text, false), field("cost", MONEY, true)];
    let bytes = || {
        written(&fields, |writer| {
            for number in 0..1000 {
                let mut row = writer.row();
                row.text(&format!("tenant-{}", number % 7));
                row.decimal(Decimal::new(number, 7)).unwrap();
                writer.end_row().unwrap();
            }
        })
    };
    assert_eq!(bytes(), bytes());
}
