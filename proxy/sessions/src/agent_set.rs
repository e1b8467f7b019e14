//! Which agents a session has, in little room: told apart by a part of their digests.

use std::collections::BTreeSet;

/// Most agents that are told apart.
const AGENTS_MAX: usize = 64;

/// The agents of a session, at most 64 of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AgentSet(BTreeSet<u32>);

impl AgentSet {
    /// One agent, or the one without a name.
    pub(crate) fn of(agent: Option<&str>) -> Self {
        Self(BTreeSet::from([agent.map_or(0, digest)]))
    }

    /// Adds those of `other`, as far as there is room.
    pub(crate) fn add(&mut self, other: &Self) {
        for agent in &other.0 {
            if self.0.len() >= AGENTS_MAX {
                return;
            }
            self.0.insert(*agent);
        }
    }

    /// How many there are; 64 stands for more.
    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }

    /// Whether there may be more than are told apart.
    pub(crate) fn is_full(&self) -> bool {
        self.0.len() >= AGENTS_MAX
    }

    /// As numbers, in order.
    pub(crate) fn numbers(&self) -> impl ExactSizeIterator<Item = u32> {
        self.0.iter().copied()
    }

    /// The set of these numbers.
    pub(crate) fn from_numbers(numbers: impl Iterator<Item = u32>) -> Self {
        Self(numbers.take(AGENTS_MAX).collect())
    }
}

/// FNV-1a. It must stay what it is: it is in stores.
fn digest(name: &str) -> u32 {
    name.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_counts_once_and_no_more_than_64_count() {
        let mut agents = AgentSet::default();
        for name in ["a", "b", "a"] {
            agents.add(&AgentSet::of(Some(name)));
        }
        agents.add(&AgentSet::of(None));
        assert_eq!(agents.count(), 3);
        (0..200).for_each(|number| agents.add(&AgentSet::of(Some(&number.to_string()))));
        assert_eq!(agents.count(), 64);
        assert_eq!(AgentSet::from_numbers(agents.numbers()), agents);
        assert_eq!((digest(""), digest("foobar")), (0x811c_9dc5, 0xbf9c_f968));
    }
}
