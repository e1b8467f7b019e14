//! A record is read back as it was, whatever it holds.

use super::*;

/// A record with all that one may hold.
fn whole_record() -> Record {
    let nasty = "a\"b\\c\nd\u{1}é😀".to_owned();
    let mut record = gateway_died_record(&reserve(1, None), None, at(5), "g");
    record.request_model = Some(nasty.clone());
    record.status = Some(200);
    record.end = End::Complete;
    record.error_type = None;
    record.finish_reasons = vec!["stop".to_owned(), nasty.clone()];
    record.tools = BTreeMap::from([("exec".to_owned(), 2), (nasty.clone(), u64::MAX)]);
    record.resource = BTreeMap::from([("k8s.pod.name".to_owned(), nasty)]);
    let pass = Pass { model: Some("m".to_owned()), usage: Usage::default() };
    record.usage = RecordUsage {
        source: Source::Counted,
        sources: BTreeMap::from([
            (Member::InputTokens, Source::Reported),
            (Member::OutputTokens, Source::Counted),
        ]),
        input_tokens: Some(1),
        cache_read_input_tokens: Some(2),
        cache_write_input_tokens: Some(3),
        cache_write_long_input_tokens: Some(4),
        output_tokens: Some(u64::MAX),
        reasoning_output_tokens: Some(6),
        modalities: Some(BTreeMap::from([("audio_input_tokens".to_owned(), 7)])),
        passes: Some(vec![pass]),
        units: BTreeMap::from([("audio_seconds".to_owned(), "3.130".parse().unwrap())]),
        conditions: BTreeMap::from([(Condition::Speed, "fast".to_owned())]),
        counted: Some(Counted { input_tokens: Some(8), output_tokens: None }),
        flagged: BTreeMap::from([(Member::OutputTokens, vec![Flag::Estimated, Flag::Missing])]),
        flags: vec![Flag::Estimated, Flag::Missing],
    };
    record.timing = RecordTiming {
        time_to_first_chunk: Some(0.041),
        time_to_first_token: Some(0.3),
        time_per_output_token: Some(1e-6),
        output_chunks: 9,
        longest_stall: Some(12345.678),
        gaps: Some(Gaps::from(vec![3, 0, u32::MAX])),
        duration: 1e9,
        gateway: 0.0,
        stages: Some(Stages::ending(
            [7, 8, 9, 10, 11, 12, 13, 14, 15]
                .map(|at| Some(Duration::from_micros(at)).filter(|at| at.as_micros() != 14)),
        )),
    };
    let line = |model: Option<String>| RecordLine {
        meter: "input".to_owned(),
        price_match: model.is_some().then(|| "region+date".into()),
        model,
        tokens: Some(44),
        quantity: None,
        unit: None,
        unit_price: Decimal::new(5, 10),
        list_unit_price: Some(Decimal::new(6, 10)),
        amount: Decimal::new(220, 10),
    };
    let seconds = RecordLine {
        tokens: None,
        quantity: Some(Decimal::new(3130, 3)),
        unit: Some("seconds".to_owned()),
        list_unit_price: None,
        ..line(None)
    };
    let lines = vec![line(None), line(Some("m".to_owned())), seconds];
    record.cost = Some(RecordCost { lines, ..cost(Decimal::MAX) });
    record.reported_cost = Some("0.000850".to_owned());
    record.dimensions = Some(Box::new(whole_dimensions()));
    record
}

fn whole_dimensions() -> Dimensions {
    let text = |text: &str| Some(text.to_owned());
    Dimensions {
        session: text("01a210c8-1111"),
        session_source: Some(SessionSource::Body),
        agent: text("root"),
        parent_agent: text("a"),
        client: text("codex/0.169"),
        turn: text("t"),
        end_user: text("é\"\u{1}"),
        tags: BTreeMap::from([("team".to_owned(), "é".to_owned()), (String::new(), String::new())]),
        kind: Some(RequestKind::Compaction),
    }
}

