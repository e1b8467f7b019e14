//! The state of the screen, and the keys that change it.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// Rows that PgUp and PgDn scroll.
const PAGE_ROWS: usize = 10;

/// The state of the screen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Screen {
    pub(super) show: Show,
    pub(super) order: Order,
    pub(super) running_order: RunningOrder,
    /// Rows above the visible ones. A number that is too large shows the last rows.
    pub(super) above: usize,
    pub(super) paused: bool,
    pub(super) help: bool,
}

/// The tables on the screen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Show {
    /// A few rows of each table.
    #[default]
    Overview,
    Tenants,
    Models,
    Running,
    Upstreams,
}

/// The order of tenants and models.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Order {
    #[default]
    Spend,
    Tokens,
    Requests,
    /// The slowest first.
    FirstToken,
    Name,
}

/// The order of running requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum RunningOrder {
    #[default]
    Age,
    Tokens,
    Stall,
}

/// The effect of a key on the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyEffect {
    Stay,
    Quit,
}

impl Show {
    pub(super) const ALL: [Self; 5] =
        [Self::Overview, Self::Tenants, Self::Models, Self::Running, Self::Upstreams];

    /// Its name on the screen.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Overview => "overview",
            Self::Tenants => "tenants",
            Self::Models => "models",
            Self::Running => "running",
            Self::Upstreams => "upstreams",
        }
    }

    /// The tab that is `by` places to the right. The first one follows the last one.
    fn moved(self, by: usize) -> Self {
        let at = Self::ALL.iter().position(|show| *show == self).unwrap_or_default();
        Self::ALL.get((at + by) % Self::ALL.len()).copied().unwrap_or_default()
    }
}

impl Order {
    /// Its name on the screen.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Spend => "spend",
            Self::Tokens => "tokens",
            Self::Requests => "requests",
            Self::FirstToken => "first token",
            Self::Name => "name",
        }
    }

    const fn next(self) -> Self {
        match self {
            Self::Spend => Self::Tokens,
            Self::Tokens => Self::Requests,
            Self::Requests => Self::FirstToken,
            Self::FirstToken => Self::Name,
            Self::Name => Self::Spend,
        }
    }
}

impl RunningOrder {
    /// Its name on the screen.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Age => "age",
            Self::Tokens => "tokens",
            Self::Stall => "stall",
        }
    }

    const fn next(self) -> Self {
        match self {
            Self::Age => Self::Tokens,
            Self::Tokens => Self::Stall,
            Self::Stall => Self::Age,
        }
    }
}

impl Screen {
    /// The order of the visible table. `None` if the order is fixed.
    pub(super) const fn order_word(&self) -> Option<&'static str> {
        match self.show {
            Show::Running => Some(self.running_order.as_str()),
            Show::Upstreams => None,
            _ => Some(self.order.as_str()),
        }
    }

    /// Handles a key.
    pub(super) fn on_key(&mut self, key: KeyEvent) -> KeyEffect {
        if key.kind == KeyEventKind::Release {
            return KeyEffect::Stay;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return if key.code == KeyCode::Char('c') { KeyEffect::Quit } else { KeyEffect::Stay };
        }
        match key.code {
            KeyCode::Char('?' | 'h') => self.help = !self.help,
            KeyCode::Esc if self.help => self.help = false,
            KeyCode::Char('q') | KeyCode::Esc => return KeyEffect::Quit,
            KeyCode::Char('p' | ' ') => self.paused = !self.paused,
            KeyCode::Char('s') if self.show == Show::Running => {
                self.running_order = self.running_order.next();
            }
            KeyCode::Char('s') => self.order = self.order.next(),
            KeyCode::Tab | KeyCode::Right => self.turn_to(self.show.moved(1)),
            KeyCode::BackTab | KeyCode::Left => {
                self.turn_to(self.show.moved(Show::ALL.len() - 1));
            }
            KeyCode::Char(digit @ '1'..='5') => {
                let at = digit as usize - '1' as usize;
                self.turn_to(Show::ALL.get(at).copied().unwrap_or_default());
            }
            KeyCode::Down | KeyCode::Char('j') => self.above = self.above.saturating_add(1),
            KeyCode::Up | KeyCode::Char('k') => self.above = self.above.saturating_sub(1),
            KeyCode::PageDown => self.above = self.above.saturating_add(PAGE_ROWS),
            KeyCode::PageUp => self.above = self.above.saturating_sub(PAGE_ROWS),
            KeyCode::Home | KeyCode::Char('g') => self.above = 0,
            KeyCode::End | KeyCode::Char('G') => self.above = usize::MAX,
            _ => {}
        }
        KeyEffect::Stay
    }

    const fn turn_to(&mut self, show: Show) {
        self.show = show;
        self.above = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(screen: &mut Screen, code: KeyCode) -> KeyEffect {
        screen.on_key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    #[test]
    fn q_escape_and_control_c_quit() {
        let mut screen = Screen::default();
        assert_eq!(press(&mut screen, KeyCode::Char('q')), KeyEffect::Quit);
        assert_eq!(press(&mut screen, KeyCode::Esc), KeyEffect::Quit);
        let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(screen.on_key(interrupt), KeyEffect::Quit);
        assert_eq!(press(&mut screen, KeyCode::Char('c')), KeyEffect::Stay);
        assert_eq!(screen, Screen::default());
    }

    #[test]
    fn escape_closes_the_help_first() {
        let mut screen = Screen::default();
        assert_eq!(press(&mut screen, KeyCode::Char('?')), KeyEffect::Stay);
        assert!(screen.help);
        assert_eq!(press(&mut screen, KeyCode::Esc), KeyEffect::Stay);
        assert!(!screen.help);
    }

    #[test]
    fn tab_and_arrows_go_round_and_back() {
        let mut screen = Screen { above: 7, ..Screen::default() };
        for show in [Show::Tenants, Show::Models, Show::Running, Show::Upstreams, Show::Overview] {
            press(&mut screen, KeyCode::Tab);
            assert_eq!((screen.show, screen.above), (show, 0));
        }
        press(&mut screen, KeyCode::Left);
        assert_eq!(screen.show, Show::Upstreams);
        press(&mut screen, KeyCode::Char('2'));
        assert_eq!(screen.show, Show::Tenants);
    }

    #[test]
    fn each_kind_of_table_has_an_order_of_its_own() {
        let mut screen = Screen::default();
        press(&mut screen, KeyCode::Char('s'));
        assert_eq!(screen.order_word(), Some("tokens"));
        screen.show = Show::Running;
        assert_eq!(screen.order_word(), Some("age"));
        press(&mut screen, KeyCode::Char('s'));
        assert_eq!((screen.order, screen.running_order), (Order::Tokens, RunningOrder::Tokens));
        screen.show = Show::Upstreams;
        assert_eq!(screen.order_word(), None);
    }
}
