//! What a gateway in a pod is told without asking the cluster: the pod's annotations, in a file, and whose
//! each GPU of the node is, by the kubelet's socket.

use std::convert::Infallible;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message as _;
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::{UnixListener, UnixStream};

use crate::fleet_scraping::{Source, await_source, metrics, text};
use crate::gateway::{Setup, taximeter};
use crate::patience::patiently;

/// A volume in which Kubernetes shows something of the pod.
struct Volume {
    folder: TempDir,
    versions: u32,
}

impl Volume {
    fn empty() -> Self {
        Self { folder: tempfile::tempdir().expect("a temporary folder"), versions: 0 }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("annotations")
    }

    /// Swaps a link, as the kubelet does.
    fn show(&mut self, annotations: &str) {
        self.versions += 1;
        let at = |name: &str| self.folder.path().join(name);
        let version = format!("..{}", self.versions);
        fs::create_dir(at(&version)).expect("a folder");
        fs::write(at(&version).join("annotations"), annotations).expect("write it");
        symlink(&version, at("..data_tmp")).expect("a link");
        fs::rename(at("..data_tmp"), at("..data")).expect("swap it");
        if self.versions == 1 {
            symlink("..data/annotations", self.file()).expect("a link");
        }
    }
}

fn name(path: &Path) -> String {
    path.display().to_string()
}

#[test]
fn annotations_of_the_pod_name_a_place_and_what_is_wrong_with_them_is_stated() {
    let (engine, beside) = (Source::saying(text(&metrics(1))), Source::saying(text(&metrics(2))));
    let mut volume = Volume::empty();
    let file = name(&volume.file());
    let upstream = format!("name: engine, url: \"http://{}\", dialect: openai", engine.address);
    let fleet = format!("fleet: {{hosts: {{local: off}}, annotations: {file:?}}}");
    let gateway = Setup::with_upstream(&upstream).with(&fleet).start();
    let state = |is: &str| {
        let is = is.to_owned();
        move |source: &Value| source["state"] == is.as_str()
    };
    let missing = await_source(&gateway, &file, state("failing"));
    assert_eq!(
        (&missing["cause"], &missing["kind"]),
        (&"unreadable".into(), &"annotations".into())
    );

    let annotations = |port: u16| {
        format!(
            "kubernetes.io/config.seen=\"2026-11-27T10:00:00\"\nnote=\"say \\\"hi\\\"\\n\"\n\
             prometheus.io/port=\"{port}\"\nprometheus.io/scrape=\"true\""
        )
    };
    volume.show(&annotations(beside.address.port()));
    let found = await_source(&gateway, &beside.url(), state("up"));
    assert_eq!(
        (&found["kind"], &found["upstreams"]),
        (&"engine".into(), &Value::Array(Vec::new()))
    );
    let read = await_source(&gateway, &file, state("up"));
    assert_eq!((&read["cause"], &read["failed"]), (&Value::Null, &1.into()));

    // The address of an upstream is asked once.
    volume.show(&annotations(engine.address.port()));
    await_source(&gateway, &file, |source| source["asked"] == 3);
    let sources = gateway.admin("/api/v1/fleet").json()["sources"].clone();
    let names: Vec<_> =
        sources.as_array().expect("a list").iter().map(|one| &one["name"]).collect();
    assert_eq!(names, [&Value::from(engine.url()), &Value::from(file.clone())]);

    let wrong = annotations(1).replace("\"1\"", "\"http\"");
    volume.show(&wrong);
    let told = await_source(&gateway, &file, |source| source["cause"] == "annotation");
    assert_eq!(told["why"], "prometheus.io/port: \"http\" is no port, from 1 to 65535");
    let checked = taximeter(["check".as_ref(), gateway.config_file().as_os_str()]);
    let said = String::from_utf8_lossy(&checked.stdout);
    let line = format!("fleet.annotations, {file}: prometheus.io/port: \"http\" is no port");
    assert!(checked.status.success() && said.contains(&line), "{said}");
}

