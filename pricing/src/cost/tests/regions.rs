use super::*;

#[test]
fn the_region_of_an_endpoint_counts_where_the_name_has_none() {
    const ROWS: &str = "
version: 2026-11-20
models:
- model: anthropic.claude-sonnet-5
  provider: aws.bedrock
  rates: {input: 1, output: 2}
  when: {region: {eu: {times: 2}, eu-central-1: {times: 3}, us-west-2: {times: 4}}}
- {model: anthropic.claude-3-haiku, provider: aws.bedrock, rates: {input: 1, output: 2}}
";
    let book = PriceBook::empty().with_overrides(ROWS, "prices.yaml").unwrap();
    let cost = |model: &str, region: &str| {
        let query = Query {
            provider: Some("aws.bedrock"),
            response_model: None,
            request_model: Some(model),
            service_tier: None,
            at: "2026-11-20T12:00:00Z".parse().unwrap(),
        };
        let conditions = [(Condition::Region, region.to_owned())].into();
        let usage = Usage {
            input_tokens: Some(1_000_000),
            output_tokens: Some(0),
            conditions,
            ..Usage::default()
        };
        book.cost(&query, &usage).ok().map(|cost| cost.amount)
    };
    let times = |times: i64| Some(Decimal::from(times));
    for (model, region, expected) in [
        ("anthropic.claude-sonnet-5", "eu-central-1", times(3)),
        ("anthropic.claude-sonnet-5", "us-west-2", times(4)),
        ("anthropic.claude-sonnet-5", "us-east-1", times(1)),
        ("anthropic.claude-sonnet-5", "global", times(1)),
        ("anthropic.claude-sonnet-5", "ap-south-1", None),
        ("eu.anthropic.claude-sonnet-5", "eu-central-1", times(2)),
        ("eu.anthropic.claude-sonnet-5", "ap-south-1", times(2)),
        ("global.anthropic.claude-sonnet-5", "eu-central-1", times(1)),
        ("anthropic.claude-3-haiku", "ap-south-1", times(1)),
    ] {
        assert_eq!(cost(model, region), expected, "{model} at {region}");
    }
}
