use super::*;

/// A file of those requests whose number `is_here`.
fn part(is_here: impl Fn(u32) -> bool) -> DayFile<Bytes> {
    open(sealed(&SMALL, (0..600).filter(|number| is_here(*number)).map(record).collect()).file.out)
}

fn merged(files: &[DayFile<Bytes>]) -> Result<SealedDay<Vec<u8>>, MergeError> {
    let mut to = writer(&SMALL);
    merge(files, &mut to)?;
    Ok(to.finish()?)
}

#[test]
fn a_merged_file_is_that_of_all_rows() {
    let files = [part(|it| it % 3 == 0), part(|it| it % 3 == 1), part(|it| it % 3 == 2)];
    let whole = sealed(&SMALL, (0..600).map(record).collect());
    assert_eq!(merged(&files).unwrap().file.sha256, whole.file.sha256);
}

#[test]
fn what_several_files_have_is_merged_once() {
    let files = [part(|it| it < 400), part(|it| it >= 200), part(|_| true), part(|_| false)];
    let whole = sealed(&SMALL, (0..600).map(record).collect());
    assert_eq!(merged(&files).unwrap().file.sha256, whole.file.sha256);
}

#[test]
fn two_entries_that_contradict_each_other_are_named() {
    let changed = Record { seq: 77, attempt: 9, ..record(5) };
    let files = [part(|_| true), open(sealed(&SMALL, vec![changed]).file.out)];
    let told = merged(&files).unwrap_err().to_string();
    assert!(told.contains("entry 6 ") && told.contains("entry 77 "), "{told}");
    assert!(told.contains(&record(5).id.to_string()), "{told}");
}

#[test]
fn the_place_of_a_merged_request_does_not_depend_on_the_order_of_the_files() {
    let later = || open(sealed(&SMALL, vec![Record { seq: 77, ..record(5) }]).file.out);
    let one = merged(&[later(), part(|_| true)]).unwrap();
    let other = merged(&[part(|_| true), later()]).unwrap();
    assert_eq!(one.file.sha256, other.file.sha256);
}
