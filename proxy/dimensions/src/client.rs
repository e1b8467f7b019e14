//! Reads the client program from `user-agent`: a product of a fixed list, and the first two numbers of
//! its version.

/// Clients that the table has rows for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Client {
    Codex,
    ClaudeCode,
    /// OpenCode and Kilo, which is made from it.
    OpenCode,
    Copilot,
}

impl Client {
    pub(crate) const COUNT: usize = 4;

    /// Its number, from 0 on.
    pub(crate) const fn number(self) -> usize {
        match self {
            Self::Codex => 0,
            Self::ClaudeCode => 1,
            Self::OpenCode => 2,
            Self::Copilot => 3,
        }
    }

    /// Its product, where the version is not known.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Codex => "codex",
            Self::ClaudeCode => "claude-code",
            Self::OpenCode => "opencode",
            Self::Copilot => "copilot-cli",
        }
    }
}

/// How a `user-agent` begins. Its head is what stands before the first slash.
#[derive(Debug, Clone, Copy)]
enum Begins {
    /// The head is this. The version follows.
    Name(&'static str),
    /// The head begins with this. The version follows.
    Prefix(&'static str),
    /// The head is this. One more name, a slash and the version follow.
    Family(&'static str),
}

impl Begins {
    /// The version in what stands behind the head and its slash. `None` if the head is another one.
    #[inline]
    fn version<'a>(&self, head: &[u8], rest: &'a [u8]) -> Option<&'a [u8]> {
        match self {
            // One product writes its language before its version.
            Self::Name(name) if head == name.as_bytes() => {
                Some(rest.strip_prefix(b"Python ").unwrap_or(rest))
            }
            Self::Prefix(name) => head.starts_with(name.as_bytes()).then_some(rest),
            Self::Family(name) if head == name.as_bytes() => {
                let slash = rest.iter().position(|byte| *byte == b'/')?;
                rest.get(slash + 1..)
            }
            Self::Name(_) | Self::Family(_) => None,
        }
    }

    /// The first letter of the head.
    const fn letter(&self) -> Option<&u8> {
        let (Self::Name(name) | Self::Prefix(name) | Self::Family(name)) = self;
        name.as_bytes().first()
    }
}

/// Product, and how its `user-agent` begins, in the order of the first letters.
const PRODUCTS: &[(&str, Begins)] = &[
    ("openai-agents", Begins::Name("Agents")),
    ("cline", Begins::Name("Cline")),
    ("gemini-cli", Begins::Prefix("GeminiCLI")),
    ("kilo-code", Begins::Name("Kilo-Code")),
    ("qwen-code", Begins::Name("QwenCode")),
    ("roo-code", Begins::Name("RooCode")),
    ("zed", Begins::Name("Zed")),
    ("ai-sdk", Begins::Family("ai-sdk")),
    ("codex", Begins::Prefix("codex")),
    ("claude-code", Begins::Name("claude-cli")),
    ("claude-code", Begins::Name("claude-code")),
    ("litellm", Begins::Name("litellm")),
    ("opencode", Begins::Name("opencode")),
    ("pydantic-ai", Begins::Name("pydantic-ai")),
];

/// Product, how the head of its `user-agent` ends, and the language that stands before the version.
const LIBRARIES: &[(&str, &str, &str)] = &[
    ("openai-python", "OpenAI", "Python "),
    ("openai-js", "OpenAI", "JS "),
    ("anthropic-python", "Anthropic", "Python "),
    ("anthropic-js", "Anthropic", "JS "),
];

/// Longest head that is read, in bytes.
const HEAD_BYTES_MAX: usize = 64;
/// Longest number of a version, in digits.
const DIGITS_MAX: usize = 5;

/// A product of the list, and its version as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Product<'a> {
    name: &'static str,
    version: &'a [u8],
}

impl<'a> Product<'a> {
    /// The product that a `user-agent` names. `None` if it is not in the list.
    pub(crate) fn of_user_agent(agent: &'a [u8]) -> Option<Self> {
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let end = agent.iter().take(HEAD_BYTES_MAX).position(|byte| !is_name(byte))?;
        let (head, rest) = agent.split_at_checked(end)?;
        let rest = rest.strip_prefix(b"/")?;
        let first = head.first();
        let before = PRODUCTS.partition_point(|(_, begins)| begins.letter() < first);
        let same = PRODUCTS.iter().skip(before).take_while(|(_, it)| it.letter() == first);
        let named = |(name, begins): &(&'static str, Begins)| {
            Some(Self { name, version: begins.version(head, rest)? })
        };
        let of_library = |(name, end, language): &(&'static str, &str, &str)| {
            let version = rest.strip_prefix(language.as_bytes())?;
            head.ends_with(end.as_bytes()).then_some(Self { name, version })
        };
        let product = same.into_iter().find_map(named);
        product.or_else(|| LIBRARIES.iter().find_map(of_library))
    }

