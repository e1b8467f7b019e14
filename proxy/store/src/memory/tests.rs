use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Arc;
use std::time::Instant;

use taximeter_columnar::RowFilter;
use taximeter_fleet::{Field, Pool, Reading, Statistic, Target, TargetKind};
use taximeter_journal::room::RoomLimits;
use taximeter_system::clock;

use super::*;

/// 2026-11-20T00:00:00Z.
const DAY: i64 = 1_795_132_800;

/// Engines that are asked, each second of their time.
struct Fleet {
    begun: Instant,
    pool: Pool,
    targets: Vec<Target>,
    recorder: Recorder,
}

impl Fleet {
    fn of(engines: usize) -> Self {
        let every = Duration::from_secs(5);
        let target = |number| {
            let name = format!("http://engine-{number}:8000/metrics");
            Target::new(&name, TargetKind::Engine, Vec::new(), every)
        };
        let targets = (0..engines).map(target).collect();
        Self { begun: clock::now(), pool: Pool::default(), targets, recorder: Recorder::default() }
    }

    /// All tell something at this second of the day.
    fn tell(&mut self, second: i64) {
        for (number, target) in self.targets.iter_mut().enumerate() {
            let running = (second / 7 + i64::try_from(number).unwrap()) % 13;
            let text = format!(
                "# TYPE vllm:num_requests_running gauge\n\
                 vllm:num_requests_running{{engine=\"0\",model_name=\"m\"}} {running}\n\
                 # TYPE vllm:generation_tokens counter\n\
                 vllm:generation_tokens_total{{engine=\"0\",model_name=\"m\"}} {}\n",
                second * 10,
            );
            let samples = taximeter_control::exposition::read(
                text.as_bytes(),
                &taximeter_control::exposition::Bounds::default(),
            );
            let at = Timestamp::from_second(DAY + second).unwrap();
            let reading: Reading = taximeter_fleet::read(&samples.samples, at);
            let now = self.begun + Duration::from_secs(second.unsigned_abs());
            target.quantities = Arc::new(target.quantities.after(reading, now, &mut self.pool));
            target.answered_at = Some(at);
        }
        let targets: Vec<_> = self.targets.iter().cloned().map(Arc::new).collect();
        self.recorder.note(&targets);
    }
}

/// All that the files of a grid have, as any reader finds it who reads all of them.
fn all(memory: &Memory, grid: Grid) -> BTreeMap<(String, String, Statistic), Vec<(i64, i64)>> {
    let folder = memory.folders.iter().find(|folder| folder.grid == grid).unwrap();
    let mut all = BTreeMap::<_, Vec<_>>::new();
    for file in folder.files().unwrap() {
        let opened = folder.open(&file.name).unwrap();
        let mut runs = opened.runs(RowFilter::default());
        while let Some((key, samples)) = runs.next_run().unwrap() {
            let series = all.entry((key.quantity, key.target, key.statistic)).or_default();
            series.extend(samples.iter().map(|(at, value)| (at - DAY, *value)));
        }
    }
    all
}

fn names(memory: &Memory, grid: Grid) -> Vec<String> {
    let folder = memory.folders.iter().find(|folder| folder.grid == grid).unwrap();
    folder.files().unwrap().into_iter().map(|file| file.name).collect()
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(DAY + second).unwrap()
}

/// Each minute of these is written.
fn write(memory: &Memory, fleet: &mut Fleet, seconds: std::ops::Range<i64>) {
    for second in seconds.step_by(5) {
        fleet.tell(second);
        if second % 60 == 0 {
            memory.write(&mut fleet.recorder, at(second)).unwrap();
        }
    }
}

fn merge_all(memory: &Memory, now: i64) -> usize {
    (0..1_000).take_while(|_| memory.merge_next(at(now), &|| true).unwrap()).count()
}

const RUNNING: &str = "taximeter.fleet.engine.requests_running";
const TOKENS: &str = "taximeter.fleet.engine.generation_tokens";