/// `ListPodResourcesResponse` of Kubernetes' podresources API, v1, with the members that matter here.
#[derive(Clone, PartialEq, prost::Message)]
struct List {
    #[prost(message, repeated, tag = "1")]
    pods: Vec<Pod>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Pod {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    namespace: String,
    #[prost(message, repeated, tag = "3")]
    containers: Vec<Container>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Container {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, repeated, tag = "2")]
    devices: Vec<Devices>,
    /// What nobody here needs, and a real kubelet sends all the same.
    #[prost(int64, repeated, tag = "3")]
    cpu_ids: Vec<i64>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Devices {
    #[prost(string, tag = "1")]
    resource: String,
    #[prost(string, repeated, tag = "2")]
    ids: Vec<String>,
}

/// Containers as `pod container id …`.
fn list(of: &[&str]) -> List {
    let pod = |words: &&str| {
        let words: Vec<_> = words.split(' ').map(str::to_owned).collect();
        let [pod, container, ids @ ..] = words.as_slice() else { panic!("{words:?}") };
        let devices = Devices { resource: "nvidia.com/gpu".to_owned(), ids: ids.to_vec() };
        let container =
            Container { name: container.clone(), devices: vec![devices], cpu_ids: vec![0, 1] };
        Pod { name: pod.clone(), namespace: "llm".to_owned(), containers: vec![container] }
    };
    List { pods: of.iter().map(pod).collect() }
}

/// How a kubelet answers.
#[derive(Clone)]
enum Answer {
    List(List),
    Status(&'static str),
    Rubbish(&'static [u8]),
    NoPrefix,
    Nothing,
}

/// A kubelet at a socket.
struct Kubelet {
    folder: TempDir,
    answer: Arc<Mutex<Answer>>,
    _runtime: tokio::runtime::Runtime,
}

impl Kubelet {
    fn start(answer: Answer) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let answer = Arc::new(Mutex::new(answer));
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).enable_all().build().expect("a runtime");
        let _inside = runtime.enter();
        let listener = UnixListener::bind(folder.path().join("kubelet.sock")).expect("a socket");
        let told = answer.clone();
        runtime.spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let answer = told.lock().expect("no panic").clone();
                tokio::spawn(serve(socket, answer));
            }
        });
        drop(_inside);
        Self { folder, answer, _runtime: runtime }
    }

    fn socket(&self) -> String {
        name(&self.folder.path().join("kubelet.sock"))
    }

    fn says(&self, answer: Answer) {
        *self.answer.lock().expect("no panic") = answer;
    }
}

async fn serve(socket: UnixStream, answer: Answer) {
    match answer {
        Answer::Rubbish(bytes) => {
            let mut socket = socket.into_std().expect("a socket");
            // Who has read enough goes.
            let _ = socket.write_all(bytes);
        }
        Answer::Nothing => {
            let _held = socket;
            std::future::pending().await
        }
        answer => {
            let service = service_fn(move |request: Request<Incoming>| {
                let answer = answer.clone();
                async move { Ok::<_, Infallible>(answered(request, answer).await) }
            });
            let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            let _ = server.serve_connection(TokioIo::new(socket), service).await;
        }
    }
}

