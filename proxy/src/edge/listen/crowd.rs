//! How many connections each client's address has open.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// Open connections by address, those of all workers.
#[derive(Debug, Default)]
pub(super) struct Crowd(Mutex<HashMap<IpAddr, usize>>);

/// One connection among those of its address, for as long as it lives.
#[derive(Debug)]
pub(super) struct Place {
    crowd: Arc<Crowd>,
    address: IpAddr,
}

impl Crowd {
    /// A place for one more from `address`, unless it has `most` already.
    pub(super) fn admit(self: &Arc<Self>, address: IpAddr, most: usize) -> Option<Place> {
        // An address of IPv4 is the same client on a socket that takes both.
        let address = address.to_canonical();
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = open.entry(address).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        Some(Place { crowd: self.clone(), address })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.crowd.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_has_places_of_its_own_which_come_free_and_leave_no_trace() {
        let crowd = Arc::new(Crowd::default());
        let [one, same, other] =
            ["10.0.0.1", "::ffff:10.0.0.1", "fd00::1"].map(|text| text.parse().unwrap());
        let places = [crowd.admit(one, 2).unwrap(), crowd.admit(same, 2).unwrap()];
        assert!(crowd.admit(one, 2).is_none() && crowd.admit(same, 2).is_none());
        let apart = crowd.admit(other, 2).unwrap();
        drop(places);
        assert!(crowd.admit(one, 1).is_some());
        drop(apart);
        assert!(crowd.0.lock().unwrap().is_empty());
    }
}
