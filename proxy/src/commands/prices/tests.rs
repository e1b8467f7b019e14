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
    run(&args, "2026-11-20T12:00:00Z".parse()?, &mut out)?;
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
fn one_model_shows_its_tiers_and_contexts() {
    let shown = prices(PricesCommand::Show { model: "gpt-5.4".into() }).unwrap();
    for part in ["batch", "flex", "priority", "> 272000", "22.5"] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
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

#[test]
fn a_model_without_a_price_is_an_error_that_says_so() {
    let fault = prices(PricesCommand::Show { model: "nobody".into() }).unwrap_err();
    assert!(fault.to_string().contains("no price"));
}
