"""Charts, Kustomize bases and examples, each in the hands of the programs that will read them.

Ends with 1 where anything is wrong.
"""

import concurrent.futures
import contextlib
import functools
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import helm_python as helm
import kubernetes_validate
import yaml

import cases
import rules
import standins

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm" / "taximeter"
WEBHOOK = DEPLOY / "helm" / "taximeter-webhook"
INCLUDING = HERE / "chart"
OLDEST = 29
LINT_WARNING = 2
wrong = []


def expect(kept, text):
    if not kept:
        wrong.append(text)
        print(f"WRONG: {text}")


def read(text):
    return [thing for thing in yaml.safe_load_all(text) if thing]


def loaded(folder):
    with quiet():
        return helm.Chart.load(folder)


@contextlib.contextmanager
def quiet():
    """Helm's library says on stderr that it follows links, each time."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def render(chart, values, name="taximeter", namespace="models"):
    files = chart.render(values, name=name, namespace=namespace)
    return [thing for path, text in sorted(files.items()) if path.endswith(".yaml") for thing in read(text)]


def findings(folder, values):
    with quiet():
        report = helm.lint(folder, values, strict=True)
    return [message["error"] for message in report["messages"] if message["severity"] >= LINT_WARNING]


def charts():
    """Every case, rendered and linted; and every bad one, refused with the key's name."""
    found = {}
    alike = [("gateway", CHART, cases.GATEWAY, cases.BAD_GATEWAY, lambda values: values),
             ("webhook", WEBHOOK, cases.WEBHOOK, cases.BAD_WEBHOOK, lambda values: values),
             ("sidecar", INCLUDING, cases.SIDECAR, cases.BAD_SIDECAR, lambda values: {"taximeter": values})]
    for kind, folder, good, bad, wrap in alike:
        with loaded(folder) as chart:
            for name, values in good.items():
                try:
                    found[f"{kind}-{name}"] = render(chart, wrap(values))
                except (helm.HelmError, yaml.YAMLError) as fault:
                    sys.exit(f"{kind} {name} is not rendered: {fault}")
                for finding in findings(folder, wrap(values)):
                    expect(False, f"helm lint, {kind} {name}: {finding}")
            for values, key in bad:
                expect(any(key in finding for finding in findings(folder, wrap(values))), f"helm lint passes {values}")
                try:
                    chart.render(wrap(values))
                    expect(False, f"{values} is rendered")
                except helm.HelmError as fault:
                    expect(key in str(fault), f"{values} is refused without the word {key}: {fault}")
            if folder == CHART:
                # Nothing is wrong with the values, but something is missing.
                try:
                    chart.render({})
                    expect(False, "a gateway before nothing is rendered")
                except helm.HelmError as fault:
                    expect("upstream: what does the gateway stand before?" in str(fault), f"without upstream: {fault}")
    return found


def check_kinds():
    """A value of another kind than the one that stands in values.yaml is refused by its key, whichever it is."""
    count = 0
    for folder, values, wrap in ((CHART, cases.ENGINE, lambda values: values), (WEBHOOK, cases.BESIDE, lambda values: values),
                                 (INCLUDING, cases.BESIDE, lambda values: {"taximeter": values})):
        library = DEPLOY / "helm" / "taximeter-sidecar"
        given = yaml.safe_load(((library if folder == INCLUDING else folder) / "values.yaml").read_text())
        for key, bad in standins.of_another_kind(given, values):
            count += 1
            found = findings(folder, wrap(bad))
            expect(any(key in finding for finding in found), f"helm lint, {folder.name}, {key}: {found}")
    return count


def kustomized(folder):
    built = subprocess.run(["kubectl", "kustomize", folder], capture_output=True, text=True, check=False)
    expect(built.returncode == 0, f"kubectl kustomize {folder}: {built.stderr}")
    return read(built.stdout)


def one(things, kind, name=None):
    """The object of a kind; by its name, to which Kustomize may have added a hash."""
    found = [thing for thing in things if thing["kind"] == kind
             and (name is None or re.fullmatch(f"{name}(-[a-z0-9]{{10}})?", thing["metadata"]["name"]))]
    assert len(found) == 1, f"{len(found)} of {kind} {name}"
    return found[0]


