use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use taximeter_system::clock;

use super::super::fixture::{Gateway, history_of, snapshot_of};
use super::super::screen::Order;
use super::*;

const URL: &str = "http://127.0.0.1:9464";

fn drawn_as(
    snapshot: &Snapshot,
    screen: &mut Screen,
    size: (u16, u16),
    colours: bool,
) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
    let view = View { url: URL, theme: Theme { colours } };
    terminal.draw(|frame| view.draw(snapshot, screen, frame)).unwrap();
    terminal
}

fn drawn(snapshot: &Snapshot, screen: &mut Screen, size: (u16, u16)) -> String {
    drawn_as(snapshot, screen, size, false).backend().to_string()
}

/// A minute in which three tenants called.
fn busy() -> Snapshot {
    let looks: Vec<_> = (0..7_u32)
        .map(|at| {
            Gateway::new()
                .ended("acme", "gpt-5.4-mini", 40 * at, "0.25")
                .ended("globex", "claude-sonnet-5-5", 6 * at * at, "0.5")
                .ended("initech", "o4-mini", 3 * at, "+Inf")
                .unpriced("initech", 2 * at)
                .running("acme", Some("gpt-5.4-mini"), 20 + u64::from(at))
                .running("globex", Some("claude-sonnet-5-5"), 1400)
                .running("initech", None, 0)
        })
        .collect();
    let mut snapshot = snapshot_of(&looks);
    snapshot.upstreams[0].health = "failing".to_owned();
    snapshot.upstreams[0].failures = 3;
    snapshot.upstreams[0].answered_at = Some("2026-11-20T19:11:00Z".parse().unwrap());
    snapshot.upstreams[0].last_failure = Some(
        serde_json::from_str(r#"{"at": "2026-11-20T19:11:57Z", "cause": "upstream_connect"}"#)
            .unwrap(),
    );
    snapshot
}

#[test]
fn a_small_and_a_large_terminal_show_all_kinds_of_things() {
    let snapshot = busy();
    let mut screen = Screen::default();
    insta::assert_snapshot!("overview_80x24", drawn(&snapshot, &mut screen, (80, 24)));
    insta::assert_snapshot!("overview_120x40", drawn(&snapshot, &mut screen, (120, 40)));
}

#[test]
fn nothing_is_shown_as_nothing() {
    let snapshot = snapshot_of(&[Gateway::new(), Gateway::new()]);
    insta::assert_snapshot!("nothing_80x24", drawn(&snapshot, &mut Screen::default(), (80, 24)));
}

#[test]
fn each_table_has_a_view_of_its_own() {
    let snapshot = busy();
    for show in [Show::Tenants, Show::Models, Show::Running, Show::Upstreams] {
        let mut screen = Screen { show, ..Screen::default() };
        let text = drawn(&snapshot, &mut screen, (120, 12));
        insta::assert_snapshot!(format!("{}_120x12", show.as_str()), text);
    }
}

#[test]
fn the_help_lies_over_the_tables() {
    let mut screen = Screen { help: true, paused: true, ..Screen::default() };
    insta::assert_snapshot!("help_80x24", drawn(&busy(), &mut screen, (80, 24)));
}

#[test]
fn a_gateway_that_is_gone_is_said_to_be() {
    let looks = [
        Gateway::new().ended("acme", "m", 1, "0.25"),
        Gateway::new().ended("acme", "m", 2, "0.25"),
    ];
    let (mut history, now) = history_of(clock::now(), &looks);
    history.missed(now, "cannot connect: Connection refused (os error 111)".to_owned());
    let snapshot = history.snapshot(now + Duration::from_secs(3));
    let text = drawn(&snapshot, &mut Screen::default(), (80, 24));
    assert!(text.contains("no answer from http://127.0.0.1:9464 for 3 s, trying again"), "{text}");
    assert!(text.contains("acme"), "what was known stays: {text}");
}

#[test]
fn names_from_outside_break_no_line() {
    let hostile = "a\u{1b}[2J\r\n\u{202e}\u{200d}\"x\\";
    let wide = "\u{4e16}\u{754c}".repeat(40);
    let look = || {
        Gateway::new()
            .ended(hostile, &wide, 3, "0.25")
            .ended(&wide, hostile, 3, "0.25")
            .running(hostile, Some(&wide), 5)
            .running(&wide, Some(hostile), 5)
    };
    let snapshot = snapshot_of(&[look(), look()]);
    for size in [(80, 24), (120, 40), (40, 10)] {
        let terminal = drawn_as(&snapshot, &mut Screen::default(), size, true);
        for cell in terminal.backend().buffer().content() {
            assert!(!cell.symbol().contains(|c: char| !taximeter_net::visible::is_visible(c)));
        }
    }
    insta::assert_snapshot!("hostile_80x24", drawn(&snapshot, &mut Screen::default(), (80, 24)));
    let mut plain = Vec::new();
    super::super::plain::write(&snapshot, URL, &mut plain).unwrap();
    let plain = String::from_utf8(plain).unwrap();
    let odd = |c: char| c != '\n' && !taximeter_net::visible::is_visible(c);
    assert!(!plain.contains(odd), "{plain:?}");
}

#[test]
fn ten_thousand_tenants_can_be_scrolled_through() {
    let look = |requests: u32| {
        (0..10_000).fold(Gateway::new(), |gateway, tenant| {
            gateway.ended(&format!("tenant-{tenant:04}"), "m", requests, "0.25")
        })
    };
    let snapshot = snapshot_of(&[look(1), look(2)]);
    let mut screen = Screen { show: Show::Tenants, ..Screen::default() };
    let first = drawn(&snapshot, &mut screen, (80, 24));
    assert!(first.contains("tenant-0000") && first.contains("tenants 10,000 "), "{first}");
    screen.on_key(KeyEvent::new(KeyCode::End, KeyModifiers::NONE));
    let last = drawn(&snapshot, &mut screen, (80, 24));
    assert!(
        last.contains("tenant-9999")
            && last.contains("9,984 rows above")
            && !last.contains("tenant-0000"),
        "{last}"
    );
    screen.on_key(KeyEvent::new(KeyCode::Up, KeyModifiers::NONE));
    assert!(!drawn(&snapshot, &mut screen, (80, 24)).contains("tenant-9999"));
}

#[test]
fn a_window_of_any_size_is_drawn_into() {
    let snapshot = busy();
    for help in [false, true] {
        for show in Show::ALL {
            for (columns, rows) in
                [(1, 1), (2, 30), (39, 24), (40, 10), (41, 11), (60, 17), (79, 23), (300, 100)]
            {
                let mut screen = Screen { show, help, ..Screen::default() };
                let text = drawn(&snapshot, &mut screen, (columns, rows));
                assert_eq!(text.lines().count(), usize::from(rows));
                assert!(text.lines().all(|line| width(line) <= usize::from(columns) + 2), "{text}");
            }
        }
    }
    let small = drawn(&snapshot, &mut Screen::default(), (30, 8));
    assert!(small.contains("too small"), "{small}");
    let narrow = drawn(&snapshot, &mut Screen::default(), (60, 17));
    assert!(narrow.contains("80x24 shows more") && narrow.contains("acme"), "{narrow}");
}

#[test]
fn without_colours_no_cell_has_any() {
    let snapshot = busy();
    let coloured = |colours| {
        let terminal = drawn_as(&snapshot, &mut Screen::default(), (80, 24), colours);
        let cells = terminal.backend().buffer().content().to_vec();
        cells.iter().any(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset)
    };
    assert!(coloured(true) && !coloured(false));
}

#[test]
fn what_sorts_decides_what_comes_first() {
    let snapshot = busy();
    let first = |order| {
        let mut screen = Screen { show: Show::Tenants, order, ..Screen::default() };
        let text = drawn(&snapshot, &mut screen, (80, 24));
        let row = text.lines().skip_while(|line| !line.contains("tenants 3")).nth(1).unwrap();
        row.trim_matches(['"', ' ']).split(' ').next().unwrap().to_owned()
    };
    assert_eq!(first(Order::Spend), "acme");
    assert_eq!(first(Order::FirstToken), "initech");
    assert_eq!(first(Order::Name), "acme");
}

#[test]
fn tables_share_the_rows_that_there_are() {
    assert_eq!(shared(17, [100, 100, 100, 100]), [5, 4, 4, 4]);
    assert_eq!(shared(17, [2, 3, 100, 2]), [2, 3, 10, 2]);
    assert_eq!(shared(30, [2, 3, 4, 2]), [2, 3, 4, 2]);
    assert_eq!(shared(3, [9, 9, 9, 9]), [1, 1, 1, 0]);
    assert_eq!(shared(9, [1, 1, 1, 1]), [2, 2, 2, 2], "no rows take one to say so");
}
