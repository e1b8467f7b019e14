//! Mistakes in a configuration, and how they are printed.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

/// The most mistakes that are kept of one file. Further ones are counted.
const MISTAKES_MAX: usize = 100;
/// The most characters of a line that are printed around a mistake.
const EXCERPT_CHARS_MAX: usize = 120;

/// Why a value is not allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}; expected {expected}")]
pub struct Invalid {
    /// What is wrong, as it follows the value: “is not an address”. Never quotes the value.
    pub problem: Cow<'static, str>,
    /// What is allowed.
    pub expected: Cow<'static, str>,
    /// Whether the value holds a secret, so that no message may show it.
    pub(crate) secret: bool,
}

impl Invalid {
    pub(crate) fn new(
        problem: impl Into<Cow<'static, str>>,
        expected: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { problem: problem.into(), expected: expected.into(), secret: false }
    }

    pub(crate) fn secret(self) -> Self {
        Self { secret: true, ..self }
    }
}

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The position in the file; `None` for a flag.
    pub position: Option<Position>,
    /// The key (`upstreams[0].url`) or the flag (`--listen`); empty for the file as a whole.
    pub subject: String,
    /// What is wrong.
    pub problem: String,
    /// What to do about it.
    pub hint: String,
}

/// A position in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// The line, cut to the width of a screen, with secrets masked.
    excerpt: String,
    /// The part of `excerpt` to mark, in characters.
    carets: Range<usize>,
}

/// Every mistake of a configuration, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistakes {
    file_name: String,
    mistakes: Vec<Mistake>,
    /// How many more were found and not kept.
    not_shown: usize,
}

impl std::error::Error for Mistakes {}

impl Mistakes {
    /// The mistakes that are printed; at least one.
    #[must_use]
    pub fn shown(&self) -> &[Mistake] {
        &self.mistakes
    }

    /// Each mistake in one line, for the log.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.mistakes.iter().map(|Mistake { position, subject, problem, hint }| {
            let position = position.as_ref().map(|Position { line, column, .. }| {
                format!("{}:{line}:{column}: ", self.file_name)
            });
            let subject = if subject.is_empty() { String::new() } else { format!("{subject}: ") };
            format!("{}{subject}{problem}; {hint}", position.unwrap_or_default())
        })
    }

    /// Mistakes in flags, which have no position in a file.
    pub(crate) fn of_flags(mistakes: Vec<Mistake>) -> Self {
        Self { file_name: String::new(), mistakes, not_shown: 0 }
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for mistake in &self.mistakes {
            match &mistake.position {
                Some(position) => position.write(f, &self.file_name, mistake)?,
                None => {
                    writeln!(f, "{}: {}", mistake.subject, mistake.problem)?;
                    writeln!(f, "  {}", mistake.hint)?;
                }
            }
        }
        match self.mistakes.len().saturating_add(self.not_shown) {
            1 => f.write_str("1 problem; nothing was started"),
            n if self.not_shown > 0 => {
                write!(f, "{n} problems; the first {MISTAKES_MAX} are shown; nothing was started")
            }
            n => write!(f, "{n} problems; nothing was started"),
        }
    }
}

impl Position {
    fn write(&self, f: &mut fmt::Formatter<'_>, file: &str, mistake: &Mistake) -> fmt::Result {
        write!(f, "{file}:{}:{}: ", self.line, self.column)?;
        if !mistake.subject.is_empty() {
            write!(f, "{}: ", mistake.subject)?;
        }
        writeln!(f, "{}", mistake.problem)?;
        let gutter = self.line.to_string().len().max(4);
        writeln!(f, "{:>gutter$} | {}", self.line, self.excerpt)?;
        let (indent, carets) = (self.carets.start, self.carets.len());
        writeln!(f, "{:gutter$} | {:indent$}{:^<carets$} {}", "", "", "", mistake.hint)
    }
}

/// A mistake as the reader finds it, by bytes of the text.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) at: Range<usize>,
    pub(crate) subject: String,
    pub(crate) problem: String,
    pub(crate) hint: String,
}

