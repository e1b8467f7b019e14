//! Finds the two symbols that each token is made of.
//!
//! If a token's text is merged by itself, it comes from one pair of symbols before it becomes the
//! token, or from none. In any longer text it can come from no other pair, because what merges
//! within it does so in the same order. So a token has at most one pair, however many pairs its
//! vocabulary lists. Merging by the tokens that come earlier finds it.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use super::alphabet::Alphabet;
use super::merging::{self, Workspace};
use super::pairs::Pairs;

/// What merging makes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Product<'a> {
    /// Its number: that of what it begins as is lower, that of what merges later is higher.
    pub(crate) symbol: u32,
    pub(crate) text: &'a [u8],
    /// Symbols at the beginning of its text that may be its left part.
    pub(crate) lefts: Lefts<'a>,
}

/// Which parts a token may be made of.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Lefts<'a> {
    /// Any that are tokens.
    Any,
    /// Those whose left part has so many symbols of the alphabet.
    Listed(&'a [u32]),
}

/// What merges in a vocabulary.
pub(crate) struct Merges {
    pub(super) alphabet: Alphabet,
    pub(super) pairs: Pairs,
    /// By symbol, how many symbols of the alphabet its left part has; 0 of what is not made.
    lefts: Vec<u32>,
}

impl Merges {
    /// `products` are in the order of their symbols, of at most so many `texts`.
    pub(crate) fn learn<'a>(
        alphabet: Alphabet,
        products: impl Iterator<Item = Product<'a>>,
        texts: usize,
    ) -> Self {
        let pairs = Pairs::with_capacity(texts);
        let mut learning = Learning {
            merges: Self { alphabet, pairs, lefts: Vec::new() },
            workspace: Workspace::default(),
            waiting: HashMap::default(),
        };
        products.for_each(|product| learning.learn(product));
        learning.merges
    }

    /// Symbols of the alphabet at the beginning of `product` that are its left part; `None` if
    /// merging does not lead to it.
    pub(crate) fn left(&self, product: u32) -> Option<u32> {
        self.lefts.get(product as usize).copied().filter(|left| *left > 0)
    }

    fn insert(&mut self, pair: (u32, u32), product: u32, left: u32) {
        self.pairs.insert(pair.0, pair.1, product);
        let at = product as usize;
        self.lefts.resize(self.lefts.len().max(at + 1), 0);
        if let Some(known) = self.lefts.get_mut(at) {
            *known = left;
        }
    }
}

struct Learning<'a> {
    merges: Merges,
    workspace: Workspace,
    /// Products whose parts are not made by anything that comes earlier, by two neighbours in what
    /// they are now: once these merge, they may be made.
    waiting: HashMap<(u32, u32), Vec<Product<'a>>, FixedState>,
}

impl<'a> Learning<'a> {
    fn learn(&mut self, product: Product<'a>) {
        let mut next = Some(product);
        let mut woken = Vec::new();
        while let Some(product) = next {
            let made = self.make(product);
            if let Some(pair) = made.filter(|_| !self.waiting.is_empty()) {
                woken.extend(self.waiting.remove(&pair).unwrap_or_default());
            }
            next = woken.pop();
        }
    }

    /// Merges by all that is known; says which pair is found to become the product.
    fn make(&mut self, product: Product<'a>) -> Option<(u32, u32)> {
        self.merges.alphabet.begin(product.text, &mut self.workspace.symbols);
        let parts = merging::merged(&self.merges.pairs, &mut self.workspace);
        let mut first = parts.clone();
        if let (Some((left, end)), Some((right, _)), None) =
            (first.next(), first.next(), first.next())
            && product.may_end_left_at(end)
        {
            self.merges.insert((left, right), product.symbol, end);
            return Some((left, right));
        }
        let symbols = parts.map(|(symbol, _)| symbol);
        let mut neighbours: Vec<_> = symbols.clone().zip(symbols.skip(1)).collect();
        neighbours.sort_unstable();
        neighbours.dedup();
        for pair in neighbours {
            self.waiting.entry(pair).or_default().push(product);
        }
        None
    }
}

impl Product<'_> {
    fn may_end_left_at(&self, end: u32) -> bool {
        match self.lefts {
            Lefts::Any => true,
            Lefts::Listed(lefts) => lefts.contains(&end),
        }
    }
}