    /// The product and the first two numbers of its version, as `codex/0.169`.
    pub(crate) fn shown(&self) -> String {
        match major_minor(self.version) {
            "" => self.name.to_owned(),
            version => [self.name, "/", version].concat(),
        }
    }

    /// The client that this is, if the table has rows for it.
    pub(crate) fn client(&self) -> Option<Client> {
        match self.name {
            "codex" => Some(Client::Codex),
            "claude-code" => Some(Client::ClaudeCode),
            "opencode" | "kilo-code" => Some(Client::OpenCode),
            _ => None,
        }
    }
}

/// The client that sends a header with this name.
pub(crate) fn of_header(name: &str) -> Option<Client> {
    match name {
        "x-interaction-type" | "x-initiator" => Some(Client::Copilot),
        _ if name.starts_with("x-codex-") => Some(Client::Codex),
        _ if name.starts_with("x-claude-code-") => Some(Client::ClaudeCode),
        _ if name.starts_with("x-opencode-") => Some(Client::OpenCode),
        _ => None,
    }
}

/// The first two numbers of a version; empty if it has none.
fn major_minor(version: &[u8]) -> &str {
    let digits = |from: usize| {
        let digits = version.iter().skip(from).take_while(|byte| byte.is_ascii_digit()).count();
        Some(digits).filter(|digits| (1..=DIGITS_MAX).contains(digits))
    };
    let Some(major) = digits(0) else { return "" };
    let end = match (version.get(major), digits(major + 1)) {
        (Some(b'.'), Some(minor)) => major + 1 + minor,
        _ => major,
    };
    version.get(..end).and_then(|version| str::from_utf8(version).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_in_the_order_of_their_first_letters() {
        assert!(PRODUCTS.is_sorted_by_key(|(_, begins)| begins.letter()));
    }

    fn shown(agent: &str) -> Option<String> {
        Product::of_user_agent(agent.as_bytes()).map(|product| product.shown())
    }

    #[test]
    fn a_client_is_a_product_of_the_list_and_two_numbers_of_its_version() {
        for (agent, client) in [
            ("codex_exec/0.169.0 (Debian 12.0.0; x86_64) unknown", "codex/0.169"),
            ("codex_cli_rs/0.169.0-alpha.2", "codex/0.169"),
            ("codex-tui/1", "codex/1"),
            ("claude-cli/2.1.331 (external, sdk-cli)", "claude-code/2.1"),
            ("claude-cli/2.1.331 (external, sdk-ts, agent-sdk/0.3.331)", "claude-code/2.1"),
            ("claude-code/2.1.331", "claude-code/2.1"),
            ("opencode/1.18.33 ai-sdk/provider-utils/4.0.0 runtime/bun/1.3.0", "opencode/1.18"),
            ("opencode/local", "opencode"),
            ("Kilo-Code/7.7.7", "kilo-code/7.7"),
            ("GeminiCLI-tui/0.61.0/gemini-2.5-flash (linux; x64)", "gemini-cli/0.61"),
            ("QwenCode/0.24.4 (linux; x64)", "qwen-code/0.24"),
            ("litellm/1.80.5", "litellm/1.80"),
            ("ai-sdk/openai-compatible/3.0.1 ai-sdk/provider-utils/4.0", "ai-sdk/3.0"),
            ("OpenAI/Python 3.57.0", "openai-python/3.57"),
            ("AsyncOpenAI/Python 3.57.0", "openai-python/3.57"),
            ("OpenAI/JS 6.1.0", "openai-js/6.1"),
            ("Anthropic/Python 2.13.0", "anthropic-python/2.13"),
            ("AsyncAnthropic/Python 2.13.0", "anthropic-python/2.13"),
            ("Anthropic/JS 1.13.0", "anthropic-js/1.13"),
            ("Agents/Python 0.24.0", "openai-agents/0.24"),
            ("pydantic-ai/2.68.0", "pydantic-ai/2.68"),
        ] {
            assert_eq!(shown(agent).as_deref(), Some(client), "{agent}");
        }
    }

    #[test]
    fn other_programs_and_versions_that_are_none_are_not_shown() {
        for agent in [
            "",
            "curl/8.5.0",
            "python-requests/2.32",
            "codex",
            "x/codex/1",
            "my codex/1",
            "ls/JS 1.2",
            "/",
        ] {
            assert_eq!(shown(agent), None, "{agent}");
        }
        for (agent, client) in [
            ("codex/999999.1", "codex"),
            ("codex/1.999999", "codex/1"),
            ("codex/v1.2", "codex"),
            ("codex/1.é", "codex/1"),
            ("litellm/", "litellm"),
        ] {
            assert_eq!(shown(agent).as_deref(), Some(client), "{agent}");
        }
    }
}