/// Collects mistakes; they become `Mistakes` at the end.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    found: Vec<Found>,
    not_shown: usize,
    secrets: Vec<Range<usize>>,
}

impl Findings {
    pub(crate) fn push(&mut self, found: Found) {
        if self.found.len() < MISTAKES_MAX {
            self.found.push(found);
        } else {
            self.not_shown = self.not_shown.saturating_add(1);
        }
    }

    /// Masks these bytes in every message.
    pub(crate) fn mask(&mut self, at: Range<usize>) {
        self.secrets.push(at);
    }

    /// Masks the values of a line that names a secret, where the text is not valid YAML and so
    /// nobody knows which bytes are values.
    pub(crate) fn mask_line(&mut self, text: &str, at: &Range<usize>) {
        const SPEAKING: [&str; 5] = ["credential", "key", "password", "secret", "token"];
        let line = line(text, clamped(text, at.start));
        let words = text.get(line.clone()).unwrap_or("").to_ascii_lowercase();
        if SPEAKING.iter().any(|word| words.contains(word)) {
            let colon = words.find(':').unwrap_or(0);
            self.mask(line.start.saturating_add(colon).saturating_add(1)..line.end);
        }
    }

    /// What was built, or every mistake in the order of the text. `built` may be `None` only if a
    /// mistake was found.
    pub(crate) fn into_result<T>(
        mut self,
        built: Option<T>,
        text: &str,
        file_name: &str,
    ) -> Result<T, Mistakes> {
        debug_assert!(built.is_some() || !self.found.is_empty(), "nothing built, and no reason");
        match built {
            Some(built) if self.found.is_empty() => return Ok(built),
            _ => taximeter_collections::sort_by_key(&mut self.found, |found| found.at.start),
        }
        let mistakes = self.found.into_iter().map(|found| Mistake {
            position: Some(position(text, &found.at, &self.secrets)),
            subject: found.subject,
            problem: found.problem,
            hint: found.hint,
        });
        Err(Mistakes {
            mistakes: mistakes.collect(),
            file_name: file_name.to_owned(),
            not_shown: self.not_shown,
        })
    }
}

/// Lines end at `\n`; columns are characters.
fn position(text: &str, at: &Range<usize>, secrets: &[Range<usize>]) -> Position {
    let start = clamped(text, at.start);
    let line = line(text, start);
    let shown: Vec<char> = text
        .get(line.clone())
        .unwrap_or("")
        .char_indices()
        .map(|(index, c)| {
            let offset = line.start.saturating_add(index);
            match c {
                _ if secrets.iter().any(|secret| secret.contains(&offset)) => '*',
                c if c.is_control() => ' ',
                c => c,
            }
        })
        .collect();
    let chars = |range: Range<usize>| text.get(range).map_or(0, |part| part.chars().count());
    let before = chars(line.start..start);
    let meant = chars(start..at.end.min(line.end)).clamp(1, EXCERPT_CHARS_MAX / 2);
    let cut = match shown.len() > EXCERPT_CHARS_MAX {
        true => before.saturating_sub(EXCERPT_CHARS_MAX / 2),
        false => 0,
    };
    let carets = before.saturating_sub(cut);
    Position {
        line: text.get(..start).map_or(0, |part| part.matches('\n').count()).saturating_add(1),
        column: before.saturating_add(1),
        excerpt: shown.into_iter().skip(cut).take(EXCERPT_CHARS_MAX).collect(),
        carets: carets..carets.saturating_add(meant),
    }
}

/// `at`, or the end of the text's last word where `at` is behind it.
fn clamped(text: &str, at: usize) -> usize {
    text.floor_char_boundary(at.min(text.trim_end().len()))
}

/// The bytes of the line around `at`, without its end.
fn line(text: &str, at: usize) -> Range<usize> {
    let (before, behind) = text.split_at_checked(at).unwrap_or((text, ""));
    let start = before.rfind('\n').map_or(0, |newline| newline.saturating_add(1));
    let end = behind.find(['\r', '\n']).map_or(text.len(), |end| at.saturating_add(end));
    start..end
}
