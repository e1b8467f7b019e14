//! `prometheus.io/*` annotations of the gateway's own pod: where that pod has metrics.
//!
//! A sidecar may not ask the cluster. But Kubernetes shows a pod its own annotations in a file (downward
//! API, `metadata.annotations`), and writes it anew when they change: a line for each, its value quoted as
//! Go quotes. The names are a convention of charts, which Prometheus' own examples follow.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use taximeter_system::look::Look;

/// Longest file that is read, in bytes. All annotations of a pod have at most 256 KiB, and quotes make a
/// byte up to four.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Longest part of a value that is shown, in characters.
const SHOWN_CHARS_MAX: usize = 60;
/// Most mistakes that are told.
const TOLD_MAX: usize = 8;
/// What the names begin with.
const PREFIX: &str = "prometheus.io/";
/// The path of metrics where no annotation says it.
const METRICS: &str = "/metrics";

/// What the annotations of a pod say of its metrics.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Annotations {
    /// Where its metrics are; `None` where it is not to be asked, or where that is not clear.
    pub at: Option<Place>,
    /// What is wrong, for people.
    pub wrong: Vec<String>,
}

/// Where a pod has its metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// TLS or not.
    pub tls: bool,
    /// The port.
    pub port: u16,
    /// Path and query.
    pub path: String,
}

impl Annotations {
    /// Reads the text of the file.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let mut wrong = Vec::new();
        let [mut scrape, mut port, mut path, mut scheme] = [const { None::<String> }; 4];
        for (nth, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
            let Some((key, value)) = annotation(line) else {
                wrong.push(format!("line {} is no `key=\"value\"`", nth + 1));
                continue;
            };
            let place = match key.strip_prefix(PREFIX) {
                Some("scrape") => &mut scrape,
                Some("port") => &mut port,
                Some("path") => &mut path,
                Some("scheme") => &mut scheme,
                _ => continue,
            };
            if place.replace(value).is_some() {
                wrong.push(format!("{key} is there twice"));
            }
        }
        // An empty value is as none.
        let given = |value: Option<String>| value.filter(|value| !value.is_empty());
        let at = match given(scrape).as_deref() {
            None | Some("false") => None,
            Some("true") => place(given(port), given(path), given(scheme), &mut wrong),
            Some(other) => {
                wrong.push(told("scrape", other, "is neither \"true\" nor \"false\""));
                None
            }
        };
        wrong.truncate(TOLD_MAX);
        Self { at, wrong }
    }
}

/// Where to ask; `None` if an annotation does not do, or the port is not told.
fn place(
    port: Option<String>,
    path: Option<String>,
    scheme: Option<String>,
    wrong: &mut Vec<String>,
) -> Option<Place> {
    let before = wrong.len();
    let number = port.as_deref().and_then(number);
    match (&port, number) {
        (None, _) => wrong.push(format!("{PREFIX}port is missing, so the port is unknown")),
        (Some(port), None) => wrong.push(told("port", port, "is no port, from 1 to 65535")),
        (Some(_), Some(_)) => {}
    }
    let path = path.unwrap_or_else(|| METRICS.to_owned());
    if !path.starts_with('/') {
        wrong.push(told("path", &path, "does not begin with a slash"));
    } else if !path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#') {
        wrong.push(told("path", &path, "has characters that a URL cannot have"));
    }
    let tls = match scheme.as_deref() {
        None | Some("http") => false,
        Some("https") => true,
        Some(other) => {
            wrong.push(told("scheme", other, "is neither \"http\" nor \"https\""));
            false
        }
    };
    let port = number.filter(|_| wrong.len() == before)?;
    Some(Place { tls, port, path })
}

fn number(text: &str) -> Option<u16> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|port| is_number && *port > 0)
}

fn told(name: &str, value: &str, problem: &str) -> String {
    let cut: String = value.chars().take(SHOWN_CHARS_MAX).collect();
    format!("{PREFIX}{name}: {cut:?} {problem}")
}

/// One line: a key, and its value without quotes.
fn annotation(line: &str) -> Option<(&str, String)> {
    let (key, value) = line.split_once('=')?;
    let inner = value.strip_prefix('"')?.strip_suffix('"')?;
    Some((key, unquoted(inner)?))
}

