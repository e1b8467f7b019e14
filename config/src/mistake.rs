//! What is wrong with a configuration, and how a person is told.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

/// Mistakes kept of one file; the others are only counted.
const MISTAKES_MAX: usize = 100;
/// Characters of a source line shown around a mistake.
const EXCERPT_CHARS_MAX: usize = 120;

/// Why a value does not do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}; expected {expected}")]
pub struct Invalid {
    /// What is wrong, to be read after the value: “is no address”. Never quotes the value.
    pub problem: Cow<'static, str>,
    /// What would do.
    pub expected: Cow<'static, str>,
    /// Whether the value has a secret in it, so that no message may show it.
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
    /// Where in the file; `None` for a flag.
    pub place: Option<Position>,
    /// The key (`upstreams[0].url`) or the flag (`--listen`); empty for the file as a whole.
    pub subject: String,
    /// What is wrong.
    pub problem: String,
    /// What to do about it.
    pub hint: String,
}

/// A place in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// The line, cut to what fits a screen; secrets are masked.
    excerpt: String,
    /// The part of `excerpt` that is meant, in characters.
    carets: Range<usize>,
}

/// Every mistake of a configuration, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistakes {
    file_name: String,
    mistakes: Vec<Mistake>,
    /// Found, but beyond what is worth telling.
    untold: usize,
}

impl std::error::Error for Mistakes {}

impl Mistakes {
    /// The mistakes that are told; at least one.
    #[must_use]
    pub fn told(&self) -> &[Mistake] {
        &self.mistakes
    }

    /// Each of them in one line, as a log wants it.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.mistakes.iter().map(|Mistake { place, subject, problem, hint }| {
            let place = place.as_ref().map(|Position { line, column, .. }| {
                format!("{}:{line}:{column}: ", self.file_name)
            });
            let subject = if subject.is_empty() { String::new() } else { format!("{subject}: ") };
            format!("{}{subject}{problem}; {hint}", place.unwrap_or_default())
        })
    }

    /// Mistakes of flags, which have no place in a file.
    pub(crate) fn of_flags(mistakes: Vec<Mistake>) -> Self {
        Self { file_name: String::new(), mistakes, untold: 0 }
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for mistake in &self.mistakes {
            match &mistake.place {
                Some(place) => place.write(f, &self.file_name, mistake)?,
                None => {
                    writeln!(f, "{}: {}", mistake.subject, mistake.problem)?;
                    writeln!(f, "  {}", mistake.hint)?;
                }
            }
        }
        match self.mistakes.len().saturating_add(self.untold) {
            1 => f.write_str("1 problem; nothing was started"),
            n if self.untold > 0 => {
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

/// A mistake as it is found: by bytes of the text.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) at: Range<usize>,
    pub(crate) subject: String,
    pub(crate) problem: String,
    pub(crate) hint: String,
}

/// Gathers what is found; `Mistakes` at the end.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    found: Vec<Found>,
    untold: usize,
    secrets: Vec<Range<usize>>,
}

impl Findings {
    pub(crate) fn push(&mut self, found: Found) {
        if self.found.len() < MISTAKES_MAX {
            self.found.push(found);
        } else {
            self.untold = self.untold.saturating_add(1);
        }
    }

    /// These bytes of the text are shown to nobody.
    pub(crate) fn mask(&mut self, at: Range<usize>) {
        self.secrets.push(at);
    }

    /// These bytes were to be values, but the text is no tree: hides what is on a line that speaks
    /// of secrets.
    pub(crate) fn mask_line(&mut self, text: &str, at: &Range<usize>) {
        const SPEAKING: [&str; 5] = ["credential", "key", "password", "secret", "token"];
        let line = line(text, clamped(text, at.start));
        let words = text.get(line.clone()).unwrap_or("").to_ascii_lowercase();
        if SPEAKING.iter().any(|word| words.contains(word)) {
            let colon = words.find(':').unwrap_or(0);
            self.mask(line.start.saturating_add(colon).saturating_add(1)..line.end);
        }
    }

    /// What was built, or every mistake in the order of the text. Nothing is built only if a
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
            _ => self.found.sort_by_key(|found| found.at.start),
        }
        let mistakes = self.found.into_iter().map(|found| Mistake {
            place: Some(place(text, &found.at, &self.secrets)),
            subject: found.subject,
            problem: found.problem,
            hint: found.hint,
        });
        Err(Mistakes {
            mistakes: mistakes.collect(),
            file_name: file_name.to_owned(),
            untold: self.untold,
        })
    }
}

/// Lines end at `\n`; columns are characters.
fn place(text: &str, at: &Range<usize>, secrets: &[Range<usize>]) -> Position {
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

/// `at`, but not behind the last word of the text, where there is nothing to point at.
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
