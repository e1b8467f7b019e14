"""What a manifest may say: Pod Security `restricted`, and the fields of objects that Kubernetes itself does not know.

Pure: objects in, faults out. Sources: the Pod Security Standards; the types of prometheus-operator, cert-manager, KEDA and
the Gateway API, of which only the fields stand here that a manifest of ours may use.
"""

# What a field holds: a type, a set of words, a list of one shape, a dict of fields. Names with ! must be there.
ANY, TEXT, NUMBER, TRUTH, TEXTS = object(), str, int, bool, {"*": str}
LABELS = {"matchLabels": TEXTS, "matchExpressions": [{"key!": TEXT, "operator!": {"In", "NotIn", "Exists", "DoesNotExist"},
                                                      "values": [TEXT]}]}
SECRET_KEY = {"name!": TEXT, "key!": TEXT, "optional": TRUTH}
RELABELING = {"sourceLabels": [TEXT], "separator": TEXT, "targetLabel": TEXT, "regex": TEXT, "modulus": NUMBER,
              "replacement": TEXT, "action": TEXT}
SHAPES = {
    "monitoring.coreos.com/v1 PodMonitor": {
        "jobLabel": TEXT, "podTargetLabels": [TEXT], "selector!": LABELS, "sampleLimit": NUMBER,
        "namespaceSelector": {"any": TRUTH, "matchNames": [TEXT]},
        "podMetricsEndpoints!": [{
            "port!": TEXT, "path": TEXT, "scheme": TEXT, "interval": TEXT, "scrapeTimeout": TEXT, "honorLabels": TRUTH,
            "relabelings": [RELABELING], "metricRelabelings": [RELABELING], "authorization": {
                "type": TEXT, "credentials!": SECRET_KEY},
            "tlsConfig": {"serverName": TEXT, "insecureSkipVerify": TRUTH, "ca": {"secret": SECRET_KEY},
                          "cert": {"secret": SECRET_KEY}, "keySecret": SECRET_KEY},
        }],
    },
    "monitoring.coreos.com/v1 PrometheusRule": {
        "groups!": [{
            "name!": TEXT, "interval": TEXT, "limit": NUMBER, "query_offset": TEXT, "labels": TEXTS,
            "rules!": [{"record": TEXT, "alert": TEXT, "expr!": TEXT, "for": TEXT, "keep_firing_for": TEXT,
                        "labels": TEXTS, "annotations": TEXTS}],
        }],
    },
    "cert-manager.io/v1 Issuer": {"selfSigned": {"crlDistributionPoints": [TEXT]}, "ca": {"secretName!": TEXT}},
    "cert-manager.io/v1 Certificate": {
        "secretName!": TEXT, "issuerRef!": {"name!": TEXT, "kind": {"Issuer", "ClusterIssuer"}, "group": TEXT},
        "isCA": TRUTH, "commonName": TEXT, "dnsNames": [TEXT], "duration": TEXT, "renewBefore": TEXT, "usages": [TEXT],
        "privateKey": {"algorithm": {"RSA", "ECDSA", "Ed25519"}, "size": NUMBER, "rotationPolicy": {"Always", "Never"},
                       "encoding": TEXT},
    },
    "keda.sh/v1alpha1 ScaledObject": {
        "scaleTargetRef!": {"apiVersion": TEXT, "kind": TEXT, "name!": TEXT}, "minReplicaCount": NUMBER,
        "maxReplicaCount": NUMBER, "idleReplicaCount": NUMBER, "pollingInterval": NUMBER, "cooldownPeriod": NUMBER,
        "advanced": {"horizontalPodAutoscalerConfig": {"behavior": {"scaleUp": ANY, "scaleDown": ANY}}},
        "triggers!": [{
            "type!": {"prometheus"}, "metricType": {"AverageValue", "Value"}, "metadata!": {
                "serverAddress!": TEXT, "query!": TEXT, "threshold!": TEXT, "activationThreshold": TEXT, "namespace": TEXT,
                "ignoreNullValues": {"true", "false"}, "timeout": TEXT, "authModes": TEXT, "unsafeSsl": TEXT},
        }],
    },
    "inference.networking.k8s.io/v1 InferencePool": {
        "selector!": {"matchLabels!": TEXTS}, "targetPorts!": [{"number!": NUMBER}],
        "appProtocol": {"http", "kubernetes.io/h2c"},
        "endpointPickerRef!": {"group": TEXT, "kind": TEXT, "name!": TEXT, "port": {"number!": NUMBER},
                               "failureMode": {"FailOpen", "FailClose"}},
    },
    "gateway.networking.k8s.io/v1 HTTPRoute": {
        "parentRefs!": [{"name!": TEXT, "namespace": TEXT, "sectionName": TEXT}], "hostnames": [TEXT],
        "rules!": [{
            "matches": ANY, "timeouts": {"request": TEXT, "backendRequest": TEXT},
            "filters": [{"type!": {"RequestHeaderModifier"}, "requestHeaderModifier!": {
                "set": [{"name!": TEXT, "value!": TEXT}], "add": [{"name!": TEXT, "value!": TEXT}], "remove": [TEXT]}}],
            "backendRefs": [{"group": TEXT, "kind": TEXT, "name!": TEXT, "port": NUMBER}],
        }],
    },
}
VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
TEMPLATED = {"Deployment", "StatefulSet", "DaemonSet", "Job", "ReplicaSet"}


