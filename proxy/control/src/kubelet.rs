//! Asks the kubelet whose each GPU of its node is: `List` of its podresources API, by gRPC over a socket.
//!
//! Source: Kubernetes, `k8s.io/kubelet/pkg/apis/podresources/v1/api.proto`, with the members that are used
//! here.

use std::borrow::Cow;
use std::path::Path;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, TE};
use http::{HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::LengthLimitError;
use prost::Message as _;
use taximeter_fleet::{Held, Reading, read_held};
use taximeter_net::grpc::{self, Reply};
use taximeter_net::upstream::dial_path;

use crate::ask::{ANSWER_TIMEOUT, Answer, ScrapeFault, shown};

/// What is called. The host is nobody's: a socket has none.
const LIST: &str = "http://localhost/v1.PodResourcesLister/List";
/// A message without members: not compressed, and of no bytes.
const NOTHING: &[u8] = &[0; PREFIX_BYTES];
/// What stands before a message: whether it is compressed, and its length.
const PREFIX_BYTES: usize = 5;
/// Longest answer that is read, in bytes: as long as other clients of gRPC read.
const LIST_BYTES_MAX: usize = 4 << 20;

#[derive(Clone, PartialEq, prost::Message)]
struct ListPodResourcesResponse {
    #[prost(message, repeated, tag = "1")]
    pod_resources: Vec<PodResources>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct PodResources {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    namespace: String,
    #[prost(message, repeated, tag = "3")]
    containers: Vec<ContainerResources>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ContainerResources {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, repeated, tag = "2")]
    devices: Vec<ContainerDevices>,
    #[prost(message, repeated, tag = "5")]
    dynamic_resources: Vec<DynamicResource>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ContainerDevices {
    #[prost(string, tag = "1")]
    resource_name: String,
    #[prost(string, repeated, tag = "2")]
    device_ids: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct DynamicResource {
    #[prost(message, repeated, tag = "4")]
    claim_resources: Vec<ClaimResource>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ClaimResource {
    #[prost(string, tag = "2")]
    driver_name: String,
    #[prost(string, tag = "3")]
    pool_name: String,
    #[prost(string, tag = "4")]
    device_name: String,
}

/// Asks once, at the socket with this path.
pub(crate) async fn ask(path: &Path) -> Result<Answer, ScrapeFault> {
    let asked = exchange(path);
    tokio::time::timeout(ANSWER_TIMEOUT, asked).await.unwrap_or(Err(ScrapeFault::Timeout))
}

async fn exchange(path: &Path) -> Result<Answer, ScrapeFault> {
    let mut request = Request::new(Bytes::from_static(NOTHING));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = Uri::from_static(LIST);
    let headers = request.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert(TE, HeaderValue::from_static("trailers"));
    let called = grpc::call(dial_path(path).await?, request, LIST_BYTES_MAX + PREFIX_BYTES).await;
    let reply = called.map_err(|fault| match fault.is::<LengthLimitError>() {
        true => ScrapeFault::TooLong(LIST_BYTES_MAX),
        false => ScrapeFault::Broken,
    })?;
    Ok(Answer { text: message(&reply)?.to_vec(), cut: false })
}

/// The one message of a reply that says that all is well.
fn message(reply: &Reply) -> Result<&[u8], ScrapeFault> {
    if reply.status != StatusCode::OK {
        return Err(ScrapeFault::Status(reply.status));
    }
    let code = reply.ends.get("grpc-status").ok_or(ScrapeFault::NoList)?;
    if code != "0" {
        let said = reply.ends.get("grpc-message").map(shown).unwrap_or_default();
        return Err(ScrapeFault::Grpc { code: shown(code), said });
    }
    let (prefix, message) = reply.body.split_at_checked(PREFIX_BYTES).ok_or(ScrapeFault::NoList)?;
    // Nobody was asked to compress.
    let is_whole = prefix.split_first().is_some_and(|(compressed, length)| {
        *compressed == 0 && u32::try_from(message.len()).is_ok_and(|is| is.to_be_bytes() == length)
    });
    is_whole.then_some(message).ok_or(ScrapeFault::NoList)
}

/// What a list says of GPUs.
pub(crate) fn read(list: &[u8]) -> Result<Reading, ScrapeFault> {
    let list = ListPodResourcesResponse::decode(list).map_err(|_| ScrapeFault::NoList)?;
    let containers = list.pod_resources.iter().flat_map(|pod| {
        let of = |container| (pod.namespace.as_str(), pod.name.as_str(), container);
        pod.containers.iter().map(of)
    });
    let held = containers.flat_map(|(namespace, pod, of)| {
        let devices = of.devices.iter().flat_map(|of| {
            let resource = of.resource_name.as_str();
            of.device_ids.iter().map(move |id| (resource, Cow::Borrowed(id.as_str())))
        });
        let claimed = of.dynamic_resources.iter().flat_map(|of| &of.claim_resources);
        let claimed = claimed.map(|of| {
            let ClaimResource { driver_name, pool_name, device_name } = of;
            let id = format!("{driver_name}/{pool_name}/{device_name}");
            (driver_name.as_str(), Cow::Owned(id))
        });
        let container = of.name.as_str();
        let all = devices.chain(claimed);
        all.map(move |(resource, id)| Held { namespace, pod, container, resource, id })
    });
    Ok(read_held(held))
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;
    use proptest::prelude::*;
    use taximeter_fleet::Field;

    use super::*;

    fn list() -> ListPodResourcesResponse {
        let devices = |resource: &str, ids: &[&str]| ContainerDevices {
            resource_name: resource.to_owned(),
            device_ids: ids.iter().map(|id| (*id).to_owned()).collect(),
        };
        let claim = ClaimResource {
            driver_name: "gpu.nvidia.com".to_owned(),
            pool_name: "node-1".to_owned(),
            device_name: "gpu-7".to_owned(),
        };
        let container = ContainerResources {
            name: "engine".to_owned(),
            devices: vec![devices("nvidia.com/gpu", &["GPU-1", "GPU-2"]), devices("a/b", &["x"])],
            dynamic_resources: vec![DynamicResource { claim_resources: vec![claim] }],
        };
        let pod = PodResources {
            name: "engine-0".to_owned(),
            namespace: "llm".to_owned(),
            containers: vec![ContainerResources::default(), container],
        };
        ListPodResourcesResponse { pod_resources: vec![PodResources::default(), pod] }
    }

    fn reply(code: Option<&'static str>, body: Vec<u8>) -> Reply {
        let mut ends = HeaderMap::new();
        if let Some(code) = code {
            ends.insert("grpc-status", HeaderValue::from_static(code));
            ends.insert(
                "grpc-message",
                HeaderValue::from_bytes("no such\u{202e}service".as_bytes()).unwrap(),
            );
        }
        Reply { status: StatusCode::OK, ends, body: body.into() }
    }

    fn framed(message: &[u8]) -> Vec<u8> {
        [&[0][..], &u32::try_from(message.len()).unwrap().to_be_bytes(), message].concat()
    }

    #[test]
    fn a_list_says_whose_each_device_is() {
        let reply = reply(Some("0"), framed(&list().encode_to_vec()));
        let reading = read(message(&reply).unwrap()).unwrap();
        let told = reading.measured.iter().map(|one| {
            let get = |field| one.identity.get(field).unwrap_or("?");
            [Field::Gpu, Field::Namespace, Field::Pod, Field::Container].map(get).join(" ")
        });
        let expected = [
            "GPU-1 llm engine-0 engine",
            "GPU-2 llm engine-0 engine",
            "gpu.nvidia.com/node-1/gpu-7 llm engine-0 engine",
        ];
        assert_eq!(told.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_is_no_list_is_told_apart() {
        let cause = |reply: &Reply| message(reply).unwrap_err().cause();
        let good = framed(&list().encode_to_vec());
        assert_eq!(cause(&reply(None, good.clone())), "no_podresources");
        assert_eq!(cause(&reply(Some("0"), good[..good.len() - 1].to_vec())), "no_podresources");
        assert_eq!(cause(&reply(Some("0"), Vec::new())), "no_podresources");
        let compressed = [&[1], &good[1..]].concat();
        assert_eq!(cause(&reply(Some("0"), compressed)), "no_podresources");
        let away = Reply { status: StatusCode::NOT_FOUND, ..reply(Some("0"), good.clone()) };
        assert_eq!(cause(&away), "status");
        let said = message(&reply(Some("12"), good)).unwrap_err();
        let (cause, why) = (said.cause(), said.to_string());
        assert_eq!((cause, &*why), ("status", "it answers gRPC status 12: no such\u{fffd}service"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_list_or_none(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(reading) = read(&bytes) {
                prop_assert!(reading.measured.is_empty() != reading.unknown.is_empty());
            }
        }

        #[test]
        fn a_flipped_byte_costs_no_more_than_the_list(at in any::<prop::sample::Index>(), to in any::<u8>()) {
            let mut bytes = list().encode_to_vec();
            let at = at.index(bytes.len());
            bytes[at] = to;
            if let Ok(reading) = read(&bytes) {
                prop_assert!(reading.measured.len() <= 4);
            }
        }
    }
}