async fn answered(
    request: Request<Incoming>,
    answer: Answer,
) -> Response<BoxBody<Bytes, Infallible>> {
    assert_eq!(request.uri().path(), "/v1.PodResourcesLister/List");
    assert_eq!(request.headers()["content-type"], "application/grpc");
    let asked = request.into_body().collect().await.expect("a whole body").to_bytes();
    assert_eq!(&asked[..], [0; 5], "an empty message");
    let fields = |pairs: &[(&'static str, &'static str)]| {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (name.parse().expect("a name"), value.parse().expect("a value"))
        };
        pairs.iter().map(pair).collect::<HeaderMap>()
    };
    let head = Response::builder().header("content-type", "application/grpc");
    match answer {
        Answer::List(list) => {
            let message = list.encode_to_vec();
            let length = u32::try_from(message.len()).expect("short").to_be_bytes();
            let framed = Bytes::from([&[0], &length[..], &message].concat());
            let ends = fields(&[("grpc-status", "0")]);
            let frames = [Frame::data(framed), Frame::trailers(ends)].map(Ok::<_, Infallible>);
            let body = StreamBody::new(futures_util::stream::iter(frames));
            head.body(body.boxed()).expect("an answer")
        }
        Answer::Status(code) => {
            let mut answer = head.body(Full::new(Bytes::new()).boxed()).expect("an answer");
            let said = fields(&[("grpc-status", code), ("grpc-message", "unknown service")]);
            answer.headers_mut().extend(said);
            answer
        }
        _ => {
            let mut answer =
                head.body(Full::new(Bytes::from("<html>")).boxed()).expect("an answer");
            answer.headers_mut().extend(fields(&[("grpc-status", "0")]));
            answer
        }
    }
}

/// What dcgm-exporter tells of these GPUs, each with the labels of its pod.
fn dcgm(gpus: &[(&str, &str)]) -> Vec<u8> {
    let line = |(at, (uuid, pod)): (usize, &(&str, &str))| {
        format!(
            "DCGM_FI_DEV_GPU_UTIL{{gpu=\"{at}\",UUID=\"{uuid}\",device=\"nvidia{at}\",\
             modelName=\"H100\",Hostname=\"node-1\"{pod}}} 5\n"
        )
    };
    text(&gpus.iter().enumerate().map(line).collect::<String>())
}

#[test]
fn whose_each_gpu_is_the_kubelet_says_and_what_labels_say_otherwise_is_a_doubt() {
    let engine = Source::saying(text(&metrics(1)));
    let other = ",pod=\"other\",namespace=\"llm\",container=\"x\"";
    let exporter = Source::saying(dcgm(&[("GPU-1", ""), ("GPU-2", other), ("GPU-3", "")]));
    let held = ["engine-0 engine GPU-1 GPU-2", "engine-0 beside GPU-1", "third x GPU-3::5"];
    let kubelet = Kubelet::start(Answer::List(list(&held)));
    let socket = kubelet.socket();
    let upstream = format!("name: engine, url: \"http://{}\", dialect: openai", engine.address);
    let fleet = format!(
        "fleet: {{hosts: {{local: off}}, gpus: {{scrape: [{:?}], podresources: {socket:?}}}}}\n\
         resource: {{k8s.pod.name: engine-0, k8s.namespace.name: llm, k8s.node.name: node-1}}",
        exporter.url()
    );
    let gateway = Setup::with_upstream(&upstream).with(&fleet).start();
    await_source(&gateway, &exporter.url(), |source| source["state"] == "up");
    let told = await_source(&gateway, &socket, |source| source["state"] == "up");
    assert_eq!(
        (&told["kind"], &told["programs"][0]["name"]),
        (&"kubelet".into(), &"kubelet".into())
    );
    let owner = |one: &Value| {
        let label = |name: &str| one["labels"][name].as_str().expect("a label").to_owned();
        let words = ["hw.id", "k8s.pod.name", "k8s.container.name", "sharing"].map(label);
        assert_eq!(
            (&one["name"], &one["value"]),
            (&"taximeter.fleet.gpu.owner".into(), &1.0.into())
        );
        words.join(" ")
    };
    let owners: Vec<_> = told["quantities"].as_array().expect("a list").iter().map(owner).collect();
    let expected = [
        "GPU-1 engine-0 beside shared",
        "GPU-1 engine-0 engine shared",
        "GPU-2 engine-0 engine exclusive",
        "GPU-3 third x shared",
    ];
    assert_eq!(owners, expected);
    assert!(told["quantities"][3]["how"].as_str().expect("a text").contains("replica"));
    let join = gateway.admin("/api/v1/fleet").json()["joins"][0].clone();
    let link = |one: &Value| format!("{} by {}", one["to"], one["basis"]).replace('"', "");
    let gpus: Vec<_> = join["gpus"]["links"].as_array().expect("a list").iter().map(link).collect();
    assert_eq!(gpus, ["GPU-1 by podresources", "GPU-2 by podresources"]);
    let doubts = [
        "GPU-1 is shared by the containers beside, engine of its pod",
        "its exporter says that GPU-2 is of llm/other",
    ];
    assert_eq!(join["doubts"], Value::from(doubts.to_vec()));

    let page = gateway.admin("/fleet");
    assert!(page.text().contains("llm/engine-0, llm/other"), "both are shown as its owners");

    // A GPU moves to another pod.
    kubelet.says(Answer::List(list(&["engine-0 engine GPU-1", "third x GPU-2"])));
    let moved = await_source(&gateway, &socket, |source| source["vanished"].as_u64() > Some(0));
    assert_eq!(moved["quantities"].as_array().expect("a list").len(), 2);
    let join = gateway.admin("/api/v1/fleet").json()["joins"][0].clone();
    assert_eq!(join["gpus"]["links"].as_array().expect("a list").len(), 1, "{join:#}");
    // That is one event, and none of what labels have said otherwise all the time.
    let told = patiently(|| {
        let events = gateway.admin("/api/v1/fleet/events").json()["events"].clone();
        Some(events).filter(|events| events.as_array().is_some_and(|all| !all.is_empty()))
    });
    let told = told.expect("events");
    let texts = told.as_array().expect("a list").iter().map(|one| one["text"].clone());
    let texts: Vec<_> = texts.collect();
    let expected = [
        "GPU-2 is given to llm/third now, and was to llm/engine-0",
        "GPU-3 is given to no pod now, and was to llm/third",
    ];
    assert!(expected.iter().all(|text| texts.contains(&(*text).into())), "{told:#}");
    assert_eq!(texts.len(), expected.len(), "{told:#}");
    assert_eq!(told[0]["source"], socket.as_str());
}