#[test]
fn minutes_become_hours_and_days_and_no_sample_is_lost_or_there_twice() {
    let dir = tempfile::tempdir().unwrap();
    let memory = Memory::open(dir.path()).unwrap();
    let mut fleet = Fleet::of(2);
    write(&memory, &mut fleet, 0..3_600 * 2 + 61);
    let before = all(&memory, Grid::Second);
    assert_eq!(names(&memory, Grid::Second).len(), 121);
    merge_all(&memory, 3_600 * 2 + 120);
    let hours = names(&memory, Grid::Second);
    assert_eq!(hours[0], "2026-11-20T00.parquet");
    assert_eq!(all(&memory, Grid::Second), before);
    let engine = |number| format!("http://engine-{number}:8000/metrics");
    let tokens =
        |grid| all(&memory, grid)[&(TOKENS.to_owned(), engine(1), Statistic::Increase)].clone();
    // The first sample of a counter tells no growth.
    assert_eq!(tokens(Grid::Hour), [(0, 35_950), (3_600, 36_000)]);
    assert_eq!(tokens(Grid::Minute)[..2], [(0, 550), (60, 600)]);
    let (day, minutes) = (all(&memory, Grid::Hour), all(&memory, Grid::Minute));
    assert_eq!(merge_all(&memory, 3_600 * 2 + 120), 0);
    merge_all(&memory, 86_400 + 90);
    for grid in Grid::ALL {
        assert_eq!(names(&memory, grid), ["2026-11-20.parquet"]);
    }
    assert_eq!(all(&memory, Grid::Second), before);
    let now = all(&memory, Grid::Minute);
    assert_eq!(now, minutes);
    // The third hour had one minute.
    let mut hours = all(&memory, Grid::Hour);
    hours.values_mut().for_each(|of_one| of_one.truncate(2));
    assert_eq!(hours, day);
    assert_eq!(
        hours[&(RUNNING.to_owned(), engine(0), Statistic::Max)],
        [(0, 1_200), (3_600, 1_200)]
    );
}

#[test]
fn a_crash_at_any_point_of_a_merge_loses_no_sample_and_keeps_none_twice() {
    let dir = tempfile::tempdir().unwrap();
    let memory = Memory::open(dir.path()).unwrap();
    write(&memory, &mut Fleet::of(1), 0..3_661);
    let whole = all(&memory, Grid::Second);
    let folder = memory.folders[0].clone();
    // What is half written.
    fs::write(folder.path("2026-11-20T00.parquet.tmp"), b"PAR1").unwrap();
    // A file that stands by, while some of those have gone whose place it takes.
    let parts: Vec<_> = names(&memory, Grid::Second).into_iter().take(10).collect();
    let opened: Vec<_> = parts.iter().map(|name| folder.open(name).unwrap()).collect();
    let mut out = folder.begin(&parts[9], parts.clone()).unwrap();
    assert!(merge(&opened, &mut out, None, &|| true).is_ok());
    folder.stand_by(out, &parts[9]).unwrap();
    for gone in [0, 4, 9] {
        for name in &parts[..gone] {
            folder.remove(name).unwrap();
        }
        let copy = tempfile::tempdir().unwrap();
        let to = copy.path().join(SAMPLES).join("1s");
        fs::create_dir_all(&to).unwrap();
        for entry in fs::read_dir(folder.path("")).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
        let again = Memory::open(copy.path()).unwrap();
        assert_eq!(all(&again, Grid::Second), whole, "{gone} have gone");
        let left: BTreeSet<_> =
            fs::read_dir(&to).unwrap().map(|it| it.unwrap().file_name()).collect();
        assert!(
            left.iter().all(|name| name.to_string_lossy().ends_with("0.parquet")
                || name.to_string_lossy().len() == 24),
            "{left:?}"
        );
        assert_eq!(names(&again, Grid::Second).len(), 61 - 9);
    }
}

