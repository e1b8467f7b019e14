use super::*;

fn prices(command: PricesCommand) -> anyhow::Result<String> {
    prices_over(&[], command)
}

fn prices_over(overrides: &[&str], command: PricesCommand) -> anyhow::Result<String> {
    let folder = tempfile::tempdir()?;
    let mut files = Vec::new();
    for (number, text) in overrides.iter().enumerate() {
        let file = folder.path().join(format!("{number}.yaml"));
        std::fs::write(&file, text)?;
        files.push(file);
    }
    let args = PricesArgs { overrides: files, command };
    let mut out = Vec::new();
    run(&args, "2026-11-20T12:00:00Z".parse()?, &mut out, &mut Vec::new())?;
    Ok(String::from_utf8(out)?)
}

#[test]
fn the_list_can_be_narrowed() {
    let all = prices(PricesCommand::List { filter: None }).unwrap();
    assert!(all.contains("claude-sonnet-5-5") && all.contains("gpt-5.4"));
    let some = prices(PricesCommand::List { filter: Some("claude".into()) }).unwrap();
    assert!(some.contains("claude-sonnet-5-5") && !some.contains("gpt-5.4"));
}

#[test]
fn one_model_shows_every_combination_and_names_each_without_a_rate() {
    let overrides = "version: 2026-11-01\nmodels:\n- model: m\n  rates: {input: 1, cache_write: 2, \
        output: 3, web_search_requests: 0.01}\n  tiers: {batch: {input: 0.5, output: 1.5}}\n  \
        long_context:\n  - {over: 1000, rates: {input: 4, cache_write: 5, output: 6}}\n  when: \
        {speed: {fast: {rates: {input: 7, cache_write: 8, output: 9}}}}\n";
    let shown = prices_over(&[overrides], PricesCommand::Show { model: "m".into() }).unwrap();
    let lines: Vec<_> =
        shown.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for line in [
        "service tier context when input cache_write output web_search_requests",
        "standard ≤ 1000 1 2 3 0.01",
        "standard ≤ 1000 speed fast 7 8 9 0.01",
        "batch ≤ 1000 0.5 unknown 1.5 0.01",
        "standard > 1000 4 5 6 0.01",
        "no rate: cache_write in tier batch",
        "no rate: all in tier batch with speed fast",
        "no rate: all with long context (over 1000 tokens) with speed fast",
        "no rate: all in tier batch with long context (over 1000 tokens)",
        "no rate: all in tier flex, priority, ultrafast",
        "as input: input_image",
        "as output: reasoning",
    ] {
        assert!(lines.iter().any(|found| found == line), "{line} in {shown}");
    }
}

#[test]
fn a_name_shows_what_finds_its_row_or_why_none_does() {
    let shown = |model: &str| {
        let rows = "models:\n- model: anthropic.claude-sonnet-5\n  provider: aws.bedrock\n  \
                    rates: {input: 2, output: 10}\n  when: {region: {us: {times: 1.1}}}\n";
        prices_over(&[rows], PricesCommand::Show { model: model.into() })
    };
    for (model, part) in [
        ("gpt-5.4", "price_match: exact\nBOOK#openai/gpt-5.4 · USD"),
        ("openai/gpt-5.4-2026-03-05", "price_match: provider+date\nBOOK#openai/gpt-5.4"),
        (
            "us.anthropic.claude-sonnet-5",
            "price_match: region, with the price of us\noverrides@undated#aws.bedrock/",
        ),
        ("anthropic.claude-sonnet-5", "price_match: exact\noverrides@undated#aws.bedrock/"),
    ] {
        let shown = shown(model).unwrap();
        let part = part.replace("BOOK", PriceBook::builtin().unwrap().version());
        assert!(shown.contains(&part), "{part} in {shown}");
        assert_eq!(shown.matches("price_match").count(), 1, "{shown}");
    }
    for (model, why) in [
        ("gpt-5.44", "no price for \"gpt-5.44\"; names like it: openai/gpt-5.4,"),
        ("ft:gpt-5.4:acme::9x", "fine-tuned model"),
        ("gpt-5.4:free", "is a variant"),
        ("jp.anthropic.claude-sonnet-5", "does not say what region \"jp\""),
        (
            "arn:aws:bedrock:us-east-1:1:application-inference-profile/a",
            "does not say which model it is",
        ),
        ("qqqqqqqqqqqqqqqqqq", "no price for \"qqqqqqqqqqqqqqqqqq\"; see `taximeter prices list`"),
    ] {
        let error = shown(model).unwrap_err().to_string();
        assert!(error.contains(why), "{why} in {error}");
    }
}