#[test]
fn whatever_a_record_holds_is_read_back() {
    let record = whole_record();
    let mut in_part = record.clone();
    let reason = UnknownCost {
        price_id: Some("b@1#m".to_owned()),
        combination: Some("in tier priority".to_owned()),
        ..UnknownCost::new(UnknownCostReason::NoRate, Some("input"))
    };
    let reasons = [reason, UnknownCost::new(UnknownCostReason::TooLarge, None)];
    in_part.charge(Charge::unknown(record.cost.clone(), reasons));
    assert_eq!((in_part.cost.is_none(), in_part.owed().unwrap().at_least), (true, true));
    for record in [record, in_part] {
        let entry = Entry::Post(Box::new(record));
        let (bytes, ..) = segment(std::slice::from_ref(&entry), Position::START);
        let mut read = read_whole(&bytes).0.remove(0).entry().unwrap();
        if let Entry::Post(record) = &mut read {
            record.seq = 0;
        }
        assert_eq!(read, entry);
        let Entry::Post(record) = entry else { return };
        let json = serde_json::to_vec(&record).unwrap();
        let read: Record = serde_json::from_slice(&json).unwrap();
        assert_eq!(read, *record);
    }
}

/// One of many records: `strings` and `members` say which of these it lacks.
fn record_lacking(tenants: u8, strings: u8, members: u16) -> Record {
    let mut record = whole_record();
    record.tenant = tenant(&format!("tenant-{tenants}"));
    let mut lacks = (0..).map(|bit| strings >> bit & 1 == 1);
    let mut next = || lacks.next().unwrap();
    if next() {
        (record.request_model, record.resource) = (None, BTreeMap::new());
    }
    if next() {
        record.finish_reasons.clear();
    }
    if next() {
        (record.usage.sources, record.usage.flagged) = (BTreeMap::new(), BTreeMap::new());
    }
    if next() {
        record.charge(Charge::unknown(
            record.cost.clone(),
            [UnknownCost::new(UnknownCostReason::TooLarge, None)],
        ));
    }
    if next() {
        record.charge(Charge::unknown(None, []));
    }
    lack_members(&mut record, members);
    record
}

fn lack_members(record: &mut Record, members: u16) {
    let mut lacks = (0..).map(|bit| members >> bit & 1 == 1);
    let mut next = || lacks.next().unwrap();
    if next() {
        (record.response_id, record.reported_cost) = (Some("r".to_owned()), None);
    }
    if next() {
        (record.attempt, record.dimensions) = (3, None);
    }
    if next() {
        record.tools.clear();
    }
    if next() {
        record.timing = RecordTiming::default();
    }
    if next() {
        (record.usage.modalities, record.usage.passes) = (None, None);
    }
    if next() {
        record.usage.units.clear();
    }
    if next() {
        record.usage.input_tokens = None;
    }
    if next() {
        record.usage.counted = None;
    }
    if next() {
        let RecordUsage { input_tokens, output_tokens, .. } = record.usage;
        record.usage.counted = Some(Counted { input_tokens, output_tokens });
    }
    if next() {
        record.request_id = record.id.0.to_string();
    }
    if next() {
        record.request_id = id(u128::from(members)).0.to_string();
    }
    if let Some(cost) = record.cost.as_mut().or(record.cost_known.as_mut()) {
        if next() {
            cost.amount = cost.lines.iter().map(|line| line.amount).sum();
        }
        if next() {
            cost.list_amount = cost.amount;
        }
        for line in &mut cost.lines {
            if next() {
                (line.tokens, line.quantity) = (None, Some(Decimal::ONE));
            }
        }
    }
}

proptest! {
    #[test]
    fn a_record_is_the_same_whatever_was_decoded_before(
        records in vec((0..20_u8, 0..32_u8, any::<u16>(), any::<u64>()), 1..80),
        damaged in any::<Index>(),
    ) {
        let damaged = damaged.index(records.len());
        let mut decoder = RecordDecoder::default();
        for (at, (tenants, strings, members, seq)) in records.into_iter().enumerate() {
            let record = Record { seq, ..record_lacking(tenants, strings, members) };
            let mut payload = Vec::new();
            record.encode(&mut payload);
            if at == damaged {
                // Its strings are sound; what is behind them is cut off.
                payload.truncate(payload.len() - 2);
                payload.push(b'.');
                let alone = Record::decode(seq, &payload);
                prop_assert_eq!(decoder.decode(seq, &payload), alone.as_ref().map_err(Clone::clone));
                continue;
            }
            prop_assert_eq!(&Record::decode(seq, &payload).unwrap(), &record);
            prop_assert_eq!(decoder.decode(seq, &payload).unwrap(), &record);
        }
    }
}

