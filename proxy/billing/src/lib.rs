//! Records → bills.
//!
//! Sums are exact; what is unknown is counted apart and never added as zero. Refuses to know sockets and where
//! the bytes go.