#[test]
fn a_name_whose_price_has_ended_says_when() {
    let rows = "version: 2026-11-01\nmodels:\n- {model: m, provider: openai, until: 2026-11-02, \
                rates: {input: 1, output: 2}}\n";
    let shown = |model: &str| prices_over(&[rows], PricesCommand::Show { model: model.into() });
    // Its own name shows its rows of all times.
    assert!(shown("m").unwrap().contains("until 2026-11-02 (not today)"));
    let told = shown("m-2026-01-01").unwrap_err().to_string();
    assert!(
        told.contains("openai/m has the last price of") && told.contains("2026-11-02"),
        "{told}"
    );
}

#[test]
fn a_model_shows_its_versions_units_conditions_and_currency() {
    let shown = prices_over(
        &[
            "version: 2026-11-01\ncurrency: EUR\nmodels:\n\
             - {model: m, rates: {input: 1, output: 2, audio_seconds: 0.0001}}\n",
            "version: 2026-12-01\ncurrency: EUR\nfrom: 2026-12-01\nmodels:\n\
             - model: m\n  rates: {input: 3, output: 4}\n\
             \x20 when: {speed: {fast: {times: 2}}, region: {eu: {rates: {input: 5}}}}\n",
        ],
        PricesCommand::Show { model: "m".into() },
    )
    .unwrap();
    for part in [
        "overrides@2026-11-01#m · EUR\n",
        "overrides@2026-12-01#m@2026-12-01 · EUR · from 2026-12-01 (not today)\n",
        "audio_seconds",
        "0.0001",
        "speed fast: tokens × 2",
        "region eu",
    ] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
}

const FOREIGN: &str = r#"{"gpt-5-nano": {"litellm_provider": "openai", "mode": "chat",
  "input_cost_per_token": 5e-08, "output_cost_per_token": 5e-07, "ocr_cost_per_credit": 0.1}}"#;

/// Exit code as shown, standard output and standard error of a command on a file with `text`.
fn on_file(
    text: &str,
    command: impl Fn(PathBuf) -> PricesCommand,
) -> anyhow::Result<(String, String, String)> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("prices.json");
    std::fs::write(&file, text)?;
    let args = PricesArgs { overrides: Vec::new(), command: command(file) };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = run(&args, "2026-11-20T12:00:00Z".parse()?, &mut out, &mut err)?;
    Ok((format!("{code:?}"), String::from_utf8(out)?, String::from_utf8(err)?))
}

fn exit(code: u8) -> String {
    format!("{:?}", ExitCode::from(code))
}

#[test]
fn an_import_writes_the_price_file_and_says_what_it_left_out() {
    let import = |file| PricesCommand::Import { file, output: None };
    let (code, out, err) = on_file(FOREIGN, import).unwrap();
    assert_eq!(code, exit(0));
    assert!(
        out.ends_with("  provider: \"openai\"\n  rates: {input: 0.05, output: 0.5}\n"),
        "{out}"
    );
    assert!(out.contains("\nversion: 2026-11-20\n"), "{out}");
    assert!(err.starts_with("LiteLLM: 1 models, 1 imported, 0 skipped, 1 prices"), "{err}");
    assert!(err.contains("ocr_cost_per_credit") && err.contains("2:gpt-5-nano"), "{err}");
}

