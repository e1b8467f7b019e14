{{- /* What a gateway's pod and a sidecar have in common. The gateway's chart has this very file. */}}

{{- /* The image: of .image, with .tag where it has no tag of its own. */}}
{{- define "taximeter.pod.image" -}}
{{- $image := .image -}}
{{- if $image.digest -}}
{{ $image.repository }}{{ with $image.tag }}:{{ . }}{{ end }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag | default .tag }}
{{- end -}}
{{- end }}

{{- /* Whose pod it is: for `resource` in the configuration, and for OTEL_RESOURCE_ATTRIBUTES. */}}
{{- define "taximeter.pod.env" -}}
- name: K8S_POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: K8S_POD_UID
  valueFrom: {fieldRef: {fieldPath: metadata.uid}}
- name: K8S_NAMESPACE_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
- name: K8S_NODE_NAME
  valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
- name: OTEL_RESOURCE_ATTRIBUTES
  value: k8s.pod.name=$(K8S_POD_NAME),k8s.pod.uid=$(K8S_POD_UID),k8s.namespace.name=$(K8S_NAMESPACE_NAME),k8s.node.name=$(K8S_NODE_NAME)
{{- end }}

{{- /* The same on every record. */}}
{{- define "taximeter.pod.resource" -}}
k8s.pod.name: ${env:K8S_POD_NAME}
k8s.namespace.name: ${env:K8S_NAMESPACE_NAME}
k8s.node.name: ${env:K8S_NODE_NAME}
{{- end }}

{{- /* By the admin address; both paths ask for no token, and neither waits for an engine. A long journal takes its time
at the start. */}}
{{- define "taximeter.pod.probes" -}}
{{- $scheme := ternary ", scheme: HTTPS" "" (not (empty .admin.tls.secret)) -}}
startupProbe:
  httpGet: {path: /healthz, port: admin{{ $scheme }}}
  periodSeconds: 1
  failureThreshold: 600
readinessProbe:
  httpGet: {path: /readyz, port: admin{{ $scheme }}}
  periodSeconds: 5
livenessProbe:
  httpGet: {path: /healthz, port: admin{{ $scheme }}}
  periodSeconds: 10
  failureThreshold: 6
{{- end }}

{{- /* Of a PodMonitor, the one endpoint; with what stands under `admin` and `podMonitor` in the values, the Secret of the
token, and a name that is on the certificate. */}}
{{- define "taximeter.pod.scraped" -}}
- port: admin
  path: /metrics
  interval: {{ .podMonitor.interval }}
  {{- with .admin.tls.secret }}
  scheme: https
  tlsConfig:
    {{- $ours := dict "serverName" $.host "ca" (dict "secret" (dict "name" . "key" "ca.crt")) }}
    {{- toYaml ($.podMonitor.tlsConfig | default $ours) | nindent 4 }}
  {{- end }}
  authorization:
    credentials: {name: {{ .token }}, key: {{ .admin.secretKey }}}
  relabelings:
    # The rules know gateways by a job that has "taximeter" in its name.
    - {targetLabel: job, replacement: taximeter}
{{- end }}

{{- /* What the admin address is secured with, where a Secret has it. */}}
{{- define "taximeter.pod.adminTls" -}}
cert: /run/secrets/taximeter-tls/tls.crt
key: /run/secrets/taximeter-tls/tls.key
{{- with .clientCa }}
client_ca: /run/secrets/taximeter-tls/{{ . }}
{{- end }}
{{- end }}

{{- /* Pod Security `restricted`, and nothing to write to but the data. */}}
{{- define "taximeter.pod.securityContext" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- /* How many bytes of bodies are held at once: a quarter of the memory, or 1 GiB where it has no limit. */}}
{{- define "taximeter.pod.bodies" -}}
{{- $memory := dig "limits" "memory" "4Gi" . -}}
{{- $units := dict "" 1 "k" 1000 "M" 1000000 "G" 1000000000 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 -}}
{{- $number := regexFind "^[0-9]+" $memory -}}
{{ div (mul (int64 $number) (get $units (trimPrefix $number $memory))) 4 }}
{{- end }}

{{- /* How many bytes the data directory may take: nine tenths of a volume of this size. */}}
{{- define "taximeter.pod.room" -}}
{{- $units := dict "" 1 "m" 0.001 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "E" 1e18 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 "Pi" 1125899906842624 "Ei" 1152921504606846976 -}}
{{- $number := regexFind "^[0-9.]+" . -}}
{{ mulf (float64 $number) (get $units (trimPrefix $number .) | float64) 0.9 | int64 }}
{{- end }}

{{- /* The keys of a configuration that wait for a restart. A pod template with their checksum gets new pods when they change.
The gateway reads all other keys again while it runs. deploy/helm/schema writes these lines. */}}
{{- define "taximeter.pod.atStart" -}}
{{- $whole := pick . "admin" "admin_tls" "data_dir" "export" "ledger" "listen" "resource" "tls" "workers" -}}
{{- $limits := pick (.limits | default dict) "ledger_queue_bytes_max" "ledger_segment_bytes" "series_per_metric_max" -}}
{{- $telemetry := pick (.telemetry | default dict) "genai" "native_histograms" "otlp" "scope_labels" "tenants_max" "traces" -}}
{{- toJson (merge (dict "limits" $limits "telemetry" $telemetry) $whole) -}}
{{- end }}
