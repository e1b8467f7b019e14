use proptest::prelude::*;

use super::*;

/// The forms of a name behind the name itself: `TEXT by RULES`.
fn forms(provider: &str, name: &str) -> Vec<String> {
    let name = Name::of(provider, name);
    let shown = |form: Form<'_>| format!("{} by {}", form.text, form.rules);
    name.forms().skip(1).map(shown).collect()
}

fn region(provider: &str, name: &str) -> Option<(String, bool)> {
    let name = Name::of(provider, name);
    name.region().map(|region| (region.word.clone(), region.is_base))
}

#[test]
fn a_bedrock_identifier_loses_its_parts_one_by_one_and_its_region_last_but_one() {
    assert_eq!(
        forms("aws.bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
        [
            "us.anthropic.claude-sonnet-4-5-20250929-v1 by version",
            "us.anthropic.claude-sonnet-4-5-20250929 by version",
            "us.anthropic.claude-sonnet-4-5 by version+date",
            "anthropic.claude-sonnet-4-5-20250929-v1:0 by region",
            "anthropic.claude-sonnet-4-5-20250929-v1 by region+version",
            "anthropic.claude-sonnet-4-5-20250929 by region+version",
            "anthropic.claude-sonnet-4-5 by region+version+date",
            "claude-sonnet-4-5-20250929-v1:0 by region+vendor",
            "claude-sonnet-4-5-20250929-v1 by region+vendor+version",
            "claude-sonnet-4-5-20250929 by region+vendor+version",
            "claude-sonnet-4-5 by region+vendor+version+date",
        ]
    );
}

#[test]
fn a_bedrock_version_is_left_out_only_where_it_is_not_another_model() {
    for (name, shortest) in [
        ("amazon.titan-embed-text-v2:0", "amazon.titan-embed-text-v2"),
        ("amazon.nova-lite-v1:0", "amazon.nova-lite"),
        ("anthropic.claude-opus-4-6-v1", "anthropic.claude-opus-4-6"),
        ("anthropic.claude-v2:1", "anthropic.claude-v2:1"),
        ("anthropic.claude-3-5-sonnet-20241022-v2:0", "anthropic.claude-3-5-sonnet"),
        ("anthropic.claude-haiku-4-5@20251001", "anthropic.claude-haiku-4-5"),
        ("openai.gpt-oss-120b-1:0", "openai.gpt-oss-120b"),
        ("mistral.mistral-7b-instruct-v0:2", "mistral.mistral-7b-instruct-v0:2"),
        ("nvidia.nemotron-nano-9b-v2", "nvidia.nemotron-nano-9b-v2"),
        ("stability.stable-image-ultra-v1:1", "stability.stable-image-ultra-v1:1"),
        // These versions are for provisioned throughput.
        (
            "anthropic.claude-3-haiku-20240307-v1:0:200k",
            "anthropic.claude-3-haiku-20240307-v1:0:200k",
        ),
        ("amazon.titan-text-lite-v1:0:4k", "amazon.titan-text-lite-v1:0:4k"),
    ] {
        let parts = Name::of("aws.bedrock", name);
        let keeps_vendor = |form: &Form<'_>| !form.rules.has(Rule::Vendor);
        let last = parts.forms().filter(keeps_vendor).last().unwrap();
        assert_eq!(last.text, shortest, "{name}");
    }
}

#[test]
fn a_region_is_known_wherever_a_platform_writes_it() {
    let bedrock = "aws.bedrock";
    let azure = "azure.ai.openai";
    let vertex = "gcp.vertex_ai";
    for (provider, name, expected) in [
        (bedrock, "us.anthropic.claude-sonnet-5", Some(("us", false))),
        (bedrock, "EU.anthropic.claude-sonnet-5", Some(("eu", false))),
        (bedrock, "jp.amazon.nova-2-lite-v1:0", Some(("jp", false))),
        (bedrock, "apac.amazon.nova-lite-v1:0", Some(("apac", false))),
        (bedrock, "us-gov.xai.grok-4.6", Some(("us-gov", false))),
        (bedrock, "latam.anthropic.claude-sonnet-5", Some(("latam", false))),
        (bedrock, "me.ai21.jamba-1-5-large-v1:0", Some(("me", false))),
        (bedrock, "latam.ai21.jamba-1-5-large-v1:0", Some(("latam", false))),
        (bedrock, "global.anthropic.claude-sonnet-5", Some(("global", true))),
        (bedrock, "bedrock/us-east-1/deepseek.v3.2", Some(("us-east-1", true))),
        (bedrock, "us-gov-west-1/amazon.nova-lite-v1:0", Some(("us-gov-west-1", false))),
        (
            bedrock,
            "arn:aws:bedrock:eu-west-2::foundation-model/zai.glm-5",
            Some(("eu-west-2", false)),
        ),
        (
            bedrock,
            "arn:aws:bedrock:us-west-2:123456789012:inference-profile/eu.anthropic.claude-opus-5",
            Some(("eu", false)),
        ),
        // These begin with a vendor.
        (bedrock, "anthropic.claude-sonnet-5", None),
        (bedrock, "deepseek.v3.2", None),
        (bedrock, "qwen.qwen3.8-27b", None),
        (bedrock, "minimax.minimax-m2.1", None),
        (bedrock, "claude-sonnet-4-5-20250929-v1:0", None),
        (azure, "azure/eu/gpt-4o-2024-08-06", Some(("eu", false))),
        (azure, "us-gov/o3-mini", Some(("us-gov", false))),
        (azure, "global-standard/gpt-4o", Some(("global-standard", true))),
        (azure, "hd/1024-x-1024/dall-e-3", Some(("hd", false))),
        (azure, "gpt-4o", None),
        (
            vertex,
            "projects/p/locations/us-east5/publishers/anthropic/models/claude-opus-5@default",
            Some(("us-east5", false)),
        ),
        (
            vertex,
            "projects/p/locations/global/publishers/google/models/gemini-2.5-pro",
            Some(("global", true)),
        ),
        (vertex, "publishers/google/models/gemini-2.5-pro", None),
        // Elsewhere such a beginning is not a region.
        ("openai", "us.anthropic.claude-sonnet-5", None),
        ("openrouter", "eu/gpt-4o", None),
    ] {
        let expected = expected.map(|(word, is_base)| (word.to_owned(), is_base));
        assert_eq!(region(provider, name), expected, "{provider} {name}");
    }
}

#[test]
fn snapshots_variants_and_fine_tuned_models_have_the_forms_that_their_platform_allows() {
    for (provider, name, expected) in [
        ("openai", "gpt-5.4", &[][..]),
        ("openai", "gpt-5.4-2026-03-05", &["gpt-5.4 by date"]),
        (
            "openai",
            "openai/gpt-5.4-20260305",
            &["gpt-5.4-20260305 by provider", "gpt-5.4 by provider+date"],
        ),
        (
            "openai",
            "ft:gpt-4o-2024-08-06:acme::9x",
            &["ft:gpt-4o-2024-08-06 by tuned", "ft:gpt-4o by tuned+date"],
        ),
        ("openai", "gpt-4o-2024-05-13", &[]),
        ("azure.ai.openai", "EU/GPT-4o-2024-05-13", &["GPT-4o-2024-05-13 by region"]),
        ("openai", "ft:gpt-4o-2024-08-06", &["ft:gpt-4o by date"]),
        ("openai", "curie:ft-acme-2023-01-01-00-00-00", &["ft:curie by tuned"]),
        (
            "azure.ai.openai",
            "gpt-4o-2024-08-06.ft-0ab-mine",
            &["ft:gpt-4o-2024-08-06 by tuned", "ft:gpt-4o by tuned+date"],
        ),
        ("azure.ai.openai", "eu/gpt-4o.ft-0ab", &["ft:gpt-4o by region+tuned"]),
        (
            "azure.ai.openai",
            "azure/eu/gpt-4o-2024-08-06",
            &[
                "eu/gpt-4o-2024-08-06 by provider",
                "eu/gpt-4o by provider+date",
                "gpt-4o-2024-08-06 by provider+region",
                "gpt-4o by provider+region+date",
            ],
        ),
        (
            "azure.ai.inference",
            "azureml://registries/azureml-meta/models/Llama-4/versions/3",
            &["Llama-4 by path"],
        ),
        ("anthropic", "claude-sonnet-4-5-latest", &["claude-sonnet-4-5 by latest"]),
        ("anthropic", "claude-sonnet-4-5@20250929", &[]),
        (
            "x_ai",
            "xai/grok-4.3-latest",
            &["grok-4.3-latest by provider", "grok-4.3 by provider+latest"],
        ),
        ("x_ai", "grok-4-0709", &[]),
        ("mistral_ai", "mistral-small-latest", &[]),
        ("mistral_ai", "mistral-large-2512", &[]),
        ("dashscope", "qwen-plus-2025-07-28", &[]),
        ("openrouter", "openai/gpt-4o-2024-05-13", &[]),
        ("openrouter", "openrouter/auto", &[]),
        ("perplexity", "perplexity/sonar", &[]),
        ("perplexity", "perplexity/perplexity/sonar", &["perplexity/sonar by provider"]),
        (
            "openrouter",
            "openrouter/deepseek/deepseek-r1:free",
            &["deepseek/deepseek-r1:free by provider"],
        ),
    ] {
        assert_eq!(forms(provider, name), *expected, "{provider} {name}");
    }
}

#[test]
fn paths_of_resources_have_the_forms_that_their_platform_allows() {
    for (provider, name, expected) in [
        ("gcp.gemini", "models/gemini-2.5-pro", &["gemini-2.5-pro by path"][..]),
        ("gcp.gemini", "tunedModels/mine-abc", &[]),
        ("gcp.gemini", "gemini-2.5-flash-preview-09-2025", &[]),
        ("gcp.vertex_ai", "claude-opus-4-6@default", &["claude-opus-4-6 by version"]),
        (
            "gcp.vertex_ai",
            "publishers/anthropic/models/claude-haiku-4-5@20251001",
            &[
                "anthropic/claude-haiku-4-5@20251001 by path",
                "anthropic/claude-haiku-4-5 by path+date",
                "claude-haiku-4-5@20251001 by path+vendor",
                "claude-haiku-4-5 by path+vendor+date",
            ],
        ),
        ("gcp.vertex_ai", "mistral-large@2411-001", &[]),
        ("gcp.vertex_ai", "codestral-2@001", &["codestral-2 by version"]),
        ("gcp.vertex_ai", "projects/1/locations/us-central1/endpoints/123", &[]),
        ("fireworks_ai", "accounts/fireworks/models/kimi-k2p6", &["kimi-k2p6 by path"]),
        ("fireworks_ai", "kimi-k2p6", &["accounts/fireworks/models/kimi-k2p6 by path"]),
        ("fireworks_ai", "accounts/acme/models/mine", &[]),
        ("fireworks_ai", "accounts/fireworks/models/kimi-k2p6#accounts/acme/deployments/1", &[]),
        ("ollama", "llama3.2:latest", &["llama3.2 by latest"]),
        ("ollama", "llama3.2:70b", &[]),
        ("aws.bedrock", "arn:aws:bedrock:us-east-1:1:application-inference-profile/a1b2", &[]),
        ("aws.bedrock", "arn:aws:bedrock:us-east-1:1:provisioned-model/a1b2", &[]),
        ("aws.bedrock", "arn:aws:bedrock:us-east-1:1:custom-model/amazon.nova-lite-v1:0/a1b2", &[]),
        ("aws.bedrock", "arn:aws:bedrock:us-east-1:1:inference-profile/a1b2", &[]),
        ("unheard-of", "model-2025-13-41", &[]),
        ("unheard-of", "model-12345678", &[]),
        ("unheard-of", "-2025-01-01", &[]),
    ] {
        assert_eq!(forms(provider, name), *expected, "{provider} {name}");
    }
}

#[test]
fn of_two_names_of_a_model_the_one_with_a_region_a_variant_or_an_owner_says_more() {
    for (provider, more, less, expected) in [
        ("openrouter", "deepseek/deepseek-r1:free", "deepseek/deepseek-r1", true),
        ("openrouter", "openai/gpt-4o:online", "openai/gpt-4o", true),
        ("openrouter", "openai/gpt-4o:online", "openai/gpt-4o:online", false),
        ("openrouter", "openai/gpt-4o:online", "anthropic/claude-opus-4", false),
        ("openrouter", "openai/gpt-4o", "openai/gpt-4o:online", false),
        ("openai", "ft:gpt-4o-2024-08-06:acme::9x", "gpt-4o-2024-08-06", true),
        ("openai", "ft:gpt-4o:acme::9x", "gpt-4o-2024-08-06", true),
        ("openai", "gpt-4o", "gpt-4o-2024-08-06", false),
        (
            "aws.bedrock",
            "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
            "claude-sonnet-4-5-20250929",
            true,
        ),
        ("aws.bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-opus-5", false),
        ("azure.ai.openai", "eu/gpt-4o", "gpt-4o-2024-08-06", true),
        ("ollama", "llama3.2:latest", "llama3.2", false),
    ] {
        assert_eq!(says_more(provider, more, less), expected, "{provider} {more} {less}");
    }
}

/// Providers with a grammar of their own, and one without.
const PROVIDERS: [&str; 12] = [
    "openai",
    "anthropic",
    "azure.ai.openai",
    "azure.ai.inference",
    "aws.bedrock",
    "gcp.vertex_ai",
    "gcp.gemini",
    "fireworks_ai",
    "ollama",
    "openrouter",
    "x_ai",
    "unheard-of",
];

/// Pieces of names, so that many of them have parts.
const PIECES: [&str; 26] = [
    "us.",
    "eu.",
    "global.",
    "anthropic.",
    "claude",
    "-sonnet",
    "-4-5",
    "-20250929",
    "-2025-09-29",
    "-v1",
    ":0",
    ":200k",
    "@default",
    "@20250929",
    "-latest",
    "ft:",
    ":acme",
    ".ft-1",
    "/",
    "openai",
    "models/",
    "publishers/google/models/",
    "arn:aws:bedrock:us-east-1::foundation-model/",
    "é",
    "#",
    "accounts/fireworks/models/",
];

proptest! {
    #[test]
    fn any_text_is_a_name_whose_forms_say_what_they_left_out(
        provider in prop::sample::select(&PROVIDERS[..]),
        pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..8),
        noise in ".{0,6}",
    ) {
        let given = pieces.concat() + &noise;
        let name = Name::of(provider, &given);
        let forms: Vec<_> = name.forms().collect();
        prop_assert_eq!(forms[0].text, given.as_str());
        prop_assert_eq!(forms[0].rules, PriceMatch::EXACT);
        let mut seen = vec![given.as_str()];
        for form in forms.iter().skip(1) {
            prop_assert!(form.rules != PriceMatch::EXACT, "{:?}", form);
            prop_assert!(!form.text.is_empty());
            prop_assert!(!seen.contains(&form.text), "{} twice in {:?}", form.text, forms);
            seen.push(form.text);
            // Whatever is left out, nothing is made up but the words of a platform's own path.
            let last = form.text.rsplit(['/', ':']).next().unwrap();
            prop_assert!(given.contains(last), "{} from {}", form.text, given);
            let has_region = name.region().is_some();
            prop_assert_eq!(form.lacks_region, form.rules.has(Rule::Region));
            prop_assert!(!form.lacks_region || has_region);
        }
    }

    #[test]
    fn capitals_change_no_part_of_a_name(
        provider in prop::sample::select(&PROVIDERS[..]),
        pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 1..8),
    ) {
        let given = pieces.concat().replace('é', "e");
        let (small, large) = (given.to_ascii_lowercase(), given.to_ascii_uppercase());
        let shown = |text: &str| {
            let name = Name::of(provider, text);
            name.forms().map(|form| (form.text.to_ascii_lowercase(), form.rules)).collect::<Vec<_>>()
        };
        prop_assert_eq!(shown(&small), shown(&large));
    }
}
