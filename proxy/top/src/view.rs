//! Draws the data into a terminal window of any size.

use std::ops::Range;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{
    Block, Cell, Clear, Paragraph, RenderDirection, Row, Sparkline, Table, Wrap,
};

use super::figures::{count, width};
use super::headline::{self, Segment, Tone};
use super::listing::{Listing, of_names, of_running, of_upstreams};
use super::screen::{Screen, Show};
use super::snapshot::{Point, Snapshot};

/// A smaller window shows only a message.
const LEAST: (u16, u16) = (40, 10);
/// A smaller window hides some parts.
const WHOLE: (u16, u16) = (80, 24);
/// A lower window has no charts. A window of `HIGH_ROWS_MIN` rows has higher charts.
const LINES_ROWS_MIN: u16 = 18;
const HIGH_ROWS_MIN: u16 = 36;
/// Least rows of a table in the overview, with its header.
const TABLE_ROWS_MIN: u16 = 2;

const HELP: &str = "\
q  Esc  Ctrl-C    quit
Tab  arrows  1-5  overview, tenants, models, running, upstreams
s                 change the order
Up  Down  PgUp  PgDn  g  G    scroll
p  Space          pause or resume
?                 open or close this help

Rates are over the last minute. Tokens count while they stream.
Time to first token (TTFT) counts when it comes, requests later.
live    requests that run now
stall   longest gap between two tokens
12.3+   some requests have no known price
–       unknown";

/// Colours and styles.
#[derive(Debug, Clone, Copy)]
pub(super) struct Theme {
    /// Whether to use colours.
    pub(super) colours: bool,
}

impl Theme {
    fn of(self, tone: Tone) -> Style {
        let colour = |colour| {
            if self.colours { Style::new().fg(colour) } else { Style::new() }
        };
        match tone {
            Tone::Plain => Style::new(),
            Tone::Strong => Style::new().add_modifier(Modifier::BOLD),
            Tone::Good => colour(Color::Green),
            Tone::Odd => colour(Color::Yellow).add_modifier(Modifier::BOLD),
            Tone::Bad => colour(Color::Red).add_modifier(Modifier::BOLD),
        }
    }

    fn line(self, first: bool) -> Style {
        let colour = if first { Color::Cyan } else { Color::Green };
        if self.colours { Style::new().fg(colour) } else { Style::new() }
    }

    const HEAD: Style = Style::new().add_modifier(Modifier::REVERSED);
}

/// What stays the same from frame to frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    /// The URL of the admin address.
    pub(super) url: &'a str,
    pub(super) theme: Theme,
}

