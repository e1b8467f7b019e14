//! What is looked at, and what keys change of it.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// Rows that a page key moves by.
const PAGE_ROWS: usize = 10;

/// What is looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Screen {
    pub(super) show: Show,
    pub(super) order: Order,
    pub(super) running_order: RunningOrder,
    /// Rows left out above; more than there are is the last.
    pub(super) above: usize,
    pub(super) paused: bool,
    pub(super) help: bool,
}

/// Which tables.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Show {
    /// A few rows of each.
    #[default]
    Overview,
    Tenants,
    Models,
    Running,
    Upstreams,
}

/// What comes first of tenants and models.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Order {
    #[default]
    Spend,
    Tokens,
    Requests,
    /// The slowest.
    FirstToken,
    Name,
}

/// What comes first of running requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum RunningOrder {
    #[default]
    Age,
    Tokens,
    Stall,
}

/// What a key leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Stay,
    Quit,
}

impl Show {
    pub(super) const ALL: [Self; 5] =
        [Self::Overview, Self::Tenants, Self::Models, Self::Running, Self::Upstreams];

    /// The word.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Overview => "overview",
            Self::Tenants => "tenants",
            Self::Models => "models",
            Self::Running => "running",
            Self::Upstreams => "upstreams",
        }
    }

    /// Another, so many to the right; round and round.
    fn moved(self, by: usize) -> Self {
        let at = Self::ALL.iter().position(|show| *show == self).unwrap_or_default();
        Self::ALL.get((at + by) % Self::ALL.len()).copied().unwrap_or_default()
    }
}

impl Order {
    /// The word.
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
    /// The word.
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
    /// What sorts the table that is shown, or most of them; `None` where the order is given.
    pub(super) const fn order_word(&self) -> Option<&'static str> {
        match self.show {
            Show::Running => Some(self.running_order.as_str()),
            Show::Upstreams => None,
            _ => Some(self.order.as_str()),
        }
    }

    /// A key was pressed.
    pub(super) fn on_key(&mut self, key: KeyEvent) -> Next {
        if key.kind == KeyEventKind::Release {
            return Next::Stay;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return if key.code == KeyCode::Char('c') { Next::Quit } else { Next::Stay };
        }
        match key.code {
            KeyCode::Char('?' | 'h') => self.help = !self.help,
            KeyCode::Esc if self.help => self.help = false,
            KeyCode::Char('q') | KeyCode::Esc => return Next::Quit,
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
        Next::Stay
    }

    const fn turn_to(&mut self, show: Show) {
        self.show = show;
        self.above = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(screen: &mut Screen, code: KeyCode) -> Next {
        screen.on_key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    #[test]
    fn q_escape_and_control_c_quit() {
        let mut screen = Screen::default();
        assert_eq!(press(&mut screen, KeyCode::Char('q')), Next::Quit);
        assert_eq!(press(&mut screen, KeyCode::Esc), Next::Quit);
        let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(screen.on_key(interrupt), Next::Quit);
        assert_eq!(press(&mut screen, KeyCode::Char('c')), Next::Stay);
        assert_eq!(screen, Screen::default());
    }

    #[test]
    fn escape_closes_the_help_first() {
        let mut screen = Screen::default();
        assert_eq!(press(&mut screen, KeyCode::Char('?')), Next::Stay);
        assert!(screen.help);
        assert_eq!(press(&mut screen, KeyCode::Esc), Next::Stay);
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
