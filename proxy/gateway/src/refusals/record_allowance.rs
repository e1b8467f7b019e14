//! Decides which requests that used nothing get records of their own.

use std::collections::HashMap;

use taximeter_ledger::TenantId;

/// Records of requests that used nothing, of one tenant and status in one second. A disk takes so
/// many, and nobody reads more.
pub(super) const RECORDS_PER_SECOND_MAX: u32 = 100;
/// Pairs of tenant and status that are told apart in one second. All others share one allowance.
const PAIRS_MAX: usize = 1024;

/// How many records were written in the current second.
#[derive(Debug, Default)]
pub(super) struct RecordAllowance {
    second: u64,
    written: HashMap<(TenantId, Option<u16>), u32>,
    by_others: u32,
}

impl RecordAllowance {
    /// Whether one more record may be written in `second`; it counts as written then.
    pub(super) fn has_room(&mut self, second: u64, tenant: &TenantId, status: Option<u16>) -> bool {
        if self.second != second {
            (self.second, self.by_others) = (second, 0);
            self.written.clear();
        }
        let pair = (tenant.clone(), status);
        let is_full = self.written.len() >= PAIRS_MAX;
        let written = match self.written.get_mut(&pair) {
            Some(written) => written,
            None if is_full => &mut self.by_others,
            None => self.written.entry(pair).or_default(),
        };
        let has_room = *written < RECORDS_PER_SECOND_MAX;
        *written += u32::from(has_room);
        has_room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_each_tenant_and_status_so_many_records_are_written_in_a_second() {
        let mut allowance = RecordAllowance::default();
        let (acme, globex) = (TenantId("acme".into()), TenantId("globex".into()));
        let mut written = |second, tenant, status| {
            (0..500).filter(|_| allowance.has_room(second, tenant, status)).count()
        };
        for second in [0, 1, 7] {
            for (tenant, status) in [(&acme, Some(429)), (&acme, None), (&globex, Some(429))] {
                assert_eq!(written(second, tenant, status), RECORDS_PER_SECOND_MAX as usize);
                assert_eq!(written(second, tenant, status), 0);
            }
        }
    }

    #[test]
    fn any_number_of_tenants_takes_the_same_memory() {
        let mut allowance = RecordAllowance::default();
        let tenant = |number: usize| TenantId(format!("tenant-{number}").into());
        let written =
            (0..100_000).filter(|number| allowance.has_room(1, &tenant(*number), Some(500)));
        assert_eq!(written.count(), PAIRS_MAX + RECORDS_PER_SECOND_MAX as usize);
        assert_eq!(allowance.written.len(), PAIRS_MAX);
    }
}