def pods(things):
    return [(thing, pod) for thing in things if (pod := rules.pod_of(thing)) is not None]


@functools.lru_cache
def versions():
    """Those of Kubernetes, from the oldest that has native sidecars."""
    known = kubernetes_validate.utils.all_versions()
    return [version for version in known if int(version.split(".")[1]) >= OLDEST]


def check_schemas(name, things):
    """Each object as each Kubernetes knows it, strictly; and the pods as `restricted` wants them."""
    for thing in things:
        what = f"{name}: {thing['kind']} {thing['metadata']['name']}"
        faults = rules.custom(thing)
        if faults is not None:
            expect(not faults, f"{what}: {faults}")
            continue
        for version in versions():
            try:
                kubernetes_validate.validate(thing, version, strict=True)
            except (kubernetes_validate.ValidationError, kubernetes_validate.SchemaNotFoundError) as fault:
                expect(False, f"{what}, Kubernetes {version}: {fault.message}")
    for thing, pod in pods(things):
        what = f"{name}: {thing['kind']} {thing['metadata']['name']}"
        faults = list(rules.restricted(pod))
        expect(not faults, f"{what} is not restricted: {faults}")
        expect(pod.get("automountServiceAccountToken") is False, f"{what} has a token of Kubernetes")


@functools.lru_cache
def checked(text):
    """What `taximeter check` says against a configuration, with stand-ins for what is somebody else's."""
    names = set(re.findall(r"\$\{env:([^}]+)\}", text))
    text = text.replace("/run/secrets/taximeter-tls", standins.certificate())
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(re.sub(r"\$\{file:[^}]+\}", "a-stand-in-for-a-secret", text))
        file.flush()
        done = subprocess.run([os.environ["TAXIMETER_BINARY"], "check", file.name], capture_output=True, text=True,
                              check=False, timeout=60, env=dict.fromkeys(names, "a-stand-in"))
    return done.stderr if done.returncode else ""


def check_configurations(name, things, among):
    """Each one is good, and the pod that it is for has what it names: variables, files, ports, patience."""
    count = 0
    for thing in things:
        text = thing.get("data", {}).get("taximeter.yaml") if thing["kind"] == "ConfigMap" else None
        if text is None:
            continue
        count += 1
        what = f"{name}: ConfigMap {thing['metadata']['name']}"
        expect(not (told := checked(text)), f"{what}: {told}")
        carriers = [pod for _, pod in pods(among) if any(
            volume.get("configMap", {}).get("name") == thing["metadata"]["name"] for volume in pod.get("volumes", []))]
        expect(carriers, f"{what} is in no pod")
        for pod in carriers:
            check_fit(what, text, pod)
    return count