impl View<'_> {
    /// Draws everything. It also limits how far `screen` scrolls.
    pub(super) fn draw(&self, snapshot: &Snapshot, screen: &mut Screen, frame: &mut Frame<'_>) {
        let area = frame.area();
        if area.width < LEAST.0 || area.height < LEAST.1 {
            let (columns, rows) = LEAST;
            let text = format!(
                "{}x{} is too small: the window needs {columns}x{rows}, or better 80x24; q quits",
                area.width, area.height
            );
            return frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: true }), area);
        }
        let lines = match area.height {
            low if low < LINES_ROWS_MIN => 0,
            middle if middle < HIGH_ROWS_MIN => 3,
            _ => 6,
        };
        let [head, over_time, tables, foot] = Layout::vertical([
            Constraint::Length(3),
            Constraint::Length(lines),
            Constraint::Fill(1),
            Constraint::Length(1),
        ])
        .areas(area);
        self.draw_head(snapshot, frame, head);
        if lines > 0 {
            self.draw_over_time(snapshot, frame, over_time);
        }
        match screen.show {
            Show::Overview => self.draw_overview(snapshot, screen, frame, tables),
            show => self.draw_one(snapshot, screen, show, frame, tables),
        }
        self.draw_foot(snapshot, screen, frame, foot);
        if screen.help {
            draw_help(frame, area);
        }
    }

    fn draw_head(&self, snapshot: &Snapshot, frame: &mut Frame<'_>, area: Rect) {
        let last = headline::trouble(snapshot, self.url).map_or_else(
            || self.line(headline::money(snapshot)),
            |trouble| Line::styled(trouble, self.theme.of(Tone::Bad)),
        );
        let who = self.line(headline::who(snapshot));
        let lines = vec![who, self.line(headline::what(snapshot)), last];
        frame.render_widget(Paragraph::new(lines), area);
    }

    fn line(&self, pieces: Vec<Segment>) -> Line<'static> {
        let mut spans = Vec::new();
        for Segment { text, tone } in pieces {
            if !spans.is_empty() {
                spans.push(Span::raw("  "));
            }
            spans.push(Span::styled(text, self.theme.of(tone)));
        }
        spans.into()
    }

    fn draw_over_time(&self, snapshot: &Snapshot, frame: &mut Frame<'_>, area: Rect) {
        let [left, right] =
            Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).spacing(2).areas(area);
        let first_token = |point: &Point| point.first_token.map(|seconds| seconds * 1e6);
        let output_tokens = |point: &Point| point.output_tokens.map(|rate| rate * 1e3);
        let title = headline::first_tokens(snapshot);
        self.draw_line(&title, self.theme.line(true), snapshot, first_token, frame, left);
        let title = headline::output_tokens(snapshot);
        self.draw_line(&title, self.theme.line(false), snapshot, output_tokens, frame, right);
    }

    fn draw_line(
        &self,
        title: &str,
        style: Style,
        snapshot: &Snapshot,
        value: impl Fn(&Point) -> Option<f64>,
        frame: &mut Frame<'_>,
        area: Rect,
    ) {
        let [head, line] =
            Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
        frame.render_widget(Line::styled(title, self.theme.of(Tone::Strong)), head);
        let points = snapshot.points.iter().rev().take(usize::from(line.width));
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let points: Vec<_> = points.map(|point| value(point).map(|number| number as u64)).collect();
        let sparkline = Sparkline::default().data(points).style(style).absent_value_symbol(" ");
        frame.render_widget(sparkline.direction(RenderDirection::RightToLeft), line);
    }

    fn draw_overview(
        &self,
        snapshot: &Snapshot,
        screen: &Screen,
        frame: &mut Frame<'_>,
        area: Rect,
    ) {
        let shows = [Show::Tenants, Show::Models, Show::Running, Show::Upstreams];
        let wanted = shows.map(|show| u16::try_from(rows_of(snapshot, show) + 1));
        let wanted = wanted.map(|rows| rows.unwrap_or(u16::MAX));
        let heights = shared(area.height, wanted);
        let areas: [Rect; 4] = Layout::vertical(heights.map(Constraint::Length)).areas(area);
        for (show, area) in shows.into_iter().zip(areas) {
            let rows = 0..usize::from(area.height.saturating_sub(1));
            self.draw_listing(&listing(snapshot, screen, show, area.width, rows), frame, area);
        }
    }

    fn draw_one(
        &self,
        snapshot: &Snapshot,
        screen: &mut Screen,
        show: Show,
        frame: &mut Frame<'_>,
        area: Rect,
    ) {
        let room = usize::from(area.height.saturating_sub(1));
        let all = rows_of(snapshot, show);
        screen.above = screen.above.min(all.saturating_sub(room));
        let rows = screen.above..screen.above + room;
        self.draw_listing(&listing(snapshot, screen, show, area.width, rows), frame, area);
    }

    fn draw_listing(&self, listing: &Listing, frame: &mut Frame<'_>, area: Rect) {
        let cell = |text: &str, is_figure: bool| {
            let text = Text::raw(text.to_owned());
            Cell::new(if is_figure { text.right_aligned() } else { text })
        };
        let columns = &listing.columns;
        let widths = columns
            .iter()
            .map(|column| Constraint::Length(u16::try_from(column.columns).unwrap_or(u16::MAX)));
        let heads = columns.iter().map(|column| cell(&column.head, column.is_figure));
        let rows = listing.rows.iter().map(|row| {
            let row = row.iter().zip(columns);
            Row::new(row.map(|(text, column)| cell(text, column.is_figure)))
        });
        let table = Table::new(rows, widths).header(Row::new(heads).style(Theme::HEAD));
        frame.render_widget(table, area);
        if listing.rows.is_empty() && area.height > 1 {
            let below = Rect { y: area.y + 1, height: 1, ..area };
            frame.render_widget(Line::raw(listing.nothing), below);
        }
    }

    fn draw_foot(&self, snapshot: &Snapshot, screen: &Screen, frame: &mut Frame<'_>, area: Rect) {
        let note = self.note(snapshot, screen, frame.area());
        let columns = u16::try_from(note.width()).unwrap_or(area.width).min(area.width);
        let right = Rect { x: area.right() - columns, width: columns, ..area };
        frame.render_widget(note, right);
        let show = format!("Tab {}", screen.show.as_str());
        let sort = screen.order_word().map(|word| format!("s sort: {word}"));
        let pause = if screen.paused { "p resume" } else { "p pause" };
        let keys = ["q quit", &show, "? help", pause, sort.as_deref().unwrap_or_default()];
        let mut left = String::new();
        for key in keys {
            // If the line is too short, the last keys are left out.
            if width(&left) + width(key) + 2 <= usize::from(area.width - columns) {
                left = left + key + "  ";
            }
        }
        let area = Rect { width: area.width - columns, ..area };
        frame.render_widget(Line::raw(left), area);
    }

    /// A note about the visible tables.
    fn note(&self, snapshot: &Snapshot, screen: &Screen, area: Rect) -> Line<'static> {
        if screen.paused {
            Line::styled("PAUSED", self.theme.of(Tone::Odd))
        } else if area.width < WHOLE.0 || area.height < WHOLE.1 {
            Line::raw("80x24 shows more")
        } else if screen.above > 0 {
            Line::raw(format!("{} rows above", count(screen.above as u64)))
        } else {
            Line::raw(headline::window(snapshot))
        }
    }
}