#[test]
fn in_json_dimensions_are_members_of_the_record_and_absent_ones_are_left_out() {
    let mut record = whole_record();
    let json = serde_json::to_value(&record).unwrap();
    assert_eq!((&json["session"], &json["kind"]), (&"01a210c8-1111".into(), &"compaction".into()));
    let members = json.as_object().unwrap().len();
    let session = Dimensions { session: Some("s".to_owned()), ..Dimensions::default() };
    for (dimensions, fewer) in [(session, 8), (Dimensions::default(), 9)] {
        record.dimensions = dimensions.if_any();
        let json = serde_json::to_value(&record).unwrap();
        assert_eq!(json.as_object().unwrap().len(), members - fewer, "{json}");
        assert_eq!(serde_json::from_value::<Record>(json).unwrap(), record);
    }
    assert_eq!(record.dimensions, None);
}

#[test]
fn a_request_whose_gateway_died_has_the_dimensions_of_its_reservation() {
    let mut reserve = reserve(1, None);
    reserve.dimensions = whole_dimensions().if_any();
    let entry = Entry::Reserve(Box::new(reserve));
    let (bytes, ..) = segment(std::slice::from_ref(&entry), Position::START);
    let read = read_whole(&bytes).0.remove(0).entry().unwrap();
    assert_eq!(read, entry);
    let Entry::Reserve(read) = read else { panic!("{read:?}") };
    let died = gateway_died_record(&read, None, at(5), "g");
    assert_eq!(died.dimensions, whole_dimensions().if_any());
}

/// A post of one of few sessions, or of none.
fn posts_of_sessions() -> impl Strategy<Value = Vec<Entry>> {
    let of =
        (any::<u128>(), proptest::option::of((0..4_u8, 0..2_u8)), proptest::option::of(0..3_u8));
    vec(of, 0..40).prop_map(|all| {
        let posts = all.into_iter().map(|(number, session, tenants)| {
            let mut entry = post(number, None);
            if let Entry::Post(record) = &mut entry {
                record.tenant = tenant(&format!("{tenants:?}"));
                record.dimensions = session.and_then(|(session, agent)| {
                    let session = Some(format!("s-{session}"));
                    let agent = (agent > 0).then(|| "a".repeat(100));
                    Dimensions { session, agent, ..whole_dimensions() }.if_any()
                });
            }
            entry
        });
        posts.collect()
    })
}

#[test]
fn dimensions_that_repeat_are_written_twice() {
    let session = |number: u128| {
        let mut entry = post(number, None);
        if let Entry::Post(record) = &mut entry {
            record.dimensions = whole_dimensions().if_any();
        }
        entry
    };
    let bytes = |count: u128| {
        let entries: Vec<_> = (1..=count).map(session).collect();
        segment(&entries, Position::START).0.len()
    };
    let alone = |count: u128| {
        let entries: Vec<_> = (1..=count).map(|number| post(number, None)).collect();
        segment(&entries, Position::START).0.len()
    };
    let more: Vec<_> = (1..=5).map(|count| bytes(count) - alone(count)).collect();
    let [first, second, third, ..] = more[..] else { panic!() };
    assert_eq!(second, 2 * first);
    assert_eq!(more[3..], [third + 3, third + 6], "{more:?}");
}

#[test]
fn the_reasons_of_an_unknown_cost_are_few_and_short() {
    let long = "é".repeat(1 << 16);
    let reason = |number: usize| {
        UnknownCost::new(UnknownCostReason::NoRate, Some(&format!("{number}{long}")))
    };
    let charge = Charge::unknown(None, (0..1000).map(reason));
    assert_eq!((charge.cost, charge.unknown.len()), (None, 16));
    let json = serde_json::to_vec(&charge.unknown).unwrap();
    assert!(json.len() < 16 * 200, "{}", json.len());
    let same = Charge::unknown(None, (0..9).map(|_| reason(1)));
    assert_eq!(same.unknown.len(), 1);
}