#[test]
fn a_damaged_file_is_put_aside_and_the_others_become_one() {
    let dir = tempfile::tempdir().unwrap();
    let memory = Memory::open(dir.path()).unwrap();
    write(&memory, &mut Fleet::of(1), 0..301);
    let folder = memory.folders[0].clone();
    let hurt = names(&memory, Grid::Second)[2].clone();
    let mut bytes = fs::read(folder.path(&hurt)).unwrap();
    bytes[100] ^= 1;
    fs::write(folder.path(&hurt), bytes).unwrap();
    let (mut faults, now) = (Vec::new(), at(3_600 + 90));
    for _ in 0..20 {
        match memory.merge_next(now, &|| true) {
            Ok(true) => {}
            Ok(false) => break,
            Err(fault) => faults.push(fault),
        }
    }
    assert!(
        matches!(&faults[..], [MemoryError::Damaged { path, .. }] if path.ends_with(&hurt)),
        "{faults:?}"
    );
    assert!(folder.path(&format!("{hurt}.damaged")).exists());
    assert_eq!(names(&memory, Grid::Second), ["2026-11-20T00.parquet"]);
    assert_eq!(names(&memory, Grid::Hour), ["2026-11-20T00.parquet"]);
    // It counts, and is the first to go.
    let (bytes, damaged) = (memory.bytes().unwrap(), folder.damaged().unwrap());
    let whole: u64 =
        memory.folders.iter().flat_map(|it| it.files().unwrap()).map(|file| file.bytes).sum();
    assert_eq!(bytes, whole + damaged[0].bytes);
    let keep = |bytes_max| Keep { times: [Duration::from_secs(86_400); 3], bytes_max };
    memory.bound(Some(at(3_600)), &keep(bytes)).unwrap();
    assert_eq!(folder.damaged().unwrap().len(), 1);
    memory.bound(None, &keep(bytes - 1)).unwrap();
    assert_eq!((folder.damaged().unwrap().len(), memory.bytes().unwrap()), (0, whole));
    fs::write(folder.path("2026-11-18T00-00.parquet.damaged"), b"x").unwrap();
    memory.bound(Some(at(3_600)), &keep(u64::MAX)).unwrap();
    assert_eq!(folder.damaged().unwrap(), [], "it is older than samples are kept");
    let running = &all(&memory, Grid::Second)
        [&(RUNNING.to_owned(), "http://engine-0:8000/metrics".to_owned(), Statistic::Mean)];
    assert!(running.iter().all(|(second, _)| !(120..180).contains(second)), "a gap, and no 0");
    assert_eq!(running.len(), 48);
}

#[test]
fn what_is_old_goes_by_the_second_first_and_all_of_it_before_requests_do() {
    let dir = tempfile::tempdir().unwrap();
    let memory = Memory::open(dir.path()).unwrap();
    let mut fleet = Fleet::of(1);
    write(&memory, &mut fleet, 0..121);
    write(&memory, &mut fleet, 86_400..86_521);
    let hours = |hours: u64| Duration::from_secs(3_600 * hours);
    let keep = Keep { times: [hours(24), hours(72), hours(72)], bytes_max: u64::MAX };
    memory.bound(None, &keep).unwrap();
    memory.bound(Some(at(2 * 86_400 - 1)), &keep).unwrap();
    assert_eq!(names(&memory, Grid::Second).len(), 5);
    memory.bound(Some(at(2 * 86_400)), &keep).unwrap();
    assert_eq!(
        names(&memory, Grid::Second),
        ["2026-11-21T00-00.parquet", "2026-11-21T00-01.parquet"]
    );
    assert_eq!(names(&memory, Grid::Minute).len(), 5);
    let bytes = memory.bytes().unwrap();
    memory.bound(None, &Keep { bytes_max: bytes - 1, ..keep }).unwrap();
    assert_eq!(names(&memory, Grid::Second), ["2026-11-21T00-01.parquet"]);
    memory.bound(None, &Keep { bytes_max: 0, ..keep }).unwrap();
    assert_eq!(memory.bytes().unwrap(), 0);
    // What comes for a day that is closed is late.
    fs::write(memory.folders[0].path("2026-11-21.parquet"), b"").unwrap();
    fleet.tell(86_530);
    fleet.tell(86_535);
    let written = memory.write(&mut fleet.recorder, at(86_700)).unwrap();
    assert!(written.late > 0 && written.samples > 0, "{written:?}");
}