fn draw_help(frame: &mut Frame<'_>, area: Rect) {
    let lines = u16::try_from(HELP.lines().count()).unwrap_or(u16::MAX);
    let columns = HELP.lines().map(|line| line.chars().count()).max().unwrap_or_default();
    let columns = u16::try_from(columns).unwrap_or(u16::MAX).saturating_add(4).min(area.width);
    let rows = lines.saturating_add(2).min(area.height);
    let within = Rect {
        x: area.x + (area.width - columns) / 2,
        y: area.y + (area.height - rows) / 2,
        width: columns,
        height: rows,
    };
    frame.render_widget(Clear, within);
    let block = Block::bordered().title(" Help ");
    frame.render_widget(Paragraph::new(HELP).block(block), within);
}

/// The number of rows of a table.
fn rows_of(snapshot: &Snapshot, show: Show) -> usize {
    match show {
        Show::Overview => 0,
        Show::Tenants => snapshot.tenants.len(),
        Show::Models => snapshot.models.len(),
        Show::Running => snapshot.requests.len(),
        Show::Upstreams => snapshot.upstreams.len(),
    }
}

fn listing(
    snapshot: &Snapshot,
    screen: &Screen,
    show: Show,
    columns: u16,
    rows: Range<usize>,
) -> Listing {
    let columns = usize::from(columns);
    match show {
        Show::Models => of_names(snapshot, "models", &snapshot.models, screen, columns, rows),
        Show::Running => of_running(snapshot, screen, columns, rows),
        Show::Upstreams => of_upstreams(snapshot, columns, rows),
        Show::Overview | Show::Tenants => {
            of_names(snapshot, "tenants", &snapshot.tenants, screen, columns, rows)
        }
    }
}

/// Shares the rows of the window between the tables. Rows that one table does not need go to the
/// others.
fn shared(rows: u16, wanted: [u16; 4]) -> [u16; 4] {
    let mut heights = wanted.map(|_| 0);
    let mut left = rows;
    for least in [TABLE_ROWS_MIN, u16::MAX] {
        let mut given = true;
        while given && left > 0 {
            given = false;
            for (height, wanted) in heights.iter_mut().zip(wanted) {
                // A table without rows has one line that says so.
                if left > 0 && *height < wanted.max(TABLE_ROWS_MIN).min(least) {
                    (*height, left, given) = (*height + 1, left - 1, true);
                }
            }
        }
    }
    heights
}

#[cfg(test)]
mod tests;
