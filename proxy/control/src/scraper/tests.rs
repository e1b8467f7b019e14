use std::sync::atomic::AtomicUsize;

use taximeter_config::ScrapeUrl;
use taximeter_fleet::Silence;

use super::*;

const TEXT: &str = "# TYPE vllm:num_requests_running gauge\n\
                    vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 3.0\n\
                    vllm:num_requests_waiting{engine=\"0\",model_name=\"m\"} 0.0\n";

/// Reads as ever, but for an answer that nobody is prepared for.
fn panics_at_z(
    target: &mut Target,
    answer: &Answer,
    now: Instant,
    at: Timestamp,
    pool: &mut Pool,
) -> Result<usize, ScrapeFault> {
    let told = tell(target, answer, now, at, pool);
    assert_ne!(answer.text.last(), Some(&b'z'), "as it was told to");
    told
}

fn scraping(urls: &[&str]) -> Scraping<impl FnMut() -> Option<Plan>> {
    let sources = urls.iter().map(|host| Source {
        address: Address::Url(ScrapeUrl {
            tls: false,
            host: (*host).to_owned(),
            port: 8000,
            path: "/metrics".to_owned(),
        }),
        // An engine is asked for its version too.
        kind: TargetKind::Host,
        upstreams: Vec::new(),
        credential: None,
        is_private: true,
        running: vec![Arc::new(AtomicUsize::new(1))],
    });
    let plan = Plan { sources: sources.collect(), ..Plan::default() };
    let mut scraping = Scraping {
        board: Arc::default(),
        plan: || None,
        followed: Vec::new(),
        places: Vec::new(),
        local: None,
        annotations: None,
        asked: JoinSet::new(),
        pool: Pool::default(),
        large: Arc::new(Semaphore::new(LARGE_AT_ONCE_MAX)),
        dialers: Dialers::new(false),
        tell: panics_at_z,
        turn: 0,
        ids: 0,
    };
    scraping.follow(plan, clock::now());
    scraping
}

fn done(id: u64, text: &str) -> Result<Done, JoinError> {
    let answer = Answer { text: text.as_bytes().to_vec(), cut: false };
    Ok(Done { id, said: Said::Metrics(Ok(answer)) })
}

#[test]
fn an_answer_whose_reader_panics_costs_that_answer_and_the_next_one_is_read() {
    let mut scraping = scraping(&["a", "b"]);
    scraping.end(done(1, &format!("{TEXT}z")));
    scraping.end(done(2, TEXT));
    let told = |at: usize| scraping.board.targets()[at].clone();
    let (hurt, other) = (told(0), told(1));
    let TargetState::Failing { cause, why, .. } = &hurt.state else { panic!("{hurt:?}") };
    assert_eq!((*cause, &**why), ("internal", "a fault of Taximeter has ended the question"));
    assert_eq!((hurt.asked, hurt.failed, hurt.quantities.series.len()), (1, 1, 0));
    assert_eq!(hurt.silence(clock::now()), Some(Silence::Never));
    assert_eq!((&other.state, other.failed), (&TargetState::Up, 0));
    assert_eq!(other.quantities.series.len(), 2);
    scraping.end(done(1, TEXT));
    scraping.end(done(2, &format!("{TEXT}z")));
    let told = |at: usize| scraping.board.targets()[at].clone();
    let (healed, hurt) = (told(0), told(1));
    assert_eq!((&healed.state, healed.asked, healed.failed), (&TargetState::Up, 2, 1));
    assert_eq!(healed.quantities.series.len(), 2);
    // What it told before holds until it is stale, as after any other fault.
    assert_eq!((hurt.failed, hurt.quantities.series.len()), (1, 2));
    assert!(hurt.silence(clock::now()).is_none());
}
