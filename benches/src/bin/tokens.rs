//! What counting tokens costs, beside tiktoken-rs where that is telling.
//!
//! Times are of the CPU, since they depend less on what else the machine does; but for vocabularies
//! from files, which are read on two threads.
//!
//! `tokens` prints the table; `benches/run --only tokenizer` builds and starts it. It starts
//! itself again to be counted by callgrind, and to load a vocabulary into fresh memory:
//!   count WHICH TEXT TIMES   counts a text so often; WHICH is `ours` or `tiktoken-rs`, TEXT
//!                            `prose` or the name of a hard one
//!   deltas TIMES             counts the prose so often as it arrives, in deltas of four bytes
//!   load VOCABULARY          says milliseconds and MiB that loading it took; of a file, by the clock

use std::collections::BTreeMap;
use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use taximeter_benches::clock::{cpu_nanos, monotonic_nanos};
use taximeter_benches::{callgrind, say};
use taximeter_tokenizer::Tokenizer;

const PROSE: &str = include_str!("../prose.txt");

/// A model of each vocabulary.
const MODELS: [(&str, &str); 4] = [
    ("o200k_base", "gpt-5"),
    ("cl100k_base", "gpt-4"),
    ("p50k_base", "text-davinci-003"),
    ("r50k_base", "davinci"),
];

/// Vocabularies of open models, from the root of the repository.
const FILES: &str = "tests/.cache/exact/open";

/// Bytes of each text that is hard to count.
const HARD_BYTES: usize = 1 << 20;
/// How often each is counted or loaded; the least time is told.
const ROUNDS: usize = 3;
/// Bytes of a delta: about a token.
const DELTA_BYTES: usize = 4;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => print_all(),
        ["count", which, text, times] => count(which, text, times.parse()?),
        ["deltas", times] => {
            (0..times.parse::<u32>()?).for_each(|_| count_deltas(&tokenizer("o200k_base")));
            Ok(())
        }
        ["load", name] => load(name),
        _ => bail!(
            "usage: tokens [count ours|tiktoken-rs TEXT TIMES | deltas TIMES | load VOCABULARY]"
        ),
    }
}

fn print_all() -> Result<()> {
    say(&format!("{:<66}{:>10}  goal", "counting tokens", "taximeter"));
    for which in ["ours", "tiktoken-rs"] {
        let per_byte = difference(&["count", which, "prose"], PROSE.len())?;
        let goal = if which == "ours" { "≤ 105" } else { "" };
        row(&format!("English, o200k_base: instructions per byte, {which}"), per_byte, goal);
    }
    let deltas = PROSE.len().div_ceil(DELTA_BYTES);
    row("  as it arrives: instructions per delta of 4 bytes", difference(&["deltas"], deltas)?, "");
    let own = tokenizer("o200k_base");
    row("  as it arrives: ns per delta", nanos_per_delta(&own), "≤ 300");
    for (name, _) in MODELS {
        print_load(name, name)?;
    }
    print_files()?;
    say(&format!("{:<66}{:>10}  goal   {:>10}", "texts hard to count", "o200k", "cl100k"));
    for (what, text) in hard_texts() {
        let [own, older] = ["o200k_base", "cl100k_base"].map(|name| {
            let millis = least_millis(&tokenizer(name), &text);
            format!("{millis:.1}")
        });
        say(&format!("{:<66}{own:>10}  ≤ 150  {older:>10}", format!("ms per MiB of {what}")));
    }
    Ok(())
}

fn print_files() -> Result<()> {
    let listed = fs::read_dir(FILES).into_iter().flatten();
    let mut files = listed.map(|file| Ok(file?.path())).collect::<Result<Vec<PathBuf>>>()?;
    files.sort();
    if files.is_empty() {
        say(&format!("vocabularies from files: none; tests/exact/run fetches them into {FILES}"));
    }
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        print_load(&name, file.to_str().context("a path of UTF-8")?)?;
        print_counting(&Tokenizer::from_file(&*name, &fs::read(&file)?)?.tokenizer);
    }
    Ok(())
}

/// What the prose costs as it arrives, and the text that is hardest to count.
fn print_counting(tokenizer: &Tokenizer) {
    row("  as it arrives: ns per delta", nanos_per_delta(tokenizer), "≤ 300");
    let hard = hard_texts().into_iter().map(|(what, text)| (least_millis(tokenizer, &text), what));
    if let Some((millis, what)) = hard.max_by(|one, other| one.0.total_cmp(&other.0)) {
        row(&format!("  hardest text ({what}), ms per MiB"), millis, "≤ 150");
    }
}

fn print_load(name: &str, vocabulary: &str) -> Result<()> {
    let (mut millis, mut mib) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..ROUNDS {
        let loaded = run(&["load", vocabulary])?;
        let (time, memory) = loaded.trim().split_once(' ').context("two numbers")?;
        (millis, mib) = (millis.min(time.parse()?), mib.min(memory.parse()?));
    }
    row(&format!("{name}: load, ms"), millis, "≤ 150");
    row("  memory, MiB", mib, "≤ 60");
    Ok(())
}

fn row(label: &str, value: f64, goal: &str) {
    say(format!("{label:<66}{value:>10.1}  {goal}").trim_end());
}

