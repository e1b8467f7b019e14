{{- /* Native sidecar. Each template is given (dict "root" $ "values" <settings>); values.yaml says how. */}}

{{- /* The entry of initContainers. */}}
{{- define "taximeter.sidecar" -}}
{{- $values := .values -}}
{{- $engine := eq $values.beside "engine" -}}
- name: taximeter
  image: {{ include "taximeter.pod.image" (dict "image" $values.image "tag" $values.image.tag) }}
  imagePullPolicy: {{ $values.image.pullPolicy }}
  # Runs as long as the pod does: it starts before the main containers and ends after them.
  restartPolicy: Always
  args: [serve, --config=/etc/taximeter/taximeter.yaml]
  env:
    {{- include "taximeter.pod.env" . | nindent 4 }}
    {{- if not $engine }}
    - name: TAXIMETER_TENANT
      {{- if $values.tenant.name }}
      value: {{ $values.tenant.name | quote }}
      {{- else }}
      valueFrom: {fieldRef: {fieldPath: {{ $values.tenant.fieldPath | quote }}}}
      {{- end }}
    {{- end }}
    {{- if not $values.admin.secret }}
    # What the probes ask, whatever the file says of it.
    - {name: TAXIMETER_ADMIN, value: "127.0.0.1:9464"}
    {{- end }}
    {{- with $values.env }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- if or $engine $values.admin.secret }}
  ports:
    {{- if $engine }}
    - {name: http, containerPort: 8080}
    {{- end }}
    {{- if $values.admin.secret }}
    - {name: admin, containerPort: 9464}
    {{- end }}
  {{- end }}
  {{- if $values.admin.secret }}
  {{- include "taximeter.pod.probes" (dict "admin" $values.admin) | nindent 2 }}
  {{- else }}
  # Its admin address is on the pod's loopback, where only the container itself can ask.
  startupProbe:
    exec: {command: [/taximeter, healthy]}
    timeoutSeconds: 5
    periodSeconds: 1
    failureThreshold: 600
  readinessProbe:
    exec: {command: [/taximeter, healthy, --ready]}
    timeoutSeconds: 5
    periodSeconds: 5
  livenessProbe:
    exec: {command: [/taximeter, healthy]}
    timeoutSeconds: 5
    periodSeconds: 10
    failureThreshold: 6
  {{- end }}
  resources:
    {{- toYaml $values.resources | nindent 4 }}
  securityContext:
    {{- include "taximeter.pod.securityContext" . | nindent 4 }}
  volumeMounts:
    - {name: taximeter-config, mountPath: /etc/taximeter, readOnly: true}
    - {name: taximeter-data, mountPath: /var/lib/taximeter}
    {{- if $values.admin.secret }}
    - {name: taximeter-admin, mountPath: /run/secrets/taximeter, readOnly: true}
    {{- end }}
    {{- if hasKey $values.config "fleet" }}
    - {name: taximeter-pod, mountPath: /run/taximeter/pod, readOnly: true}
    {{- end }}
    {{- if $values.admin.tls.secret }}
    - {name: taximeter-tls, mountPath: /run/secrets/taximeter-tls, readOnly: true}
    {{- end }}
    {{- range $values.secrets }}
    - {name: taximeter-{{ .name }}, mountPath: /run/secrets/{{ .name }}, readOnly: true}
    {{- end }}
{{- end }}

{{- /* Entries of the pod's volumes. */}}
{{- define "taximeter.sidecar.volumes" -}}
{{- $values := .values -}}
- name: taximeter-config
  configMap: {name: {{ include "taximeter.sidecar.name" . }}}
- name: taximeter-data
  {{- with $values.persistence.claim }}
  persistentVolumeClaim: {claimName: {{ . }}}
  {{- else }}
  emptyDir: {sizeLimit: {{ $values.persistence.size }}}
  {{- end }}
{{- with $values.admin.secret }}
- name: taximeter-admin
  secret:
    secretName: {{ . }}
    items: [{key: {{ $values.admin.secretKey }}, path: token}]
{{- end }}
{{- if hasKey $values.config "fleet" }}
# Kubernetes writes the pod's annotations there, again when they change.
- name: taximeter-pod
  downwardAPI: {items: [{path: annotations, fieldRef: {fieldPath: metadata.annotations}}]}
{{- end }}
{{- with $values.admin.tls.secret }}
- name: taximeter-tls
  secret: {secretName: {{ . }}}
{{- end }}
{{- range $values.secrets }}
- name: taximeter-{{ .name }}
  secret: {secretName: {{ .name }}}
{{- end }}
{{- end }}

