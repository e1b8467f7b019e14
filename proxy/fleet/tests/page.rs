//! `docs/fleet.md` says which program tells which quantity. Its tables are made here.
#![cfg(test)]

use std::collections::BTreeMap;
use std::path::Path;

use taximeter_fleet::{
    EVENTS_MAX, EVENTS_OF_ONE_MAX, EventKind, Field, Layer, Op, PROC_NEVER, PROC_ROWS, QUANTITIES,
    Quantity, SOURCES, Source,
};
use taximeter_tests::generated::is_fresh;

/// What stands before the tables.
const MARK: &str = "<!-- The tables below are made from proxy/fleet/src/source. -->\n";

/// A quantity with the attributes that tell it from its like.
fn named(quantity: &Quantity, fixed: &[(&str, &str)]) -> String {
    let attributes: Vec<_> = fixed.iter().map(|(name, value)| format!("{name}={value}")).collect();
    match attributes.as_slice() {
        [] => format!("`{}`", quantity.name),
        all => format!("`{}` {}", quantity.name, all.join(", ")),
    }
}

/// The metrics of a source for each of its quantities.
fn cells(source: &Source) -> BTreeMap<(Layer, String), Vec<String>> {
    let mut cells: BTreeMap<(Layer, String), Vec<String>> = BTreeMap::new();
    let prefix = if source.anchors.is_empty() { source.prefixes[0] } else { "" };
    let wire = |name: &str| match source.anchors.is_empty() {
        true => format!("`{prefix}{name}`"),
        false => format!("`{}`", name.to_ascii_lowercase()),
    };
    for row in source.rows {
        let key = (row.quantity.layer, named(row.quantity, row.fixed));
        let only = row.only.map(|(label, values)| match values {
            [] => format!(" with `{label}`"),
            values => format!(" where `{label}` is `{}`", values.join("` or `")),
        });
        let unit = if row.unit.is_empty() { String::new() } else { format!(" ({})", row.unit) };
        let names: Vec<_> = row.names.iter().map(|name| wire(name)).collect();
        let text = format!("{}{unit}{}", names.join(", "), only.unwrap_or_default());
        cells.entry(key).or_default().push(text);
    }
    if source.subject.contains(&Field::Gpu) {
        let owner = QUANTITIES.iter().filter(|quantity| quantity.layer == Layer::Owner);
        let cell = || vec!["labels of the pod".to_owned()];
        cells.extend(owner.map(|is| ((Layer::Owner, named(is, &[])), cell())));
    }
    for derived in source.derived {
        let sign = if derived.how == Op::Sum { " + " } else { " / " };
        let of: Vec<_> = derived.of.iter().map(|of| of.name.rsplit('.').next().unwrap()).collect();
        let quantity = derived.row.quantity;
        let text = format!("made: {}", of.join(sign));
        cells.entry((quantity.layer, named(quantity, &[]))).or_default().push(text);
    }
    cells
}

/// What one program tells.
struct Column {
    title: &'static str,
    never: &'static [(&'static Quantity, &'static str)],
    cells: Cells,
}

/// All programs, and `/proc`.
fn columns() -> Vec<Column> {
    let of = |source: &&Source| (source.title, source.never, cells(source));
    let mut all: Vec<_> = SOURCES
        .iter()
        .map(of)
        .map(|(title, never, cells)| Column { title, never, cells })
        .collect();
    let mut cells = Cells::new();
    for row in PROC_ROWS {
        let key = (row.quantity.layer, named(row.quantity, row.fixed));
        cells.entry(key).or_default().push(format!("`{}`", row.from()));
    }
    let share = QUANTITIES.iter().find(|is| is.name == "taximeter.fleet.net.retransmit").unwrap();
    let made = vec!["made: retransmits / segments".to_owned()];
    cells.insert((share.layer, named(share, &[])), made);
    all.push(Column { title: "`/proc`", never: PROC_NEVER, cells });
    all
}

fn tables() -> String {
    let all = columns();
    let mut text = String::new();
    for (layer, title) in [
        (Layer::Engine, "L6: engines"),
        (Layer::Owner, "L4: owners"),
        (Layer::Host, "L3: hosts"),
        (Layer::Gpu, "L1: GPUs"),
    ] {
        let of: Vec<_> =
            all.iter().filter(|one| one.cells.keys().any(|(is, _)| *is == layer)).collect();
        text += &format!("\n### {title}\n\n| quantity | unit | what it is |");
        text += &of.iter().map(|one| format!(" {} |", one.title)).collect::<String>();
        text += &format!("\n|{}\n", "---|".repeat(3 + of.len()));
        for quantity in QUANTITIES.iter().filter(|quantity| quantity.layer == layer) {
            let begin = format!("`{}`", quantity.name);
            let mut names: Vec<&String> = Vec::new();
            for one in &of {
                for (is, name) in one.cells.keys() {
                    let own = *name == begin || name.starts_with(&format!("{begin} "));
                    if *is == layer && own && !names.contains(&name) {
                        names.push(name);
                    }
                }
            }
            if names.is_empty() {
                text += &row(&begin, quantity, &of, layer);
            }
            for name in names {
                text += &row(name, quantity, &of, layer);
            }
        }
    }
    text + &versions()
}

/// Where the version of each program, and of what it tells of, is from.
fn versions() -> String {
    let mut text = "\n### Versions\n\n| program | version of | from |\n|---|---|---|\n".to_owned();
    for source in SOURCES {
        for (label, of) in source.versions {
            text += &format!("| {} | {} | label `{label}` |\n", source.title, of.as_str());
        }
        for (path, member) in source.version_at {
            let title = source.title;
            text += &format!("| {title} | engine | `{member}` in the answer to `GET {path}` |\n");
        }
    }
    text + "| `/proc` | kernel | `/proc/sys/kernel/osrelease` |\n"
}

type Cells = BTreeMap<(Layer, String), Vec<String>>;

fn row(name: &str, quantity: &Quantity, of: &[&Column], layer: Layer) -> String {
    let mut text = format!("| {name} | {} | {} |", quantity.unit, quantity.meaning);
    for one in of {
        let never = one.never.iter().find(|(is, _)| *is == quantity);
        let cell = match (one.cells.get(&(layer, name.to_owned())), never) {
            (Some(cell), _) => cell.join("; "),
            (None, Some((_, why))) => format!("unknown: {why}"),
            (None, None) => "unknown".to_owned(),
        };
        text += &format!(" {cell} |");
    }
    text + "\n"
}

#[test]
fn the_page_has_what_each_program_tells() {
    let page = |stands: &str| {
        let before = stands.split_once(MARK).map_or(stands, |(before, _)| before);
        format!("{before}{MARK}{}", tables())
    };
    assert_eq!(is_fresh("docs/fleet.md", page), Ok(()));
}

#[test]
fn the_page_has_each_kind_of_event() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/fleet.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, events) = page.split_once("## Events\n").unwrap();
    let (events, _) = events.split_once("\n## ").unwrap();
    let told: Vec<_> = events.lines().filter(|line| line.starts_with("| `")).collect();
    let row = |kind: &EventKind| format!("| `{}` | {} |", kind.as_str(), kind.meaning());
    assert_eq!(told, EventKind::ALL.iter().map(row).collect::<Vec<_>>());
    assert!(
        events.contains(&format!("at most {EVENTS_OF_ONE_MAX} events of one kind and subject"))
    );
    assert_eq!((EVENTS_MAX, events.contains("2,000 in an hour")), (2_000, true));
}
