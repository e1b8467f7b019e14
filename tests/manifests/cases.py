"""Values that the charts are rendered with, and values that they must refuse."""

DIGEST = "sha256:" + "0123456789abcdef" * 4
ENGINE = {"upstream": "http://vllm.models.svc:8000", "image": {"digest": DIGEST}}
STORE = {"store": "postgres://taximeter:${file:/run/secrets/bills/password}@db.data.svc/bills?sslmode=require"}
POSTGRES = {"config": {"ledger": STORE}, "secrets": [{"name": "bills"}]}
ENGINES = {"upstreams": [{"name": "local", "url": "http://vllm.models.svc:8000", "dialect": "vllm"}]}
BESIDE = {"image": {"digest": DIGEST}}
TOKEN = {"secret": "taximeter-admin", "secretKey": "admin.token"}

# Of the gateway's chart, by what each is.
GATEWAY = {
    "one-engine": ENGINE,
    "everything": {
        **ENGINE, "replicas": 3, "podMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        "prometheusRule": {"enabled": True, "labels": {"release": "prometheus"}},
        "dashboards": {"enabled": True, "annotations": {"folder": "LLM"}}, "autoscaling": {"enabled": True},
        "labels": {"team": "platform"}, "podLabels": {"cost": "llm"}, "podAnnotations": {"note": "yes"},
        "priorityClassName": "high", "nodeSelector": {"pool": "cpu"}, "tolerations": [{"operator": "Exists"}],
        "affinity": {"podAntiAffinity": {}}, "imagePullSecrets": [{"name": "registry"}],
    },
    "own-objectives": {
        **ENGINE, "prometheusRule": {
            "enabled": True, "targets": {"first_token": 0.9, "availability": 0.9995}, "bounds": {"first_token": 0.5, "availability": 2.5},
            "runbooks": "https://runbooks.example/taximeter/",
        },
    },
    "postgres": {
        **ENGINE, "replicas": 3, **POSTGRES,
    },
    "deployment": {**ENGINE, "kind": "Deployment", "replicas": 2, **POSTGRES},
    "deployment-scaled": {
        **ENGINE, "kind": "Deployment", **POSTGRES,
        "autoscaling": {"enabled": True, "minReplicas": 1, "maxReplicas": 40, "requestsOpenPerPod": 50},
    },
    "daemonset": {**ENGINE, "kind": "DaemonSet", **POSTGRES},
    "trial": {**ENGINE, "kind": "Deployment", "persistence": {"mayBeLost": True}},
    "own-secret": {
        **ENGINE, "admin": {"existingSecret": "taximeter-admin", "secretKey": "admin.token"},
        "podMonitor": {"enabled": True, "interval": "10s"},
    },
    "private": {
        **ENGINE, "admin": {"tls": {"secret": "taximeter-tls", "clientCa": "ca.crt"}}, "podMonitor": {"enabled": True},
    },
    "private-to-whomever": {
        **ENGINE, "admin": {"tls": {"secret": "taximeter-tls"}},
        "podMonitor": {"enabled": True, "tlsConfig": {"insecureSkipVerify": True}},
    },
    "providers": {
        "image": {"repository": "registry.example:5000/taximeter", "tag": "0.1.0", "digest": DIGEST, "pullPolicy": "Always"},
        "secrets": [{"name": "provider-keys"}], "env": [{"name": "REGION", "value": "eu"}],
        "config": {
            "upstreams": [
                {"name": "anthropic", "url": "https://api.anthropic.com", "dialect": "anthropic", "models": ["claude-*"],
                 "credential": "${file:/run/secrets/provider-keys/anthropic}"},
                {"name": "openai", "url": "https://api.openai.com/v1", "dialect": "openai",
                 "credential": "${file:/run/secrets/provider-keys/openai}"},
            ],
            "tenants": {"unknown": "refuse", "keys": [{"id": "acme", "tenant": "acme", "sha256": "6f1e0c2f" * 8}]},
            "prices": {"unknown": "refuse", "currency": "EUR", "exchange": [{"from": "USD", "rate": 0.92}]},
            "resource": {"cloud.region": "${env:REGION}"},
            "limits": {"body_bytes_max": 16777216},
        },
    },
    "closed": {
        **ENGINE,
        "networkPolicy": {
            "clients": [{"namespaceSelector": {"matchLabels": {"llm": "yes"}}}],
            "monitoring": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}],
            "egress": [{"to": [{"podSelector": {"matchLabels": {"app": "vllm"}}}], "ports": [{"port": 8000}]}],
        },
    },
    "without": {
        **ENGINE, "networkPolicy": {"enabled": False}, "podDisruptionBudget": {"enabled": False}, "drainGraceSeconds": 0,
    },
    "ipv6": {**ENGINE, "address": "[::]"},
    "exposed": {
        **ENGINE, "service": {"type": "LoadBalancer", "port": 80, "annotations": {"internal": "true"}},
        "podDisruptionBudget": {"maxUnavailable": "50%"}, "fullnameOverride": "llm-gateway",
        "serviceAccount": {"annotations": {"role": "exporter"}},
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}],
    },
    "volumes": {
        **ENGINE, "drainSeconds": 600, "resources": {"requests": {"cpu": 2, "memory": "512Mi"}, "limits": {"memory": "4G"}},
        "volumes": [{"name": "prices", "configMap": {"name": "prices"}}],
        "volumeMounts": [{"name": "prices", "mountPath": "/etc/prices", "readOnly": True}],
        "persistence": {"size": "500Gi", "storageClass": "fast", "accessModes": ["ReadWriteOncePod"],
                        "whenDeleted": "Delete", "whenScaled": "Delete"},
    },
}

