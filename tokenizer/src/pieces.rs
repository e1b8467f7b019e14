//! Cutting a text where every vocabulary cuts it, so that the counts of the pieces add up to the
//! whole's.

/// Cuts `text` into pieces of at most `bytes_max` bytes, and into longer ones where it must.
pub(crate) fn pieces(text: &str, bytes_max: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (piece, behind) = split(rest, bytes_max)?;
        rest = behind;
        Some(piece)
    })
}

fn split(text: &str, bytes_max: usize) -> Option<(&str, &str)> {
    if text.is_empty() {
        return None;
    }
    if text.len() <= bytes_max {
        return Some((text, ""));
    }
    let window_end = text.floor_char_boundary(bytes_max);
    if let Some((piece, rest)) = last_cut(text, window_end).and_then(|at| text.split_at_checked(at))
    {
        return Some((piece, rest));
    }
    let at = first_cut(text, window_end);
    let (piece, rest) = text.split_at_checked(at).unwrap_or((text, ""));
    Some((piece, rest))
}

/// The last certain boundary in `text` at or before `end`.
fn last_cut(text: &str, end: usize) -> Option<usize> {
    let (window, rest) = text.split_at_checked(end)?;
    let mut after = rest.chars().next();
    window.char_indices().rev().find_map(|(at, before)| {
        let cut = after.is_some_and(|after| is_boundary(before, after));
        after = Some(before);
        cut.then_some(at + before.len_utf8())
    })
}

/// The first certain boundary in `text` after `from`, or its end.
fn first_cut(text: &str, from: usize) -> usize {
    let Some((window, rest)) = text.split_at_checked(from) else { return text.len() };
    let mut before = window.chars().next_back();
    rest.char_indices()
        .find(|&(_, after)| {
            let cut = before.is_some_and(|before| is_boundary(before, after));
            before = Some(after);
            cut
        })
        .map_or(text.len(), |(at, _)| from + at)
}

/// Whether every vocabulary splits between these two, whatever stands around them.
///
/// Two of their rules suffice: a blank begins a new piece, and so does what is neither letter, mark
/// nor apostrophe behind a letter. Of letters and others only those are asked for whose class is
/// beyond doubt.
pub(crate) fn is_boundary(before: char, after: char) -> bool {
    let blank = after.is_whitespace() && !matches!(after, '\r' | '\n');
    (blank && !before.is_whitespace()) || (is_letter(before) && is_sign(after))
}

/// ASCII, kana, CJK ideographs, Hangul.
fn is_letter(char: char) -> bool {
    char.is_ascii_alphabetic()
        || matches!(char, 'ぁ'..='ゖ' | 'ァ'..='ヺ' | '㐀'..='䶿' | '一'..='鿿' | '가'..='힣')
}

/// ASCII but for letters and the apostrophe; East Asian punctuation.
fn is_sign(char: char) -> bool {
    (char.is_ascii() && !char.is_ascii_alphabetic() && char != '\'')
        || matches!(char, '、'..='〃' | '〈'..='】' | '！'..='／' | '：'..='＠')
}
