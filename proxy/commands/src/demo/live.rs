//! The live table of the demo.

use std::io::{self, Write};
use std::time::Duration;

use comfy_table::{CellAlignment, Table};
use rust_decimal::Decimal;

/// Decimal places of a cost. The bill has all of them.
const COST_DIGITS: u32 = 6;

/// The figures of one tenant and model so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct LiveRow {
    /// The tenant.
    pub(super) tenant: String,
    /// The requested model.
    pub(super) model: String,
    /// Finished requests.
    pub(super) requests: u64,
    /// Running requests.
    pub(super) in_flight: u64,
    /// Input tokens of finished requests.
    pub(super) input_tokens: u64,
    /// Output tokens of finished requests.
    pub(super) output_tokens: u64,
    /// Median time to first token.
    pub(super) time_to_first_token_p50: Option<Duration>,
    /// 95th percentile of the time to first token.
    pub(super) time_to_first_token_p95: Option<Duration>,
    /// Cost in US dollars. `None` means unknown.
    pub(super) cost: Option<Decimal>,
}

/// Shows the table: redrawn in place on a terminal, and as single lines elsewhere.
pub(super) struct Screen<W: Write> {
    out: W,
    terminal: bool,
    /// Lines to move up before the next drawing.
    drawn: usize,
}

impl<W: Write> Screen<W> {
    pub(super) fn new(out: W, terminal: bool) -> Self {
        Self { out, terminal, drawn: 0 }
    }

    /// Time between two updates.
    pub(super) fn period(&self) -> Duration {
        if self.terminal { Duration::from_millis(200) } else { Duration::from_secs(2) }
    }

    /// Shows the current figures.
    pub(super) fn update(&mut self, rows: &[LiveRow], elapsed: Duration) -> io::Result<()> {
        if self.terminal {
            self.draw(rows, elapsed)
        } else {
            writeln!(self.out, "{}", summary(rows, elapsed))?;
            self.out.flush()
        }
    }

    /// Shows the final figures.
    pub(super) fn last(&mut self, rows: &[LiveRow], elapsed: Duration) -> io::Result<()> {
        self.draw(rows, elapsed)
    }

    fn draw(&mut self, rows: &[LiveRow], elapsed: Duration) -> io::Result<()> {
        let text = format!("{}\n\n{}", table(rows, elapsed), summary(rows, elapsed));
        if !self.terminal {
            return writeln!(self.out, "{text}");
        }
        // In one write: up to where the last one began; long lines are cut, not wrapped, so that
        // the way up is right; clear what the last one left; the cursor hidden while it moves.
        let mut frame = String::from("\x1b[?25l\x1b[?7l");
        if self.drawn > 0 {
            frame += &format!("\x1b[{}A", self.drawn);
        }
        for line in text.lines() {
            frame += &format!("\r{line}\x1b[K\n");
        }
        frame += "\x1b[J\x1b[?7h\x1b[?25h";
        self.drawn = text.lines().count();
        self.out.write_all(frame.as_bytes())?;
        self.out.flush()
    }
}

fn table(rows: &[LiveRow], elapsed: Duration) -> String {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header([
        "tenant", "model", "requests", "running", "input", "output", "tokens/s", "TTFT p50", "p95",
        "USD",
    ]);
    for row in rows {
        table.add_row([
            row.tenant.clone(),
            row.model.clone(),
            row.requests.to_string(),
            row.in_flight.to_string(),
            row.input_tokens.to_string(),
            row.output_tokens.to_string(),
            rate(row.output_tokens, elapsed),
            milliseconds(row.time_to_first_token_p50),
            milliseconds(row.time_to_first_token_p95),
            cost(row.cost),
        ]);
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt()
}

fn summary(rows: &[LiveRow], elapsed: Duration) -> String {
    let sum = |count: fn(&LiveRow) -> u64| rows.iter().map(count).sum::<u64>();
    let costs: Option<Decimal> = rows.iter().map(|row| row.cost).sum();
    format!(
        "{:>3} s: {} requests, {} running, {} input and {} output tokens, {} USD",
        elapsed.as_secs(),
        sum(|row| row.requests),
        sum(|row| row.in_flight),
        sum(|row| row.input_tokens),
        sum(|row| row.output_tokens),
        cost(costs),
    )
}

fn rate(tokens: u64, elapsed: Duration) -> String {
    if elapsed.is_zero() {
        return "-".to_owned();
    }
    format!("{:.0}", tokens as f64 / elapsed.as_secs_f64())
}

fn milliseconds(time: Option<Duration>) -> String {
    time.map_or("-".to_owned(), |time| format!("{:.0} ms", time.as_secs_f64() * 1000.0))
}

fn cost(cost: Option<Decimal>) -> String {
    cost.map_or("unknown".to_owned(), |cost| format!("{:.6}", cost.round_dp(COST_DIGITS)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> LiveRow {
        LiveRow {
            tenant: "acme".to_owned(),
            model: "m".to_owned(),
            requests: 3,
            in_flight: 1,
            input_tokens: 40,
            output_tokens: 90,
            time_to_first_token_p50: Some(Duration::from_millis(120)),
            time_to_first_token_p95: None,
            cost: Some(Decimal::new(1234, 5)),
        }
    }

    #[test]
    fn a_row_says_what_was_measured() {
        let text = table(&[row()], Duration::from_secs(9));
        let line = text.lines().find(|line| line.contains("acme")).unwrap();
        let cells: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(cells, ["acme", "m", "3", "1", "40", "90", "10", "120", "ms", "-", "0.012340"]);
    }

    #[test]
    fn an_unknown_cost_makes_the_sum_unknown() {
        let unknown = LiveRow { cost: None, ..row() };
        let text = summary(&[row(), unknown], Duration::from_secs(2));
        assert_eq!(
            text,
            "  2 s: 6 requests, 2 running, 80 input and 180 output tokens, unknown USD"
        );
    }

    #[test]
    fn a_terminal_is_redrawn_from_where_the_last_table_began() {
        let mut bytes = Vec::new();
        let mut screen = Screen::new(&mut bytes, true);
        screen.update(&[row()], Duration::from_secs(1)).unwrap();
        let lines = screen.drawn;
        screen.update(&[row()], Duration::from_secs(2)).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(text.matches(&format!("\x1b[{lines}A")).count(), 1);
        assert_eq!(text.matches('\n').count(), 2 * lines);
    }

    #[test]
    fn what_is_no_terminal_gets_lines_without_escapes() {
        let mut bytes = Vec::new();
        Screen::new(&mut bytes, false).update(&[row()], Duration::from_secs(1)).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(text.lines().count(), 1);
        assert!(!text.contains('\x1b'));
    }
}