# Of a chart that includes the sidecar.
SIDECAR = {
    "engine": BESIDE,
    "engine-watched": {**BESIDE, "admin": TOKEN, "podMonitor": {"enabled": True, "labels": {"release": "prometheus"}}},
    "engine-private": {
        **BESIDE, "admin": {**TOKEN, "tls": {"secret": "taximeter-tls", "clientCa": "ca.crt"}}, "podMonitor": {"enabled": True},
    },
    "engine-like-the-example": {
        **BESIDE, "admin": {"secret": "taximeter-admin"}, **POSTGRES,
    },
    "engine-like-the-example-behind-a-gateway": {
        **BESIDE, "admin": {"secret": "taximeter-admin"}, **POSTGRES, "secrets": [*POSTGRES["secrets"], {"name": "pooled-vllm-key"}],
    },
    "engine-elsewhere": {**BESIDE, "enginePort": 30000, "drainSeconds": 20, "persistence": {"claim": "journal"}},
    "engine-with-keys": {
        **BESIDE, "env": [{"name": "OTEL_SERVICE_NAME", "value": "llm"}],
        "config": {"upstreams": [{"name": "e", "url": "http://127.0.0.1:8000", "usage": "continuous"}],
                   "tenants": {"keys": [{"id": "acme", "tenant": "acme", "sha256": "6f1e0c2f" * 8}]}},
    },
    "application": {**BESIDE, "beside": "application"},
    "application-watched": {**BESIDE, "beside": "application", "admin": {"secret": "taximeter-admin"}},
    "application-of-a-team": {
        **BESIDE, "beside": "application", "upstream": "https://api.anthropic.com",
        "tenant": {"fieldPath": "metadata.labels['team']"},
    },
    "application-like-the-example": {
        **BESIDE, "beside": "application", "admin": {"secret": "taximeter-admin"}, **POSTGRES,
    },
    "application-by-name": {
        **BESIDE, "beside": "application", "tenant": {"name": "checkout"}, **POSTGRES,
    },
}

# Of the webhook's chart.
WEBHOOK = {
    "cert-manager": BESIDE,
    "own-certificate": {
        **BESIDE, "certificate": {"existingSecret": "webhook-tls", "caBundle": "-----BEGIN CERTIFICATE-----\nMA==\n"},
    },
    "applications": {
        **BESIDE, "sidecar": {"beside": "application", "tenant": "label:team", "adminSecret": "taximeter-admin",
                              "configMap": "meter", "image": "registry.example/taximeter:0.1.0",
                              "fleet": True, "memory": "1G", "cpu": "0.5", "drainSeconds": 20, "journalSize": "4Gi"},
        "webhook": {"failurePolicy": "Fail", "timeoutSeconds": 10,
                    "namespaceSelector": {"matchLabels": {"llm": "yes"},
                                          "matchExpressions": [{"key": "env", "operator": "In", "values": ["prod"]}]},
                    "objectSelector": {"matchLabels": {"taximeter.io/inject": "true"}}},
    },
    "placed": {
        **BESIDE, "replicas": 3, "labels": {"team": "platform"}, "fullnameOverride": "llm-webhook",
        "priorityClassName": "system-cluster-critical", "nodeSelector": {"pool": "cpu"},
        "tolerations": [{"operator": "Exists"}], "affinity": {"podAntiAffinity": {}},
        "imagePullSecrets": [{"name": "registry"}], "networkPolicy": {"enabled": False},
        "podDisruptionBudget": {"enabled": False},
    },
}