#[test]
fn where_records_would_have_to_go_samples_go_until_there_is_room() {
    let dir = tempfile::tempdir().unwrap();
    let memory = Memory::open(dir.path()).unwrap();
    write(&memory, &mut Fleet::of(1), 0..301);
    fs::write(dir.path().join("records"), vec![1; 200 << 10]).unwrap();
    let budget = DiskBudget::default();
    let of = |bytes_max| RoomLimits { bytes_max: Some(bytes_max), segment_bytes: 0, serves: false };
    budget.look(dir.path(), &of(100 << 20)).unwrap();
    let all = memory.bytes().unwrap();
    memory.make_room(&budget).unwrap();
    assert_eq!(memory.bytes().unwrap(), all, "there is room");
    // A fifth of the room is to stay free, and some samples more than that are there.
    let bytes = budget.bytes().unwrap();
    budget.look(dir.path(), &of((bytes - 10_000) * 5 / 4)).unwrap();
    assert!(budget.is_short());
    memory.make_room(&budget).unwrap();
    assert_eq!(memory.bytes().unwrap(), all, "segments of the journal may go before");
    taximeter_journal::make_room(dir.path(), (0, 0), &budget).unwrap();
    memory.make_room(&budget).unwrap();
    assert!(!budget.is_short());
    let left = names(&memory, Grid::Second);
    assert!(
        left.len() < 5 && left.iter().all(|name| *name > names(&memory, Grid::Minute)[0]),
        "{left:?}"
    );
    assert_eq!(names(&memory, Grid::Minute).len(), 5);
    // There are no more than there are.
    budget.look(dir.path(), &of(10_000)).unwrap();
    taximeter_journal::make_room(dir.path(), (0, 0), &budget).unwrap();
    memory.make_room(&budget).unwrap();
    assert_eq!((memory.bytes().unwrap(), budget.is_short()), (0, true));
}

#[test]
fn one_quantity_is_told_in_steps_and_the_same_whatever_was_merged() {
    let dir = tempfile::tempdir().unwrap();
    let memory = Memory::open(dir.path()).unwrap();
    let mut fleet = Fleet::of(3);
    write(&memory, &mut fleet, 0..301);
    write(&memory, &mut fleet, 3_600..3_901);
    let query = |quantity: &str, statistic, (from, to, step)| Query {
        quantity: quantity.to_owned(),
        statistic,
        target: None,
        who: vec![(Field::Model, "m".to_owned())],
        from: DAY + from,
        to: DAY + to,
        step,
        series_max: 10,
    };
    let points = |query: &Query| {
        let found = memory.ask(query).unwrap();
        assert!(!found.more && found.series.len() == 3, "{found:?}");
        let points = found.series[1].points.iter();
        points.map(|(at, value)| (at - DAY, *value)).collect::<Vec<_>>()
    };
    let ask = || {
        let seconds = query(RUNNING, Some(Statistic::Mean), (100, 130, 1));
        let steps: Vec<_> = points(&seconds).into_iter().map(|(at, _)| at).collect();
        assert_eq!(steps, [100, 105, 110, 115, 120, 125]);
        let tokens = query(TOKENS, Some(Statistic::Increase), (0, 7_200, 300));
        assert_eq!(
            points(&tokens),
            [(0, 2_950.0), (300, 50.0), (3_600, 2_950.0)],
            "and a gap between"
        );
        let most = query(RUNNING, Some(Statistic::Max), (0, 7_200, 60));
        let minutes = points(&most);
        assert_eq!((minutes.len(), minutes[6].0), (11, 3_600));
        let mean = query(RUNNING, Some(Statistic::Mean), (0, 300, 300));
        let all = points(&query(RUNNING, Some(Statistic::Mean), (0, 300, 1)));
        let truth = all.iter().map(|(_, value)| value).sum::<f64>() / 60.0;
        assert!((points(&mean)[0].1 - truth).abs() < 0.01);
    };
    ask();
    merge_all(&memory, 4_100);
    ask();
    merge_all(&memory, 86_400 + 90);
    ask();
    let few = Query { series_max: 2, ..query(RUNNING, Some(Statistic::Mean), (0, 300, 60)) };
    let found = memory.ask(&few).unwrap();
    assert_eq!((found.series.len(), found.more), (2, true));
    let nobody = Query { who: vec![(Field::Gpu, "GPU-1".to_owned())], ..few };
    assert_eq!(memory.ask(&nobody).unwrap(), Found::default());
    assert_eq!([1, 299, 300, 86_400].map(Query::step_for), [1, 1, 1, 300]);
}