{{- /* Labels of the pod: what PodMonitors select, of all pods or of this chart's. */}}
{{- define "taximeter.sidecar.labels" -}}
taximeter.io/sidecar: {{ .values.beside }}
taximeter.io/name: {{ include "taximeter.sidecar.name" . }}
{{- end }}

{{- /* Annotations of the pod: it is made anew when what is read at a start changes. */}}
{{- define "taximeter.sidecar.annotations" -}}
taximeter.io/config-at-start: {{ include "taximeter.pod.atStart" (include "taximeter.sidecar.config" . | fromYaml) | sha256sum }}
{{- end }}

{{- /* Entries of env, for an application whose client reads them. */}}
{{- define "taximeter.sidecar.client" -}}
- name: OPENAI_BASE_URL
  value: http://127.0.0.1:8080/v1
- name: ANTHROPIC_BASE_URL
  value: http://127.0.0.1:8080
{{- end }}

{{- /* Objects beside the pod. */}}
{{- define "taximeter.sidecar.objects" -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include "taximeter.sidecar.name" . }}
  namespace: {{ .root.Release.Namespace }}
data:
  taximeter.yaml: |
    {{- include "taximeter.sidecar.config" . | nindent 4 }}
{{- if .values.podMonitor.enabled }}
---
apiVersion: monitoring.coreos.com/v1
kind: PodMonitor
metadata:
  name: {{ include "taximeter.sidecar.name" . }}
  namespace: {{ .root.Release.Namespace }}
  {{- with .values.podMonitor.labels }}
  labels:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  selector:
    matchLabels:
      taximeter.io/name: {{ include "taximeter.sidecar.name" . }}
  podMetricsEndpoints:
    {{- $host := printf "%s.%s.svc" (include "taximeter.sidecar.name" .) .root.Release.Namespace }}
    {{- $of := dict "admin" .values.admin "podMonitor" .values.podMonitor "token" .values.admin.secret "host" $host }}
    {{- include "taximeter.pod.scraped" $of | nindent 4 }}
{{- end }}
{{- end }}

{{- define "taximeter.sidecar.name" -}}
{{ .root.Release.Name }}-taximeter
{{- end }}

{{- /* The configuration file: what `beside` chooses, and over it what the settings say. */}}
{{- define "taximeter.sidecar.config" -}}
{{- $values := .values -}}
{{- $ours := dict
  "data_dir" "/var/lib/taximeter"
  "resource" (include "taximeter.pod.resource" . | fromYaml)
  "limits" (dict "drain_seconds" (int $values.drainSeconds) "bodies_total_bytes_max" (include "taximeter.pod.bodies" $values.resources | int64))
-}}
{{- if not $values.persistence.claim -}}
{{- $_ := set $ours "ledger" (dict "dir_bytes_max" (include "taximeter.pod.room" $values.persistence.size | int64)) -}}
{{- end -}}
{{- if $values.admin.secret -}}
{{- $_ := set $ours "admin" "0.0.0.0:9464" -}}
{{- $_ := set $ours "admin_token" "${file:/run/secrets/taximeter/token}" -}}
{{- end -}}
{{- if hasKey $values.config "fleet" -}}
{{- $_ := set $ours "fleet" (dict "annotations" "/run/taximeter/pod/annotations") -}}
{{- end -}}
{{- if $values.admin.tls.secret -}}
{{- $_ := set $ours "admin_tls" (include "taximeter.pod.adminTls" $values.admin.tls | fromYaml) -}}
{{- end -}}
{{- if eq $values.beside "engine" -}}
{{- $_ := set $ours "listen" "0.0.0.0:8080" -}}
{{- $url := $values.upstream | default (printf "http://127.0.0.1:%d" (int $values.enginePort)) -}}
{{- $_ := set $ours "upstreams" (list (dict "name" "engine" "url" $url)) -}}
{{- else -}}
{{- $_ := set $ours "listen" "127.0.0.1:8080" -}}
{{- $anthropic := dict "name" "anthropic" "url" "https://api.anthropic.com" "dialect" "anthropic" "models" (list "claude-*") "forward_credential" true -}}
{{- $openai := dict "name" "openai" "url" "https://api.openai.com/v1" "dialect" "openai" "forward_credential" true -}}
{{- $given := dict "name" "provider" "url" $values.upstream "forward_credential" true -}}
{{- $_ := set $ours "upstreams" (not (empty $values.upstream) | ternary (list $given) (list $anthropic $openai)) -}}
{{- $_ := set $ours "tenants" (dict "unknown" "${env:TAXIMETER_TENANT}") -}}
{{- $_ := set $ours "receipts" false -}}
{{- end -}}
{{- toYaml (mergeOverwrite $ours $values.config) -}}
{{- end }}