# Settings of the sidecar, as a chart and as `taximeter inject` are told them: none, and all that both take.
INJECTED = [
    ({}, []),
    ({"resources": {"requests": {"cpu": "200m", "memory": "64Mi"}, "limits": {"memory": "1Gi"}}, "drainSeconds": 20,
      "persistence": {"size": "4Gi"}},
     ["--cpu=200m", "--memory=1Gi", "--drain-seconds=20", "--journal-size=4Gi"]),
    ({"config": {"fleet": {}}}, ["--fleet"]),
]

# What deploy/kustomize/webhook is with the image of tests/manifests/overlays.
KUSTOMIZED_WEBHOOK = {"image": {"repository": "registry.example/taximeter", "digest": DIGEST}}

# Values that Helm refuses, linting too, and the key that it must name.
BAD_GATEWAY = [
    ({"upstream": "vllm:8000"}, "/upstream"),
    ({**ENGINE, "config": ENGINES}, "/config/upstreams"),
    ({**ENGINE, "upstrem": "x"}, "upstrem"),
    ({**ENGINE, "kind": "Pod"}, "/kind"),
    ({**ENGINE, "prometheusRule": {"targets": {"first_token": 95}}}, "/prometheusRule/targets/first_token"),
    ({**ENGINE, "prometheusRule": {"bounds": {"duration": 30}}}, "/prometheusRule/bounds/duration"),
    ({**ENGINE, "kind": "Deployment"}, "'ledger'"),
    ({**ENGINE, "kind": "DaemonSet", "config": {"ledger": {"store": "sqlite"}}}, "/config/ledger/store"),
    ({**ENGINE, "kind": "DaemonSet", "persistence": {"mayBeLost": True}, "autoscaling": {"enabled": True}},
     "/autoscaling/enabled"),
    ({**ENGINE, "replicas": "two"}, "/replicas"),
    ({**ENGINE, "image": {"repository": "", "tag": "x"}}, "/image/repository"),
    ({**ENGINE, "image": {"digest": "0123"}}, "/image/digest"),
    ({**ENGINE, "address": "127.0.0.1"}, "/address"),
    ({**ENGINE, "config": {"listen": "0.0.0.0:80"}}, "/config/listen"),
    ({**ENGINE, "config": {"admin_token": "secret"}}, "/config/admin_token"),
    ({**ENGINE, "config": {"admin_tls": {"cert": "a"}}}, "/config/admin_tls"),
    ({**ENGINE, "admin": {"tls": {"clientCa": "ca.crt"}}}, "/admin/tls/secret"),
    ({**ENGINE, "admin": {"tls": {"secret": "a", "clientCa": "../ca.crt"}}}, "/admin/tls/clientCa"),
    ({**ENGINE, "config": {"limits": {"drain_seconds": 1}}}, "/config/limits/drain_seconds"),
    ({**ENGINE, "config": {"limits": {"drain_grace_seconds": 1}}}, "/config/limits/drain_grace_seconds"),
    ({**ENGINE, "config": {"recipts": "off"}}, "recipts"),
    ({**ENGINE, "config": {"limits": {"body_bytes": 1}}}, "body_bytes"),
    ({**ENGINE, "config": {"ledger": {"durability": "later"}}}, "/config/ledger/durability"),
    ({"config": {"upstreams": [{"name": "a", "url": "http://a", "dialct": "vllm"}]}}, "dialct"),
    ({**ENGINE, "requestsPerTenantMax": -1}, "/requestsPerTenantMax"),
    ({**ENGINE, "drainGraceSeconds": -1}, "/drainGraceSeconds"),
    ({**ENGINE, "drainSeconds": 0}, "/drainSeconds"),
    ({**ENGINE, "persistence": {"size": "10 GB"}}, "/persistence/size"),
    ({**ENGINE, "persistence": {"whenScaled": "Keep"}}, "/persistence/whenScaled"),
    ({**ENGINE, "resources": {"limits": {"memory": "1.5Gi"}}}, "/resources/limits/memory"),
    ({**ENGINE, "resources": {"limits": {"memory": "64Mi"}}}, "/resources/limits/memory"),
    ({**ENGINE, "service": {"port": 70000}}, "/service/port"),
    ({**ENGINE, "service": {"nodePort": 1}}, "nodePort"),
    ({**ENGINE, "autoscaling": {"enabled": True, "requestsOpenPerPod": 0}}, "/autoscaling/requestsOpenPerPod"),
    ({**ENGINE, "networkPolicy": {"clients": [{"namespace": "a"}]}}, "namespace"),
    ({**ENGINE, "podMonitor": {"interval": "often"}}, "/podMonitor/interval"),
    ({**ENGINE, "secrets": ["bills"]}, "/secrets/0"),
    ({**ENGINE, "labels": {"a": 1}}, "/labels/a"),
]
BAD_SIDECAR = [
    ({"beside": "database"}, "/beside"),
    ({"besides": "engine"}, "besides"),
    ({"enginePort": 8080}, "/enginePort"),
    ({"tenant": {"fieldPath": "status.podIP"}}, "/tenant/fieldPath"),
    ({"config": {"admin": "0.0.0.0:1"}}, "/config/admin"),
    ({"config": {"tenants": {"unknwn": "refuse"}}}, "unknwn"),
    ({"config": {"telemetry": {"access_log": "some"}}}, "/config/telemetry/access_log"),
    ({"podMonitor": {"enabled": True}}, "/admin/secret"),
    ({"config": {"admin_tls": {"cert": "a"}}}, "/config/admin_tls"),
    ({"admin": {"tls": {"secret": "a"}}}, "/admin/secret"),
    ({"admin": {"secret": "a", "tls": {"clientCa": "ca.crt"}}}, "/admin/tls/secret"),
    ({"upstream": "https://a.example", "config": ENGINES}, "/config/upstreams"),
    ({"persistence": {"size": "much"}}, "/persistence/size"),
    ({"resources": {"limits": {"memory": "100M"}}}, "/resources/limits/memory"),
]

