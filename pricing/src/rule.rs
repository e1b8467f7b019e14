//! What found a row: the rules of the book by which a model's name leads to its price.

use std::borrow::Cow;
use std::fmt;

/// One rule by which a name finds a row that is spelled in another way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u16)]
pub enum Rule {
    /// The request's name found the row, because the name in the answer found none.
    Request = 1,
    /// Without the platform itself before a `/`.
    Provider = 1 << 1,
    /// Without the path in which the platform keeps the model, or with it.
    Path = 1 << 2,
    /// Without the region. The row says what the region costs.
    Region = 1 << 3,
    /// Without the vendor, on platforms where it stands before every name.
    Vendor = 1 << 4,
    /// Without the owner and the number of a fine-tuned model.
    Tuned = 1 << 5,
    /// Without the platform's own version of the model.
    Version = 1 << 6,
    /// Without the word for the newest snapshot.
    Latest = 1 << 7,
    /// Without the date of a snapshot.
    Date = 1 << 8,
    /// In capitals or small letters.
    Case = 1 << 9,
    /// By an alias of the row.
    Alias = 1 << 10,
}

impl Rule {
    /// Every rule, in the order of words on records.
    pub const ALL: [Self; 11] = [
        Self::Request,
        Self::Provider,
        Self::Path,
        Self::Region,
        Self::Vendor,
        Self::Tuned,
        Self::Version,
        Self::Latest,
        Self::Date,
        Self::Case,
        Self::Alias,
    ];

    /// The word on records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Provider => "provider",
            Self::Path => "path",
            Self::Region => "region",
            Self::Vendor => "vendor",
            Self::Tuned => "tuned",
            Self::Version => "version",
            Self::Latest => "latest",
            Self::Date => "date",
            Self::Case => "case",
            Self::Alias => "alias",
        }
    }
}

/// The rules that found a row. Without any, the name is the row's own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct PriceMatch(u16);

impl PriceMatch {
    /// The name of the row itself.
    pub const EXACT: Self = Self(0);

    /// The same and `rule`.
    #[must_use]
    pub const fn with(self, rule: Rule) -> Self {
        Self(self.0 | rule as u16)
    }

    /// The rules of both.
    #[must_use]
    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether `rule` is one of them.
    #[must_use]
    pub const fn has(self, rule: Rule) -> bool {
        self.0 & rule as u16 != 0
    }

    /// The rules, in the order of [`Rule::ALL`].
    pub fn rules(self) -> impl Iterator<Item = Rule> {
        Rule::ALL.into_iter().filter(move |rule| self.has(*rule))
    }

    /// The words on records: `exact`, or those of the rules in their order, as `region+date`.
    #[must_use]
    pub fn words(self) -> Cow<'static, str> {
        let mut rules = self.rules().map(Rule::as_str);
        match (rules.next(), rules.next()) {
            (None, _) => Cow::Borrowed("exact"),
            (Some(one), None) => Cow::Borrowed(one),
            (Some(first), Some(second)) => {
                let mut words = format!("{first}+{second}");
                for word in rules {
                    words.push('+');
                    words.push_str(word);
                }
                Cow::Owned(words)
            }
        }
    }
}

impl From<Rule> for PriceMatch {
    fn from(rule: Rule) -> Self {
        Self::EXACT.with(rule)
    }
}

impl fmt::Display for PriceMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_stand_in_one_order_whatever_order_the_rules_came_in() {
        assert_eq!(PriceMatch::EXACT.words(), "exact");
        assert_eq!(PriceMatch::from(Rule::Date).words(), "date");
        let several = PriceMatch::from(Rule::Alias).with(Rule::Date).with(Rule::Region);
        assert_eq!(several.to_string(), "region+date+alias");
        assert_eq!(several.and(Rule::Region.into()), several);
    }

    #[test]
    fn no_two_rules_share_a_bit_or_a_word() {
        let all = Rule::ALL.into_iter().fold(PriceMatch::EXACT, PriceMatch::with);
        assert_eq!(all.rules().collect::<Vec<_>>(), Rule::ALL);
        let words: std::collections::BTreeSet<_> = Rule::ALL.map(Rule::as_str).into();
        assert_eq!(words.len(), Rule::ALL.len());
        assert!(Rule::ALL.is_sorted());
    }
}