def unlike(value, shape, place):
    """Where a value is not of its shape."""
    if shape is ANY:
        return
    if isinstance(shape, set):
        if value not in shape:
            yield f"{place} is {value!r}, none of {sorted(shape)}"
    elif isinstance(shape, type):
        if not isinstance(value, shape) or (shape is int and isinstance(value, bool)):
            yield f"{place} is {value!r}, no {shape.__name__}"
    elif isinstance(shape, list):
        if not isinstance(value, list):
            yield f"{place} is no list"
            return
        for at, item in enumerate(value):
            yield from unlike(item, shape[0], f"{place}[{at}]")
    elif not isinstance(value, dict):
        yield f"{place} is no object"
    else:
        fields = {name.rstrip("!"): of for name, of in shape.items()}
        for name in (name[:-1] for name in shape if name.endswith("!")):
            if name not in value:
                yield f"{place}.{name} is not there"
        for name, item in value.items():
            of = fields.get(name, fields.get("*"))
            if of is None:
                yield f"{place}.{name} is unknown"
            else:
                yield from unlike(item, of, f"{place}.{name}")


def custom(thing):
    """Faults of an object whose kind Kubernetes does not have itself; None where we do not know it either."""
    shape = SHAPES.get(f"{thing['apiVersion']} {thing['kind']}")
    return None if shape is None else list(unlike(thing.get("spec"), shape, "spec"))


def pod_of(thing):
    """The pod's spec that an object has within it, if any."""
    if thing["kind"] == "Pod":
        return thing["spec"]
    return thing["spec"]["template"]["spec"] if thing["kind"] in TEMPLATED else None


def containers(pod):
    return pod.get("initContainers", []) + pod["containers"]


def restricted(pod):
    """What Pod Security `restricted` refuses of a pod, and a root that can be written to."""
    whole = pod.get("securityContext", {})
    for name in ("hostNetwork", "hostPID", "hostIPC"):
        if pod.get(name):
            yield name
    for volume in pod.get("volumes", []):
        if set(volume) - {"name"} - VOLUMES:
            yield f"volume {volume}"
    for container in containers(pod):
        own = container.get("securityContext", {})
        seccomp = own.get("seccompProfile", whole.get("seccompProfile", {}))
        kept = {
            "privileged": not own.get("privileged"),
            "allowPrivilegeEscalation": own.get("allowPrivilegeEscalation") is False,
            "capabilities": "ALL" in own.get("capabilities", {}).get("drop", [])
                            and set(own["capabilities"].get("add", [])) <= {"NET_BIND_SERVICE"},
            "runAsNonRoot": own.get("runAsNonRoot", whole.get("runAsNonRoot")) is True,
            "runAsUser": own.get("runAsUser", whole.get("runAsUser")) != 0,
            "seccompProfile": seccomp.get("type") in ("RuntimeDefault", "Localhost"),
            "procMount": own.get("procMount", "Default") == "Default",
            "hostPort": not any("hostPort" in port for port in container.get("ports", [])),
            "readOnlyRootFilesystem": own.get("readOnlyRootFilesystem") is True,
        }
        yield from (f"{container['name']}: {name}" for name, good in kept.items() if not good)


def bytes_of(quantity):
    """Bytes of a quantity such as 1Gi."""
    units = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
    number = quantity.rstrip("kKMGTi")
    return float(number) * units[quantity.removeprefix(number)]