#[test]
fn a_diff_shows_each_price_that_differs_and_ends_with_1() {
    let diff = |format| move |file| PricesCommand::Diff { file, format, json: false };
    let as_json = |file| PricesCommand::Diff { file, format: diff::DiffFormat::Table, json: true };
    let (code, out, _) = on_file(FOREIGN, diff(diff::DiffFormat::Table)).unwrap();
    assert_eq!(code, exit(1));
    let has = |words: &[&str]| {
        out.lines().any(|line| line.split_whitespace().collect::<Vec<_>>() == words)
    };
    assert!(has(&["~", "openai", "gpt-5-nano", "output", "0.4", "0.5", "+25", "%"]), "{out}");
    assert!(has(&["-", "openai", "gpt-5.4"]), "{out}");
    assert!(out.ends_with("removed, 1 changed against builtin@2026-11-25\n"), "{out}");

    let (_, out, _) = on_file(FOREIGN, diff(diff::DiffFormat::Json)).unwrap();
    assert_eq!(on_file(FOREIGN, as_json).unwrap().1, out);
    let found: serde_json::Value = serde_json::from_str(&out).unwrap();
    let changed =
        found["differences"].as_array().unwrap().iter().find(|one| one["change"] == "changed");
    let output = &changed.unwrap()["prices"][1];
    assert_eq!(
        (&output["price"], &output["old"], &output["new"], &output["percent"]),
        (
            &"batch input".into(),
            &"0.025".into(),
            &serde_json::Value::Null,
            &serde_json::Value::Null
        )
    );
}

#[test]
fn a_file_that_says_the_same_as_the_book_differs_in_nothing() {
    let same = "models: [{model: mistral-embed, provider: mistral_ai, input_only: true, \
        rates: {input: 0.10}, tiers: {batch: {input: 0.05}}}]";
    let diff = |file| PricesCommand::Diff { file, format: diff::DiffFormat::Table, json: false };
    let (code, out, _) = on_file(same, diff).unwrap();
    assert_eq!(code, exit(1), "the other models of the provider are not in it: {out}");
    assert!(!out.contains("mistral-embed"), "{out}");
    let (code, out, _) = on_file("models: []", diff).unwrap();
    assert_eq!((code, out.lines().count()), (exit(0), 1), "{out}");
}

#[test]
fn an_import_leaves_out_a_bad_model_and_says_so() {
    let text = FOREIGN.replacen(
        '{',
        "{\"bad\": {\"litellm_provider\": \"p\",\n\"input_cost_per_token\": -1},",
        1,
    );
    let import = |file| PricesCommand::Import { file, output: None };
    let (code, out, err) = on_file(&text, import).unwrap();
    assert_eq!(code, exit(0));
    assert!(out.contains("gpt-5-nano") && !out.contains("bad"), "{out}");
    assert!(err.starts_with("LiteLLM: 2 models, 1 imported, 1 skipped, 1 prices"), "{err}");
    assert!(
        err.contains("input_cost_per_token: expected a price") && err.contains("2:bad"),
        "{err}"
    );
    let diff = |file| PricesCommand::Diff { file, format: diff::DiffFormat::Table, json: false };
    let (_, _, err) = on_file(&text, diff).unwrap();
    assert!(err.contains("2:bad"), "{err}");
}

#[test]
fn a_file_that_cannot_be_used_ends_with_64() {
    let import = |file| PricesCommand::Import { file, output: None };
    let fault =
        on_file("{\"a\": {\"litellm_provider\": \"p\",\n\"input_cost_per_token\": -1}}", import);
    let fault = fault.unwrap_err();
    assert!(
        fault.to_string().contains("prices.json:2: a: input_cost_per_token: expected"),
        "{fault}"
    );
    assert_eq!(fault.downcast_ref::<Failure>().unwrap().exit().code(), 64);
}

#[test]
fn a_model_without_a_price_is_an_error_that_says_so() {
    let fault = prices(PricesCommand::Show { model: "nobody".into() }).unwrap_err();
    assert!(fault.to_string().contains("no price"));
}
