//! The region of an endpoint, by its address.

/// The region in the host of an endpoint, or else in its path. `None` if they have none.
///
/// Source: endpoints of OpenAI's data residency (`eu.api.openai.com`), AWS Bedrock
/// (`bedrock-runtime.eu-central-1.amazonaws.com`) and Vertex AI
/// (`europe-west1-aiplatform.googleapis.com`, `aiplatform.eu.rep.googleapis.com`, and
/// `…/locations/global/…` behind `aiplatform.googleapis.com`).
pub(super) fn of<'a>(host: &'a str, path: &'a str) -> Option<&'a str> {
    openai(host).or_else(|| bedrock(host)).or_else(|| vertex(host, path))
}

fn openai(host: &str) -> Option<&str> {
    one(host.strip_suffix(".api.openai.com")?)
}

/// The label behind that of the service, which private endpoints have behind a name of their own.
fn bedrock(host: &str) -> Option<&str> {
    let suffixes = [".amazonaws.com", ".amazonaws.com.cn", ".api.aws"];
    let inner = suffixes.iter().find_map(|suffix| host.strip_suffix(suffix))?;
    let mut labels = inner.split('.');
    labels.find(|label| label.starts_with("bedrock"))?;
    labels.next()
}

fn vertex<'a>(host: &'a str, path: &'a str) -> Option<&'a str> {
    let inner = host.strip_suffix("aiplatform.googleapis.com");
    let multiple = || one(host.strip_prefix("aiplatform.")?.strip_suffix(".rep.googleapis.com")?);
    let in_path = || {
        let (_, behind) = path.split_once("/locations/")?;
        behind.split('/').next().filter(|region| !region.is_empty())
    };
    let in_host = inner.and_then(|region| one(region.strip_suffix('-')?)).or_else(multiple);
    in_host.or_else(|| inner.and_then(|_| in_path()))
}

/// A text that is one label.
fn one(label: &str) -> Option<&str> {
    Some(label).filter(|label| !label.is_empty() && !label.contains('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_address_of_a_regional_endpoint_tells_a_region() {
        for (host, path, region) in [
            ("eu.api.openai.com", "", "eu"),
            ("bedrock-runtime.eu-central-1.amazonaws.com", "", "eu-central-1"),
            ("bedrock-runtime-fips.us-gov-west-1.amazonaws.com", "", "us-gov-west-1"),
            ("bedrock-runtime.cn-north-1.amazonaws.com.cn", "", "cn-north-1"),
            ("bedrock-runtime.us-east-1.api.aws", "", "us-east-1"),
            ("bedrock-mantle.us-west-2.api.aws", "/openai", "us-west-2"),
            ("vpce-0a.bedrock-runtime.eu-west-1.vpce.amazonaws.com", "", "eu-west-1"),
            ("europe-west1-aiplatform.googleapis.com", "", "europe-west1"),
            ("aiplatform.eu.rep.googleapis.com", "", "eu"),
            (
                "aiplatform.googleapis.com",
                "/v1/projects/p/locations/global/endpoints/openapi",
                "global",
            ),
            // The host says where the request is answered.
            ("us-east5-aiplatform.googleapis.com", "/v1/projects/p/locations/us-east5", "us-east5"),
        ] {
            assert_eq!(of(host, path), Some(region), "{host}");
        }
        for (host, path) in [
            ("api.openai.com", ""),
            ("eu.openai.com", ""),
            ("a.b.api.openai.com", ""),
            ("127.0.0.1", "/v1/projects/p/locations/eu"),
            ("s3.eu-central-1.amazonaws.com", ""),
            ("bedrock.amazonaws.com", ""),
            ("aiplatform.googleapis.com", ""),
            ("aiplatform.googleapis.com", "/locations/"),
            ("generativelanguage.googleapis.com", "/v1/projects/p/locations/eu"),
        ] {
            assert_eq!(of(host, path), None, "{host}");
        }
    }
}