/// A cost of some lines. Its amounts follow from its lines, unless they are rounded.
fn costs() -> impl Strategy<Value = RecordCost> {
    let tokens = prop_oneof![0..5_000_u64, Just(TOKENS_MAX), Just(TOKENS_MAX + 1)];
    let quantity = prop_oneof![4 => tokens.prop_map(Ok), 1 => (0..9_000_i64).prop_map(Err)];
    let price = (prop_oneof![9 => 0..1_000_000_i64, 1 => Just(1 << 51)], 0..12_u32);
    let line = (quantity, price, prop::bool::weighted(0.1));
    let is_other = prop::bool::weighted(0.1);
    (vec(line, 1..4), is_other, is_other).prop_map(|(lines, rounded, listed)| {
        let lines = lines.into_iter().map(|(quantity, (price, scale), rounded)| {
            let mut line = RecordLine {
                meter: "input".to_owned(),
                price_match: None,
                model: None,
                tokens: quantity.ok(),
                quantity: quantity.err().map(|quantity| Decimal::new(quantity, 3)),
                unit: None,
                unit_price: Decimal::new(price, scale),
                list_unit_price: None,
                amount: Decimal::ZERO,
            };
            line.amount = line.count() * line.unit_price + Decimal::from(u8::from(rounded));
            line
        });
        let lines: Vec<_> = lines.collect();
        let sum: Decimal = lines.iter().map(|line| line.amount).sum();
        let amount = (sum + Decimal::from(u8::from(rounded))).normalize();
        let list_amount = amount + Decimal::from(u8::from(listed));
        RecordCost { amount, list_amount, lines, ..cost(Decimal::ZERO) }
    })
}

proptest! {
    #[test]
    fn sessions_are_read_back_and_change_neither_strings_nor_numbers(posts in posts_of_sessions()) {
        let (bytes, ..) = segment(&posts, Position::START);
        let read = read_whole(&bytes).0;
        prop_assert_eq!(read.len(), posts.len());
        for (framed, entry) in read.iter().zip(&posts) {
            let Entry::Post(record) = entry else { panic!() };
            let mut record = Record { seq: framed.seq, ..(**record).clone() };
            prop_assert_eq!(framed.entry().unwrap(), Entry::Post(Box::new(record.clone())));
            let post = framed.payload.post().unwrap();
            let view = PostView::of_pieces(&post).unwrap();
            prop_assert_eq!(&view.dimensions, &record.dimensions);
            let strings = post.strings.clone();
            record.dimensions = None;
            let mut plain = Vec::new();
            record.encode(&mut plain);
            let plain = Payload::from(&*plain);
            prop_assert_eq!(plain.post().unwrap().strings, &strings);
        }
    }

    #[test]
    fn the_numbers_of_a_post_are_those_of_its_record(cost in costs()) {
        let record = Record { cost: Some(cost), ..whole_record() };
        let mut payload = Vec::new();
        EncodedEntry::new(&Entry::Post(Box::new(record.clone())), &mut payload).unwrap();
        let payload = Payload::from(&*payload);
        let post = payload.post().unwrap();
        let reader = PostNumbersReader::new(post.strings).unwrap();
        let mut quantities = LineQuantities::default();
        let numbers = reader.read(post.id, post.members, &mut quantities).unwrap();
        prop_assert_eq!(numbers.started_at, record.started_at);
        prop_assert_eq!(numbers.output_tokens, record.usage.output_tokens);
        let cost = record.cost.unwrap();
        let counts = cost.lines.iter().map(RecordLine::count);
        let (read, amounts) = match numbers.cost {
            CostNumbers::Tokens(tokens) => {
                let tokens = quantities.tokens[tokens].iter().copied().map(Decimal::from);
                let amounts = tokens.clone().zip(&cost.lines).map(|(it, line)| it * line.unit_price);
                let amount: Decimal = amounts.sum();
                (tokens.collect(), [amount; 2])
            }
            CostNumbers::Amounts { amount, list_amount, quantities: lines } => {
                (quantities.decimals[lines].to_vec(), [amount, list_amount])
            }
            CostNumbers::None => panic!("there is a cost"),
        };
        prop_assert_eq!(read, counts.collect::<Vec<_>>());
        prop_assert_eq!(amounts, [cost.amount, cost.list_amount]);
    }
}