#[test]
fn a_kubelet_that_does_not_answer_as_one_is_stated() {
    let engine = Source::saying(text(&metrics(1)));
    let away = Kubelet::start(Answer::Nothing);
    fs::remove_file(away.socket()).expect("nobody is there");
    let bad = [
        ("connect", "cannot connect", away),
        ("broken", "not HTTP", Kubelet::start(Answer::Rubbish(b"220 mail.example ESMTP\r\n"))),
        ("status", "gRPC status 12: unknown service", Kubelet::start(Answer::Status("12"))),
        ("no_podresources", "no list", Kubelet::start(Answer::NoPrefix)),
        ("timeout", "no whole answer in 10 s", Kubelet::start(Answer::Nothing)),
    ];
    let start = |kubelet: &Kubelet| {
        let upstream = format!("name: engine, url: \"http://{}\", dialect: openai", engine.address);
        let gpus = format!("gpus: {{podresources: {:?}}}", kubelet.socket());
        let fleet = format!("fleet: {{hosts: {{local: off}}, {gpus}}}");
        Setup::with_upstream(&upstream).with(&fleet).start()
    };
    let gateways: Vec<_> = bad.iter().map(|(.., kubelet)| start(kubelet)).collect();
    for ((cause, why, kubelet), gateway) in bad.iter().zip(&gateways) {
        let told =
            await_source(gateway, &kubelet.socket(), |source| source["cause"] != Value::Null);
        assert_eq!((&told["cause"], &told["state"]), (&(*cause).into(), &"failing".into()));
        assert!(told["why"].as_str().expect("a reason").contains(why), "{told:#}");
        assert_eq!(told["quantities"], Value::Array(Vec::new()));
        // What else is read is read as ever.
        await_source(gateway, &engine.url(), |source| source["state"] == "up");
    }
    // One that comes to its senses is heard.
    let (.., kubelet) = &bad[3];
    kubelet.says(Answer::List(list(&["engine-0 engine GPU-1"])));
    let told = await_source(&gateways[3], &kubelet.socket(), |source| source["state"] == "up");
    assert_eq!(told["cause"], Value::Null);
}