/// What Go has quoted. What is not UTF-8 in there becomes U+FFFD.
fn unquoted(mut rest: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(rest.len());
    while let Some((plain, special)) =
        rest.find(['\\', '"']).and_then(|at| rest.split_at_checked(at))
    {
        bytes.extend(plain.as_bytes());
        // A quote without a backslash is none of the text.
        let escape = special.strip_prefix('\\')?;
        let kind = escape.chars().next()?;
        rest = escape.get(kind.len_utf8()..)?;
        let simple = match kind {
            'a' => 0x07,
            'b' => 0x08,
            'f' => 0x0c,
            'n' => b'\n',
            'r' => b'\r',
            't' => b'\t',
            'v' => 0x0b,
            '\\' | '"' => kind as u8,
            'x' => {
                let code = hex(&mut rest, 2)?;
                bytes.push(u8::try_from(code).ok()?);
                continue;
            }
            'u' | 'U' => {
                let code = hex(&mut rest, if kind == 'u' { 4 } else { 8 })?;
                bytes.extend(char::from_u32(code)?.encode_utf8(&mut [0; 4]).as_bytes());
                continue;
            }
            _ => return None,
        };
        bytes.push(simple);
    }
    bytes.extend(rest.as_bytes());
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Takes so many hexadecimal digits.
fn hex(rest: &mut &str, digits: usize) -> Option<u32> {
    let (code, behind) = rest.split_at_checked(digits)?;
    *rest = behind;
    let is_hex = code.bytes().all(|byte| byte.is_ascii_hexdigit());
    u32::from_str_radix(code, 16).ok().filter(|_| is_hex)
}

/// The file of the annotations, and what it last said.
#[derive(Debug, Default)]
pub struct AnnotationsFile {
    path: Option<PathBuf>,
    look: Option<Look>,
    said: Option<Result<Annotations, String>>,
}

impl AnnotationsFile {
    /// Reads `path` again where it has changed, or is another path. Whether that is so.
    pub fn refresh(&mut self, path: Option<&Path>) -> bool {
        // What changes while it is read is seen by the next look.
        let look = path.map(|path| Look::at(&[path.to_owned()]));
        if self.look == look && self.path.as_deref() == path {
            return false;
        }
        self.path = path.map(Path::to_owned);
        self.look = look;
        self.said = path.map(|path| text(path).map(|text| Annotations::read(&text)));
        true
    }

    /// The file, and what it says or why it cannot be read; `None` where there is none to read.
    #[must_use]
    pub fn said(&self) -> Option<(&Path, &Result<Annotations, String>)> {
        self.path.as_deref().zip(self.said.as_ref())
    }
}

/// The text of a file of annotations.
fn text(path: &Path) -> Result<String, String> {
    let mut text = String::new();
    let file =
        File::open(path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text));
    match file {
        Err(fault) => Err(format!("it cannot be read: {fault}")),
        Ok(bytes) if bytes as u64 > FILE_BYTES_MAX => {
            Err(format!("it has more than {FILE_BYTES_MAX} bytes, so it is no file of annotations"))
        }
        Ok(_) => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use proptest::prelude::*;

    use super::*;

    /// As Kubernetes writes them: Go's `%q`.
    fn quoted(value: &str) -> String {
        let mut text = String::from("\"");
        for c in value.chars() {
            match c {
                '\u{7}' => text.push_str("\\a"),
                '\u{8}' => text.push_str("\\b"),
                '\u{c}' => text.push_str("\\f"),
                '\n' => text.push_str("\\n"),
                '\r' => text.push_str("\\r"),
                '\t' => text.push_str("\\t"),
                '\u{b}' => text.push_str("\\v"),
                '\\' | '"' => text.extend(['\\', c]),
                c if c < ' ' || c == '\u{7f}' => write!(text, "\\x{:02x}", c as u32).unwrap(),
                c if c.is_control() || c == '\u{202e}' => {
                    write!(text, "\\u{:04x}", c as u32).unwrap();
                }
                c if c > '\u{effff}' => write!(text, "\\U{:08x}", c as u32).unwrap(),
                c => text.push(c),
            }
        }
        text.push('"');
        text
    }

    fn file(annotations: &[(&str, &str)]) -> String {
        let lines = annotations.iter().map(|(key, value)| format!("{key}={}", quoted(value)));
        lines.collect::<Vec<_>>().join("\n")
    }

    fn scraped(more: &[(&str, &str)]) -> Annotations {
        let mut all = vec![("prometheus.io/scrape", "true")];
        all.extend(more);
        Annotations::read(&file(&all))
    }

    fn told(more: &[(&str, &str)]) -> String {
        let Annotations { at, wrong } = scraped(more);
        assert_eq!(at, None, "nothing is asked: {wrong:?}");
        wrong.join("; ")
    }

    #[test]
    fn a_pod_that_is_to_be_asked_says_where() {
        let at = |tls, port, path: &str| Some(Place { tls, port, path: path.to_owned() });
        let port = ("prometheus.io/port", "8000");
        let bare = scraped(&[port]);
        assert_eq!(bare, Annotations { at: at(false, 8000, "/metrics"), wrong: Vec::new() });
        let path = ("prometheus.io/path", "/stats?format=prometheus");
        let all =
            scraped(&[port, path, ("prometheus.io/scheme", "https"), ("a.b/config", "x: \"y\"\n")]);
        assert_eq!(all.at, at(true, 8000, "/stats?format=prometheus"));
        assert_eq!(scraped(&[port, ("prometheus.io/path", "")]).at, at(false, 8000, "/metrics"));
        for nothing in ["", "a=\"b\"", "prometheus.io/scrape=\"false\"", "prometheus.io/port=\"x\""]
        {
            assert_eq!(Annotations::read(nothing), Annotations::default(), "{nothing}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_and_nothing_is_guessed() {
        let port = ("prometheus.io/port", "8000");
        for (more, expected) in [
            (&[][..], "prometheus.io/port is missing, so the port is unknown"),
            (&[("prometheus.io/port", "http")], "prometheus.io/port: \"http\" is no port"),
            (&[("prometheus.io/port", "0")], "\"0\" is no port"),
            (&[("prometheus.io/port", "+80")], "\"+80\" is no port"),
            (&[("prometheus.io/port", "65536")], "\"65536\" is no port"),
            (&[port, ("prometheus.io/path", "stats")], "\"stats\" does not begin with a slash"),
            (&[port, ("prometheus.io/path", "/a b")], "\"/a b\" has characters that a URL"),
            (&[port, ("prometheus.io/path", "/a\r\nb")], "\"/a\\r\\nb\" has characters"),
            (&[port, ("prometheus.io/scheme", "ftp")], "\"ftp\" is neither \"http\" nor \"https\""),
            (&[("prometheus.io/scrape", "true"), port], "prometheus.io/scrape is there twice"),
        ] {
            let Annotations { wrong, .. } = scraped(more);
            assert!(wrong.join("; ").contains(expected), "{wrong:?}");
        }
        let both = told(&[("prometheus.io/port", "x"), ("prometheus.io/path", "y")]);
        assert!(both.contains("is no port") && both.contains("begin with a slash"), "{both}");
        let yes = Annotations::read("prometheus.io/scrape=\"yes\"");
        assert_eq!(yes.wrong, ["prometheus.io/scrape: \"yes\" is neither \"true\" nor \"false\""]);
        let long = told(&[("prometheus.io/port", &"9".repeat(10_000))]);
        assert!(long.len() < 200, "{long}");
        // A line that cannot be read costs no other.
        let rubbish =
            format!("<html>\n{}\nb=\"\\q\"", file(&[("prometheus.io/scrape", "true"), port]));
        let read = Annotations::read(&rubbish);
        assert_eq!(read.at.map(|at| at.port), Some(8000));
        assert_eq!(read.wrong.len(), 2, "{:?}", read.wrong);
    }

    proptest! {
        /// Whatever the other annotations of the pod are.
        #[test]
        fn a_value_is_what_it_was_before_kubernetes_quoted_it(value in any::<String>()) {
            let line = format!("k={}", quoted(&value));
            prop_assert_eq!(annotation(&line), Some(("k", value)));
        }

        #[test]
        fn whatever_the_file_has_only_a_whole_place_is_asked(
            text in "(prometheus\\.io/(scrape|port|path|scheme)=\"?(true|80|/m|[^\n]{0,9})\"?\n){0,6}",
        ) {
            let Annotations { at, wrong } = Annotations::read(&text);
            prop_assert!(wrong.len() <= TOLD_MAX);
            if let Some(Place { port, path, .. }) = at {
                prop_assert!(port > 0 && path.starts_with('/'));
                prop_assert!(text.contains("scrape=\"true\""));
            }
        }
    }

    #[test]
    fn the_file_is_read_again_when_it_changes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("annotations");
        let mut file = AnnotationsFile::default();
        assert!(!file.refresh(None) && file.said().is_none());
        assert!(file.refresh(Some(&path)) && !file.refresh(Some(&path)));
        let (_, said) = file.said().unwrap();
        assert!(said.as_ref().unwrap_err().starts_with("it cannot be read: No such file"));
        std::fs::write(&path, "prometheus.io/scrape=\"true\"\nprometheus.io/port=\"81\"").unwrap();
        assert!(file.refresh(Some(&path)) && !file.refresh(Some(&path)));
        let (_, said) = file.said().unwrap();
        assert_eq!(said.as_ref().unwrap().at.as_ref().map(|at| at.port), Some(81));
        std::fs::write(&path, vec![b'x'; (1 << 20) + 1]).unwrap();
        assert!(file.refresh(Some(&path)));
        assert!(file.said().unwrap().1.as_ref().unwrap_err().contains("more than 1048576 bytes"));
        assert!(file.refresh(None) && file.said().is_none());
    }
}