BAD_WEBHOOK = [
    ({"replicas": 0}, "/replicas"),
    ({"sidecar": {"beside": "database"}}, "/sidecar/beside"),
    ({"sidecar": {"tenant": "label:"}}, "/sidecar/tenant"),
    ({"sidecar": {"memory": "1.5Gi"}}, "/sidecar/memory"),
    ({"sidecar": {"cpu": "half"}}, "/sidecar/cpu"),
    ({"sidecar": {"drainSeconds": 0}}, "/sidecar/drainSeconds"),
    ({"sidecar": {"journalSize": "much"}}, "/sidecar/journalSize"),
    ({"webhook": {"failurePolicy": "Retry"}}, "/webhook/failurePolicy"),
    ({"webhook": {"timeoutSeconds": 60}}, "/webhook/timeoutSeconds"),
    ({"webhook": {"rules": []}}, "rules"),
    ({"certificate": {"existingSecret": "webhook-tls"}}, "/certificate/caBundle"),
    ({"certificate": {"caBundle": "MIIB"}}, "/certificate/caBundle"),
    ({"image": {"digest": "0123"}}, "/image/digest"),
    ({"resources": {"limits": {"memory": "much"}}}, "/resources/limits/memory"),
    ({"podDisruptionBudget": {"maxUnavailable": "half"}}, "/podDisruptionBudget/maxUnavailable"),
]

# For each key that is read at a start only, something that it may be.
AT_START = {
    "tls": {"cert": "tls.crt", "key": "tls.key"}, "workers": 3, "ledger": {"durability": "os"},
    "export": {"push": {"url": "http://receiver.models.svc"}}, "resource": {"cloud.region": "eu"},
    "telemetry.genai": "latest", "telemetry.tenants_max": 7, "telemetry.scope_labels": "on",
    "telemetry.native_histograms": "on", "telemetry.otlp": {"endpoint": "http://collector:4318"},
    "telemetry.traces": {"ratio": 1}, "limits.ledger_queue_bytes_max": 100000000, "limits.ledger_segment_bytes": 2000000,
    "limits.series_per_metric_max": 700,
}

# A pod that nobody meters yet.
PLAIN = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: plain}
spec:
  selector: {matchLabels: {app: plain}}
  template:
    metadata: {labels: {app: plain}}
    spec:
      automountServiceAccountToken: false
      securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
      containers:
        - name: plain
          image: registry.example/plain:1.0
          ports: [{name: http, containerPort: 8000}]
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: {drop: [ALL]}
"""
