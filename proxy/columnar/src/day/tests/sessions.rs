//! Requests of coding agents in files of days.

use super::*;

/// Requests of a session, and of one of its turns. Every fourth one is by its sub-agent.
const OF_SESSION: u32 = 20;
const OF_TURN: u32 = 5;
/// Sessions of a tenant that run at the same time, so that their requests come in turn.
const RUNNING: u32 = 100;
/// Requests of the file. They are a row group.
const REQUESTS: u32 = 24_000;

/// A name that nobody can guess, as most clients give.
fn name(of: u32, number: u32) -> Option<String> {
    let seed = u128::from(of) << 64 | u128::from(number);
    let random = (0..3).fold(seed, |random, _| {
        let mixed = random.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        mixed ^ mixed >> 67
    });
    Some(uuid::Builder::from_random_bytes(random.to_be_bytes()).into_uuid().to_string())
}

/// What the `number`th request of the day is part of.
fn told(number: u32) -> Dimensions {
    // Those of a tenant, in their order.
    let (tenant, number) = (number % 4, number / 4);
    let (round, of_round) = (number / (RUNNING * OF_SESSION), number % (RUNNING * OF_SESSION));
    let (session, turn) = (round * RUNNING + of_round % RUNNING, of_round / RUNNING / OF_TURN);
    let session = session * 4 + tenant;
    let is_sub_agent = of_round / RUNNING % 4 == 3;
    Dimensions {
        session: name(1, session),
        session_source: Some(SessionSource::Header),
        agent: if is_sub_agent { name(2, session) } else { Some("root".to_owned()) },
        parent_agent: is_sub_agent.then(|| "root".to_owned()),
        client: Some(
            ["codex/0.169", "claude-cli/2.1", "opencode/1.18"][session as usize % 3].into(),
        ),
        turn: name(3, session * OF_SESSION + turn),
        ..Dimensions::default()
    }
}

#[test]
fn what_sessions_tell_takes_at_most_16_bytes_a_request() {
    let bytes = |of: fn(u32) -> Option<Box<Dimensions>>| {
        let records = (0..REQUESTS).map(|it| Record { dimensions: of(it), ..record(it) }).collect();
        sealed(&Layout::DAY, records).file.bytes
    };
    let (with, without) = (bytes(|number| told(number).if_any()), bytes(|_| None));
    let more = (with - without) as f64 / f64::from(REQUESTS);
    println!("{more:.1} bytes a request more");
    assert!(more <= 16.0, "{more:.1} bytes a request more");
}

#[test]
fn sessions_of_the_samples_have_so_many_requests_and_turns() {
    let all: Vec<_> = (0..REQUESTS).map(told).collect();
    let count = |of: fn(&Dimensions) -> &Option<String>| {
        let mut counts = BTreeMap::<_, u32>::new();
        all.iter().for_each(|told| *counts.entry(of(told)).or_default() += 1);
        counts.into_values().collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(count(|told| &told.session), [OF_SESSION].into());
    assert_eq!(count(|told| &told.turn), [OF_TURN].into());
}

#[test]
fn the_requests_of_a_session_are_found_by_its_column() {
    let part_of = |number| Record { dimensions: told(number % 400).if_any(), ..record(number) };
    let records: Vec<_> = (0..1000).map(part_of).collect();
    let file = open(sealed(&SMALL, records.clone()).file.out);
    let session_of = |record: &Record| record.dimensions.as_ref().unwrap().session.clone().unwrap();
    for session in (0..8).map(|number| session_of(&records[number])) {
        for tenant in [None, Some(records[0].tenant.to_string())] {
            let filter = RowFilter { tenant: tenant.clone(), ..RowFilter::default() };
            let mut scan = file.scan_session(&filter, &session).unwrap();
            let mut found = Vec::new();
            while let Some(row) = scan.next_row().unwrap() {
                found.push(row.record.id);
            }
            let expected = records.iter().filter(|record| session_of(record) == session);
            let is_asked =
                |it: &&Record| tenant.as_deref().is_none_or(|of| of == it.tenant.as_str());
            let expected: Vec<_> = expected.filter(is_asked).map(|record| record.id).collect();
            assert_eq!(found, expected, "{session} {tenant:?}");
        }
    }
    let nobody =
        file.scan_session(&RowFilter::default(), "nobody").unwrap().next_row().unwrap().is_none();
    assert!(nobody);
    // A file from before there was a column says nothing: who asks looks at each request.
    let early = open(EARLY.to_vec());
    let mut scan = early.scan_session(&RowFilter::default(), "any").unwrap();
    let found = std::iter::from_fn(|| scan.next_row().unwrap().map(|_| ())).count();
    assert_eq!(found, 20);
}
