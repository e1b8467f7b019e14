use bytes::Bytes;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use proptest::prelude::*;

use super::*;

const MONEY: FieldKind = FieldKind::Decimal { precision: 38, scale: 18 };

/// A file of rows that `fill` fills, number by number, gathered `at_once` at a time.
fn written(
    fields: &[Field],
    at_once: usize,
    numbers: std::ops::Range<usize>,
    mut fill: impl FnMut(usize, &mut RowWriter<'_>),
) -> Bytes {
    let fields = fields.iter().copied();
    let mut rows = Rows::new(fields.clone());
    let mut writer = ParquetWriter::new(Vec::new(), "test", &Layout::EXPORT, fields).unwrap();
    for number in numbers {
        fill(number, &mut rows.row());
        if rows.len() == at_once {
            writer.add(&mut rows).unwrap();
        }
    }
    writer.add(&mut rows).unwrap();
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
    let bytes = written(&fields, ROWS_MAX, 0..2, |number, row| {
        let is_first = number == 0;
        if is_first {
            row.text("Zürich".as_bytes())
        } else {
            row.null()
        }
        row.time(at);
        if is_first {
            row.int64(7)
        } else {
            row.null()
        }
        row.bool(is_first);
        if is_first { row.double(0.5) } else { row.null() }
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
    let fields = [field("flag", FieldKind::Bool, false)];
    let bytes = written(&fields, 1, 0..Layout::EXPORT.group_rows + 1, |_, row| row.bool(true));
    let reader = SerializedFileReader::new(bytes).unwrap();
    let rows: Vec<_> =
        reader.metadata().row_groups().iter().map(|group| group.num_rows()).collect();
    assert_eq!(rows, [Layout::EXPORT.group_rows as i64, 1]);
}

#[test]
fn groups_are_bounded_by_bytes() {
    let long = vec![b'x'; Layout::EXPORT.group_bytes / 3];
    let fields = [field("text", FieldKind::Text, false)];
    let bytes = written(&fields, 1, 0..5, |_, row| row.text(&long));
    let reader = SerializedFileReader::new(bytes).unwrap();
    let rows: Vec<_> =
        reader.metadata().row_groups().iter().map(|group| group.num_rows()).collect();
    assert_eq!(rows, [4, 1]);
}

#[test]
fn texts_are_their_own_however_many_are_gathered() {
    let name = |row: usize| format!("tenant-{}", row % 7 + row / Layout::EXPORT.group_rows * 7);
    for at_once in [100, usize::MAX] {
        let bytes = written(
            &[field("text", FieldKind::Text, true)],
            at_once,
            0..Layout::EXPORT.group_rows + 9,
            {
                |number, row| match number % 5 {
                    0 => row.null(),
                    _ => row.text(name(number).as_bytes()),
                }
            },
        );
        let reader = SerializedFileReader::new(bytes).unwrap();
        for (row, read) in reader.get_row_iter(None).unwrap().enumerate() {
            let read = read.unwrap();
            let expected = (row % 5 > 0).then(|| name(row));
            assert_eq!(read.get_string(0).ok(), expected.as_ref());
        }
    }
}

#[test]
fn a_group_that_is_ended_early_is_one() {
    let fields = [field("count", FieldKind::Int64, false)];
    let mut rows = Rows::new(fields.into_iter());
    let mut writer =
        ParquetWriter::new(Vec::new(), "test", &Layout::EXPORT, fields.into_iter()).unwrap();
    for number in 0..3 {
        rows.row().int64(number);
        writer.add(&mut rows).unwrap();
        writer.end_group().unwrap();
        writer.end_group().unwrap();
    }
    let reader = SerializedFileReader::new(Bytes::from(writer.finish().unwrap())).unwrap();
    assert_eq!(reader.num_row_groups(), 3);
    let read = reader.get_row_iter(None).unwrap().map(|row| row.unwrap().get_long(0).unwrap());
    assert_eq!(Vec::from_iter(read), [0, 1, 2]);
}

#[test]
fn rows_of_another_file_are_an_error() {
    let fields = [field("count", FieldKind::Int64, false)];
    let mut rows = Rows::new([field("count", FieldKind::Text, false)].into_iter());
    rows.row().text(b"7");
    let mut writer =
        ParquetWriter::new(Vec::new(), "test", &Layout::EXPORT, fields.into_iter()).unwrap();
    assert!(matches!(writer.add(&mut rows), Err(WriteError::Parquet(_))));
}

#[test]
fn a_file_without_rows_is_a_file() {
    let bytes = written(&[field("text", FieldKind::Text, false)], 1, 0..0, |_, _| {});
    let reader = SerializedFileReader::new(bytes).unwrap();
    assert_eq!(reader.metadata().file_metadata().num_rows(), 0);
}

#[test]
fn a_decimal_with_too_many_digits_is_an_error() {
    let mut rows = Rows::new([field("cost", MONEY, false)].into_iter());
    let outcome = rows.row().decimal("100000000000000000000".parse().unwrap());
    assert!(matches!(outcome, Err(WriteError::TooLarge { .. })));
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
        written(&fields, ROWS_MAX, 0..1000, |number, row| {
            row.text(format!("tenant-{}", number % 7).as_bytes());
            row.decimal(Decimal::new(number as i64, 7)).unwrap();
        })
    };
    assert_eq!(bytes(), bytes());
}