def check_fit(what, text, pod):
    config = yaml.safe_load(text)
    container = next(container for container in rules.containers(pod) if container["name"] == "taximeter")
    variables = {entry["name"] for entry in container["env"]}
    for named in re.findall(r"\$\{env:([^}]+)\}", text):
        expect(named in variables, f"{what}: the pod has no variable {named}")
    secrets = {volume["name"] for volume in pod["volumes"] if "secret" in volume}
    mounted = [mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] in secrets]
    for path in [*re.findall(r"\$\{file:([^}]+)\}", text), *config.get("admin_tls", {}).values()]:
        expect(str(pathlib.PurePath(path).parent) in mounted, f"{what}: the pod has no secret at {path}")
    writable = [mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")]
    expect(writable == [config["data_dir"]], f"{what}: data in {config['data_dir']}, room in {writable}")
    data = next(volume for volume in [*pod["volumes"], {"name": "taximeter-data"}] if volume["name"] == "taximeter-data")
    if "emptyDir" in data:
        # Whoever takes more is evicted, with all that is in its pod.
        size, most = data["emptyDir"]["sizeLimit"], config.get("ledger", {}).get("dir_bytes_max", 0)
        expect(0.85 <= most / rules.bytes_of(size) <= 0.95, f"{what}: the ledger takes {most} of {size}")
    ports = {port["name"]: port["containerPort"] for port in container.get("ports", [])}
    for port, address in (("http", config["listen"]), ("admin", config.get("admin", "127.0.0.1:9464"))):
        host, number = address.rsplit(":", 1)
        open_to_others = host in ("0.0.0.0", "[::]")
        expect((ports.get(port) == int(number)) == open_to_others, f"{what}: {address}, but the port {port} is {ports.get(port)}")
    probes = [container[probe] for probe in ("startupProbe", "readinessProbe", "livenessProbe") if probe in container]
    expect(len(probes) == 3, f"{what}: the sidecar or gateway has {len(probes)} probes of three")
    for probe in probes:
        if "exec" in probe:
            command = probe["exec"]["command"]
            expect(command[:2] == ["/taximeter", "healthy"], f"{what}: a probe runs {command}")
            told = [entry["value"] for entry in container["env"] if entry["name"] == "TAXIMETER_ADMIN"]
            expect(told == ["127.0.0.1:9464"], f"{what}: a probe runs {command}, and the sidecar is at {told}")
            continue
        # A connection tells nothing: the kernel takes it, whatever the ledger says.
        asked = probe["httpGet"]
        port = asked["port"]
        private = port == "admin" and "admin_tls" in config
        expect((asked.get("scheme") == "HTTPS") == private, f"{what}: a probe asks {asked}, and TLS is {private}")
        expect(port in ports, f"{what}: a probe asks the port {port}, which is not there")
    # Last counts, the store and the last metrics come behind the drain.
    if container in pod["containers"]:
        patience, limits = pod["terminationGracePeriodSeconds"], config["limits"]
        expect(patience >= limits["drain_grace_seconds"] + limits["drain_seconds"] + 15, f"{what}: the pod waits {patience} s only")


def without_labels(thing):
    """What it is, without its head and without labels and annotations of what is made of it."""
    body = json.loads(json.dumps({part: of for part, of in thing.items() if part != "metadata"}))
    spec = body.get("spec", {})
    spec.get("template", {}).pop("metadata", None)
    for claim in spec.get("volumeClaimTemplates", []):
        claim["metadata"].pop("labels", None)
    return body


def differences(ours, theirs, place=""):
    """Where two things are not the same."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        pairs = [(name, ours.get(name), theirs.get(name)) for name in {**ours, **theirs}]
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        pairs = [(at, *pair) for at, pair in enumerate(zip(ours, theirs, strict=True))]
    else:
        return [] if ours == theirs else [f"{place} is {ours!r} and {theirs!r}"]
    return [found for name, one, other in pairs for found in differences(one, other, f"{place}/{name}")]


def check_gateways(theirs):
    """Kustomize makes what the gateway's chart does."""
    same = {"admin": {"existingSecret": "taximeter-admin"}, "podMonitor": {"enabled": True}, "prometheusRule": {"enabled": True},
            "autoscaling": {"enabled": True}, "dashboards": {"enabled": True},
            "config": {"upstreams": [{"name": "engine", "url": "http://engine:8000"}]}}
    with loaded(CHART) as chart:
        ours = render(chart, same)
    text = json.dumps(theirs).replace(map_with(theirs, "taximeter.yaml")["metadata"]["name"], "taximeter")
    theirs = json.loads(text.replace(f"registry.example/taximeter@{cases.DIGEST}", one(ours, "StatefulSet")[
        "spec"]["template"]["spec"]["containers"][0]["image"]))
    for kind, name in [("StatefulSet", "taximeter"), ("Service", "taximeter"), ("Service", "taximeter-pods"),
                       ("PodDisruptionBudget", "taximeter"), ("HorizontalPodAutoscaler", "taximeter"),
                       ("NetworkPolicy", "taximeter"), ("PodMonitor", "taximeter"), ("PrometheusRule", "taximeter")]:
        apart = differences(without_labels(one(ours, kind, name)), without_labels(one(theirs, kind, name)))
        expect(not apart, f"{kind} {name} of the chart and of deploy/kustomize: {apart}")
    apart = differences(config_in(ours), config_in(theirs))
    expect(not apart, f"configurations of the chart and of deploy/kustomize/gateway: {apart}")
    for file in (DEPLOY / "grafana").glob("*.json"):
        shown = [map_with(things, f"taximeter-{file.name}") for things in (ours, theirs)]
        expect(shown[0]["data"] == shown[1]["data"], f"the chart and deploy/kustomize have different {file.name}")
        names = [(found["metadata"]["name"], found["metadata"]["labels"].get("grafana_dashboard")) for found in shown]
        expect(names == [(f"taximeter-{file.stem}", "1")] * 2, f"dashboards of the chart and of deploy/kustomize: {names}")


def check_webhooks_alike(theirs):
    """Kustomize makes all that the webhook's chart does, and nothing else."""
    with loaded(WEBHOOK) as chart:
        ours = render(chart, cases.KUSTOMIZED_WEBHOOK, name="taximeter-webhook", namespace="taximeter")
    heads = [sorted((thing["kind"], thing["metadata"]["name"], thing["metadata"].get("namespace", ""),
                     thing["metadata"].get("annotations", {}).get("cert-manager.io/inject-ca-from")) for thing in things)
             for things in (ours, theirs)]
    expect(heads[0] == heads[1], f"the webhook's chart makes {heads[0]}, deploy/kustomize {heads[1]}")
    for thing in theirs:
        kind, name = thing["kind"], thing["metadata"]["name"]
        apart = differences(without_labels(one(ours, kind, name)), without_labels(thing))
        expect(not apart, f"{kind} {name} of the webhook's chart and of deploy/kustomize: {apart}")


def check_fleet(chart, beside, kind, theirs):
    """Kustomize shows a sidecar the annotations of its pod, as the chart does. It puts what is new first."""
    settings = {"beside": beside, "admin": {"secret": "taximeter-admin"}, "config": {"fleet": {}}}
    ours = render(chart, {"taximeter": settings})
    pods = [rules.pod_of(one(ours, "Deployment")), rules.pod_of(one(theirs, kind))]
    for pod in pods:
        pod["initContainers"][0]["volumeMounts"].sort(key=lambda mount: mount["name"])
    shown = [[volume for volume in pod["volumes"] if volume["name"] == "taximeter-pod"] for pod in pods]
    apart = [*differences(pods[0]["initContainers"][0], pods[1]["initContainers"][0]), *differences(*shown),
             *differences(config_in(ours), config_in(theirs, f"taximeter-{beside}"))]
    expect(shown[0] and not apart, f"taximeter-sidecar and deploy/kustomize/components/sidecar-fleet: {apart}")


def check_sameness(sets):
    """Helm, Kustomize and the examples make the same, and nothing is a copy that drifted."""
    check_gateways(sets["kustomize-gateway"])
    check_webhooks_alike(sets["kustomize-webhook"])
    with loaded(INCLUDING) as chart:
        for beside, kind in (("engine", "StatefulSet"), ("application", "Deployment")):
            ours = render(chart, {"taximeter": {"beside": beside, "admin": {"secret": "taximeter-admin"}}})
            theirs = sets["kustomize-pods"]
            first = rules.pod_of(one(theirs, kind))["initContainers"][0]
            apart = [*differences(rules.pod_of(one(ours, "Deployment"))["initContainers"][0], first),
                     *differences(config_in(ours), config_in(theirs, f"taximeter-{beside}"))]
            expect(not apart, f"taximeter-sidecar and deploy/kustomize/components/sidecar-{beside}: {apart}")
            check_fleet(chart, beside, kind, sets["kustomize-fleet"])
    for example, case in (("vllm-sidecar", "engine-like-the-example"), ("application-sidecar", "application-like-the-example"),
                          ("inference-gateway", "engine-like-the-example-behind-a-gateway")):
        shown = rules.pod_of(one(sets[f"example-{example}"], "Deployment"))["initContainers"][0]
        rendered = rules.pod_of(one(sets[f"sidecar-{case}"], "Deployment"))["initContainers"][0]
        # Whoever follows an example has an image of their own.
        rendered["image"] = shown["image"]
        expect(not (apart := differences(rendered, shown)), f"taximeter-sidecar and {example}.yaml: {apart}")


def check_injected():
    """`taximeter inject` adds the sidecar that the library chart includes, and to it once only."""
    for beside, secret, (settings, flags) in itertools.product(("engine", "application"), ("taximeter-admin", ""), cases.INJECTED):
        command = [os.environ["TAXIMETER_BINARY"], "inject", f"--beside={beside}", *flags]
        command += [f"--admin-secret={secret}"] if secret else []
        once = subprocess.run(command, input=cases.PLAIN, capture_output=True, text=True, check=True).stdout
        again = subprocess.run(command, input=once, capture_output=True, text=True, check=True).stdout
        expect(once == again, f"inject --beside={beside} changes what it has made")
        check_schemas(f"injected beside an {beside}", read(once))
        with loaded(INCLUDING) as chart:
            ours = render(chart, {"taximeter": {"beside": beside, "admin": {"secret": secret}, **settings}})
        theirs = read(once)
        written = one(theirs, "Deployment")["spec"]["template"]["metadata"]["annotations"]["taximeter.io/config"]
        pods_of_both = [rules.pod_of(one(things, "Deployment")) for things in (ours, theirs)]
        volumes = [{volume["name"]: volume for volume in pod["volumes"]} for pod in pods_of_both]
        for named in volumes:
            # The one configuration is a ConfigMap, the other an annotation.
            del named["taximeter-config"]
        containers = [pod["initContainers"][0] for pod in pods_of_both]
        for container in containers:
            # Where they come from is the user's; which comes first is nobody's.
            del container["image"]
            container["env"].sort(key=lambda variable: variable["name"])
            container["volumeMounts"].sort(key=lambda mount: mount["name"])
        apart = [*differences(*containers), *differences(*volumes), *differences(config_in(ours), yaml.safe_load(written))]
        expect(not apart, f"taximeter-sidecar and inject --beside={beside} {flags}, secret {secret!r}: {apart}")


def check_examples(sets):
    """Examples can stand beside each other: no two have an object of one name, and no two select the same pods."""
    examples = {name: things for name, things in sets.items() if name.startswith("example-")}
    for (name, things), (other, more) in itertools.combinations(examples.items(), 2):
        heads = [{(thing["kind"], thing["metadata"]["name"]) for thing in of} for of in (things, more)]
        expect(not (both := heads[0] & heads[1]), f"{name} and {other} both have {both}")
        policies = [[thing["spec"]["podSelector"] for thing in of if thing["kind"] == "NetworkPolicy"] for of in (things, more)]
        expect(not any(selector in policies[1] for selector in policies[0]), f"policies of {name} and {other} select the same pods")


def check_webhooks(sets):
    """The API server finds the webhook by a name that is on its certificate, and the program takes its flags."""
    for name in [*(f"webhook-{name}" for name in cases.WEBHOOK), "kustomize-webhook"]:
        things = sets[name]
        asked = one(things, "MutatingWebhookConfiguration")["webhooks"][0]
        service, pod = one(things, "Service"), rules.pod_of(one(things, "Deployment"))
        place = asked["clientConfig"]["service"]
        expect((place["name"], place["port"]) == (service["metadata"]["name"], service["spec"]["ports"][0]["port"]),
               f"{name}: the API server asks {place}")
        mounted = pod["volumes"][0]["secret"]["secretName"]
        made = [thing["spec"] for thing in things if thing["kind"] == "Certificate" and not thing["spec"].get("isCA")]
        expect([spec["secretName"] for spec in made] in ([], [mounted]), f"{name}: no certificate in {mounted}")
        for spec in made:
            expect(f"{place['name']}.{place['namespace']}.svc" in spec["dnsNames"], f"{name}: {spec['dnsNames']}")
        expect(bool(made) != ("caBundle" in asked["clientConfig"]), f"{name}: nobody says who signed")
        told = subprocess.run([os.environ["TAXIMETER_BINARY"], *pod["containers"][0]["args"]], capture_output=True, text=True,
                              check=False, timeout=60)
        # It has no certificate here.
        expect(told.returncode == 64 and "/tls/tls.crt" in told.stderr, f"{name}: {told.stderr}")


def waiting_keys(schema, path=""):
    """The keys that wait for a restart, by their paths; a map that waits as a whole stands for its keys."""
    for name, key in schema.get("properties", {}).items():
        if "restart" in key["$comment"]:
            yield path + name
        else:
            yield from waiting_keys(key, f"{path}{name}.")


def check_restarts():
    """The charts replace pods for each key that waits for a restart, and for no other."""
    schema = subprocess.run([os.environ["TAXIMETER_BINARY"], "schema"], capture_output=True, check=True).stdout
    waiting = list(waiting_keys(json.loads(schema)))
    expect("ledger" in waiting and "telemetry.otlp" in waiting, f"the schema names only {waiting}")
    # Those that the charts decide themselves never change.
    waiting = [key for key in waiting if key not in ("listen", "admin", "admin_tls", "data_dir")]
    expect(set(waiting) == set(cases.AT_START), f"tests/manifests/cases.py knows other keys than {waiting}")
    for folder, values, wrap in ((CHART, cases.ENGINE, lambda values: values),
                                 (INCLUDING, cases.BESIDE, lambda values: {"taximeter": values})):
        with loaded(folder) as chart:
            def template(config):
                things = render(chart, wrap({**values, "config": config}))
                return next(thing["spec"]["template"] for thing in things if rules.pod_of(thing) is not None)
            before = template({})
            for config in ({"tenants": {"unknown": "refuse"}}, {"prices": {"currency": "EUR"}}, {"receipts": True},
                           {"limits": {"body_bytes_max": 1}}, {"telemetry": {"access_log": "all"}}):
                expect(template(config) == before, f"{folder.name}: pods are made anew for {config}")
            for key, value in cases.AT_START.items():
                *outer, last = key.split(".")
                config = functools.reduce(lambda inner, name: {name: inner}, reversed(outer), {last: value})
                expect(template(config) != before, f"{folder.name}: pods are not made anew for {key}")
    return waiting


def map_with(things, key, name=None):
    """The ConfigMap that has a key; by its name where several have it."""
    return one([thing for thing in things if thing["kind"] == "ConfigMap" and key in thing["data"]], "ConfigMap", name)


def config_in(things, name=None):
    return yaml.safe_load(map_with(things, "taximeter.yaml", name)["data"]["taximeter.yaml"])


def check_files(sets):
    """What the charts take from elsewhere is what is there, and versions are the program's."""
    groups = yaml.safe_load((DEPLOY / "prometheus" / "taximeter.rules.yaml").read_text())
    for name in ("gateway-everything", "kustomize-gateway"):
        expect(one(sets[name], "PrometheusRule")["spec"] == groups, f"{name} has other rules than deploy/prometheus")
    built = subprocess.run([DEPLOY / "kustomize" / "components" / "rules" / "build", "-"], capture_output=True, text=True, check=True)
    committed = DEPLOY / "kustomize" / "components" / "rules" / "prometheusrule.yaml"
    expect(built.stdout == committed.read_text(), f"{committed} is not what build makes")
    dashboards = sorted((DEPLOY / "grafana").glob("*.json"))
    for file in dashboards:
        shown = one(sets["gateway-everything"], "ConfigMap", f"taximeter-{file.stem}")["data"]
        expect(json.loads(shown[f"taximeter-{file.name}"]) == json.loads(file.read_text()), f"the chart has another {file.name}")
    version = re.search(r'^version = "(.+)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
    for chart in ("taximeter", "taximeter-sidecar", "taximeter-webhook"):
        told = yaml.safe_load((DEPLOY / "helm" / chart / "Chart.yaml").read_text())
        expect((told["version"], told["appVersion"]) == (version, version), f"{chart}/Chart.yaml is not of {version}")
    schema = subprocess.run([os.environ["TAXIMETER_BINARY"], "schema"], capture_output=True, check=True).stdout
    done = subprocess.run([DEPLOY / "helm" / "schema", "--check"], input=schema, check=False)
    expect(done.returncode == 0, "the charts know other keys of the configuration: taximeter schema | deploy/helm/schema")
    images = {container["image"] for things in sets.values() for _, pod in pods(things) for container in rules.containers(pod)
              if container["name"] == "taximeter"}
    expect(all(f":{version}" in image or "@sha256:" in image for image in images), f"images of other versions: {images}")
    return f"{len(dashboards)} dashboards, {len(groups['groups'])} groups of rules"


def check_objectives(things):
    """Of the rules that other objectives are told to, the targets and bounds are theirs, and pages have an address."""
    both = yaml.safe_load((DEPLOY / "prometheus" / "taximeter.rules.yaml").read_text()), one(things, "PrometheusRule")["spec"]
    ours, theirs = ([rule for group in of["groups"] for rule in group["rules"]] for of in both)
    changed = {}
    for before, after in zip(ours, theirs, strict=True):
        if "alert" in before:
            page = pathlib.Path(before["annotations"]["runbook"]).name
            address = after["annotations"].pop("runbook_url", None)
            before["annotations"].pop("runbook_url")
            expect(address == f"https://runbooks.example/taximeter/{page}", f"{before['alert']} has its page at {address}")
        if before != after:
            changed[before["record"], before["labels"]["slo"]] = after["expr"]
            expect({**before, "expr": after["expr"]} == after, f"{before} has become {after}")
    for record in ("taximeter:slo_bad:total", "taximeter:slo_all:total"):
        for objective, ours, theirs in (("first_token", "0.25", "0.5"), ("availability", "7.5", "2.5")):
            bound = changed.pop((record, objective), "")
            expect(f'le="{theirs}"' in bound and f'le="{ours}"' not in bound, f"the bound of {objective} is in {bound}")
    targets = {("taximeter:slo_target:ratio", slo): f"vector({part})" for slo, part in (("first_token", 0.9), ("availability", 0.9995))}
    expect(changed == targets, f"of the rules these are others: {changed}")


def check_compose():
    """Whatever Docker Compose is to mount is there, and is said to be there."""
    folder = DEPLOY / "examples" / "compose"
    compose = yaml.safe_load((folder / "compose.yaml").read_text())
    for name, config in compose["configs"].items():
        expect("content" in config or (folder / config["file"]).is_file(), f"compose: no file for {name}")
    places = {}
    for name, service in compose["services"].items():
        if service["image"].startswith("taximeter:"):
            # No registry has it.
            made = folder / service["build"]["context"]
            expect(made.resolve() == ROOT and (made / service["build"]["dockerfile"]).is_file(), f"compose: nobody builds {name}")
        mounts = [volume.split(":")[:2] for volume in service.get("volumes", [])]
        for source, _ in mounts:
            expect((folder / source).exists() if source.startswith(".") else source in compose["volumes"], f"compose: no {source}")
        for config in service.get("configs", []):
            expect(config["source"] in compose["configs"], f"compose: no config {config['source']}")
        places[name] = {target for _, target in mounts} | {config["target"] for config in service.get("configs", [])}
    config = yaml.safe_load((folder / "taximeter.yaml").read_text())
    prometheus = yaml.safe_load((folder / "prometheus.yaml").read_text())
    engine = config["upstreams"][0]["url"].removeprefix("http://")
    scraped = prometheus["scrape_configs"][0]
    expect(engine == f"engine:{compose['services']['engine']['command'][1].rsplit(':', 1)[1]}", f"compose: no engine at {engine}")
    expect(scraped["static_configs"][0]["targets"] == [f"taximeter:{config['admin'].rsplit(':', 1)[1]}"], "compose: nothing to scrape")
    needed = {"taximeter": {config["data_dir"], config["admin_token"].removeprefix("${file:").removesuffix("}")},
              "prometheus": {scraped["authorization"]["credentials_file"],
                             *(f"/etc/prometheus/{file}" for file in prometheus["rule_files"])}}
    for name, paths in needed.items():
        expect(paths <= places[name], f"compose: {name} lacks {paths - places[name]}")


def check_values():
    """Each value stands below a word of what it means, and the schema knows it."""
    for file in DEPLOY.glob("helm/*/values.yaml"):
        lines = file.read_text().splitlines()
        found = {line.split(":")[0]: lines[at - 1] for at, line in enumerate(lines) if re.match(r"[A-Za-z]+:", line)}
        for name, above in found.items():
            expect(above.startswith("#"), f"{file}: nothing says what {name} is")
        schema = json.loads((file.parent / "values.schema.json").read_text())["properties"]
        expect(set(schema) == set(found) | {"global"}, f"{file} and its schema know other values")


def check_dockerfile():
    """hadolint finds nothing in how the image is made."""
    done = subprocess.run(["hadolint", DEPLOY / "image" / "Dockerfile"], capture_output=True, text=True, check=False)
    expect(done.returncode == 0, f"hadolint: {done.stdout}{done.stderr}")
    version = subprocess.run(["hadolint", "--version"], capture_output=True, text=True, check=True).stdout
    return version.strip().rsplit(" ", 1)[1]


def checkov(sets):
    """checkov over all that we ship; what is skipped says why in the manifest."""
    with tempfile.TemporaryDirectory() as folder:
        for name, things in sets.items():
            if name not in ("kustomize-pods", "kustomize-fleet"):    # what is beside the sidecar there is no example
                (pathlib.Path(folder) / f"{name}.yaml").write_text(yaml.safe_dump_all(things))
        done = subprocess.run(["checkov", "-d", folder, "--framework", "kubernetes", "--compact", "--quiet", "--skip-download",
                               "--output", "json"], capture_output=True, text=True, check=False)
    try:
        report = json.loads(done.stdout)
    except json.JSONDecodeError:
        return None, [f"checkov: {done.stdout}{done.stderr}"]
    failed = [f"checkov {check['check_id']} ({check['check_name']}): {check['file_path']} {check['resource']}"
              for check in report["results"]["failed_checks"]]
    return report["summary"], failed


def main():
    sets = charts()
    print(f"helm {helm.helm_sdk_version()}: {len(cases.GATEWAY)} gateways, {len(cases.SIDECAR)} sidecars and "
          f"{len(cases.WEBHOOK)} webhooks rendered and linted, "
          f"{len(cases.BAD_GATEWAY) + len(cases.BAD_SIDECAR) + len(cases.BAD_WEBHOOK)} bad values refused by name")
    for overlay in ("gateway", "pods", "fleet", "webhook"):
        sets[f"kustomize-{overlay}"] = kustomized(HERE / "overlays" / overlay)
    examples = sorted((DEPLOY / "examples" / "kubernetes").glob("*.yaml"))
    for file in examples:
        sets[f"example-{file.stem}"] = read(file.read_text())
    with concurrent.futures.ThreadPoolExecutor() as pool:
        searching = pool.submit(checkov, sets)
        # Each schema is read once, not once an object.
        kubernetes_validate.utils.schema_contents = functools.lru_cache(None)(kubernetes_validate.utils.schema_contents)
        shown = [thing for name, things in sets.items() if name.startswith("example-") for thing in things]
        configurations = 0
        for name, things in sets.items():
            check_schemas(name, things)
            configurations += check_configurations(name, things, shown if name.startswith("example-") else things)
        count = sum(map(len, sets.values()))
        print(f"kubernetes-validate: {count} objects, {versions()[0]} to {versions()[-1]}; Pod Security restricted")
        print(f"taximeter check: {configurations} configurations")
        check_sameness(sets)
        check_examples(sets)
        check_injected()
        check_webhooks(sets)
        check_values()
        print(f"helm lint refuses each of {check_kinds()} values by its key where it is of another kind")
        waiting = check_restarts()
        print(f"pods are made anew for what is read at a start ({len(waiting)} keys), and for nothing else")
        check_objectives(sets["gateway-own-objectives"])
        check_compose()
        print(f"hadolint {check_dockerfile()}: deploy/image/Dockerfile")
        print(f"the same in Helm, Kustomize and {len(examples)} examples: sidecars, gateways, {check_files(sets)}")
        summary, failed = searching.result()
    for failure in failed:
        expect(False, failure)
    if summary:
        print(f"checkov {summary['checkov_version']}: {summary['passed']} passed, {summary['skipped']} skipped with a reason")
    print(f"{len(wrong)} wrong" if wrong else "nothing is wrong")
    return 1 if wrong else 0


sys.exit(main())