fn tokenizer(name: &str) -> Tokenizer {
    let model = MODELS.iter().find(|(known, _)| *known == name).map_or(name, |(_, model)| model);
    Tokenizer::for_model(model).tokenizer
}

fn count(which: &str, text: &str, times: u32) -> Result<()> {
    let texts = if text == "prose" { BTreeMap::new() } else { hard_texts() };
    let text = texts.get(text).map_or(PROSE, String::as_str);
    let own = tokenizer("o200k_base");
    let theirs = tiktoken_rs::o200k_base_singleton;
    for _ in 0..times {
        match which {
            "ours" => black_box(own.count([black_box(text)]).tokens),
            "tiktoken-rs" => black_box(theirs().count_ordinary(black_box(text)) as u64),
            _ => bail!("{which} is neither ours nor tiktoken-rs"),
        };
    }
    Ok(())
}

fn count_deltas(tokenizer: &Tokenizer) {
    let mut counter = tokenizer.counter();
    for delta in PROSE.as_bytes().chunks(DELTA_BYTES) {
        counter.push(black_box(delta));
    }
    black_box(counter.finish());
}

fn nanos_per_delta(tokenizer: &Tokenizer) -> f64 {
    tokenizer.load();
    let times = 200;
    let started = cpu_nanos();
    (0..times).for_each(|_| count_deltas(tokenizer));
    let nanos = (cpu_nanos() - started) as f64;
    nanos / f64::from(times) / PROSE.len().div_ceil(DELTA_BYTES) as f64
}

fn load(name: &str) -> Result<()> {
    let file = if Path::new(name).is_file() { Some(fs::read(name)?) } else { None };
    let before = resident_kib()?;
    let (nanos, loaded) = if let Some(file) = &file {
        let started = monotonic_nanos();
        let loaded = Tokenizer::from_file(name, file)?;
        (monotonic_nanos() - started, loaded.tokenizer)
    } else {
        let tokenizer = tokenizer(name);
        let started = cpu_nanos();
        tokenizer.load();
        (cpu_nanos() - started, tokenizer)
    };
    let mib = (resident_kib()? - before) / 1024.0;
    black_box(loaded);
    say(&format!("{:.1} {mib:.1}", nanos as f64 / 1e6));
    Ok(())
}

fn resident_kib() -> Result<f64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    Ok(line.and_then(|line| line.split_whitespace().next()).context("VmRSS")?.parse()?)
}

fn least_millis(tokenizer: &Tokenizer, text: &str) -> f64 {
    let nanos = (0..ROUNDS).map(|_| {
        let started = cpu_nanos();
        black_box(tokenizer.count([black_box(text)]));
        cpu_nanos() - started
    });
    nanos.min().unwrap_or_default() as f64 / 1e6
}

/// Texts that have brought tokenizers to their knees.
fn hard_texts() -> BTreeMap<&'static str, String> {
    let mut random = Random(1);
    let mut drawn = |from: &str| {
        let chars: Vec<char> = from.chars().collect();
        let mut text = String::new();
        while text.len() < HARD_BYTES {
            text.extend(random.choose(&chars));
        }
        text
    };
    let run = |unit: &str| unit.repeat(HARD_BYTES / unit.len());
    let letters = "abcdefghijklmnopqrstuvwxyz";
    let base64 = letters.to_owned() + &letters.to_uppercase() + "0123456789+/";
    BTreeMap::from([
        ("blanks", run(" ")),
        ("newlines", run("\n")),
        ("one letter", run("a")),
        ("two letters in turn", run("ab")),
        ("one word without blanks", run("taximeter")),
        ("^", run("^")),
        ("one digit", run("0")),
        ("joiners (U+200D)", run("\u{200d}")),
        ("emoji joined", run("👩\u{200d}")),
        ("one ideograph", run("日")),
        ("random letters", drawn(letters)),
        ("random base64", drawn(&base64)),
        (
            "random ideographs",
            drawn("的一是不了人我在有他这中大来上国个到说们为子和你地出道也时年"),
        ),
        (
            "random kana",
            drawn("あいうえおかきくけこさしすせそたちつてとなにぬねのはひふへほまみむめも"),
        ),
        ("random Thai", drawn("กขคงจฉชซญดตถทธนบปผฝพฟภมยรลวศสหอะาิีุูเแโใไ่้")),
    ])
}

/// SplitMix64: the same texts at every run.
struct Random(u64);

impl Random {
    fn choose<'a>(&mut self, from: &'a [char]) -> Option<&'a char> {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        from.get(usize::try_from((mixed >> 33) % from.len() as u64).unwrap_or_default())
    }
}

/// Instructions per unit by callgrind: the difference of few and many rounds of `units`, so that
/// start and load cancel out.
fn difference(arguments: &[&str], units: usize) -> Result<f64> {
    let (few, many) = (1_u32, 11_u32);
    let more = instructions(arguments, many)? - instructions(arguments, few)?;
    Ok(more / f64::from(many - few) / units as f64)
}

fn instructions(arguments: &[&str], times: u32) -> Result<f64> {
    let mut own = Command::new(std::env::current_exe()?);
    callgrind::instructions(own.args(arguments).arg(times.to_string()))
}

fn run(arguments: &[&str]) -> Result<String> {
    let output = Command::new(std::env::current_exe()?).args(arguments).output()?;
    Ok(String::from_utf8(output.stdout)?)
}
