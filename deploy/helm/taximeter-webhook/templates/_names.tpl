{{- /* The name of all that the chart makes. */}}
{{- define "taximeter-webhook.name" -}}
{{- $name := .Release.Name -}}
{{- if not (contains "taximeter-webhook" $name) }}{{ $name = printf "%s-taximeter-webhook" $name }}{{ end -}}
{{ .Values.fullnameOverride | default $name | trunc 52 | trimSuffix "-" }}
{{- end }}

{{- /* By what pods are found; these never change. */}}
{{- define "taximeter-webhook.selector" -}}
app.kubernetes.io/name: taximeter-webhook
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "taximeter-webhook.labels" -}}
{{ include "taximeter-webhook.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: webhook
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- with .Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* The head of an object: `include "taximeter-webhook.metadata" (list . suffix)`. */}}
{{- define "taximeter-webhook.metadata" -}}
{{- $root := index . 0 -}}
name: {{ include "taximeter-webhook.name" $root }}{{ index . 1 }}
namespace: {{ $root.Release.Namespace }}
labels:
  {{- include "taximeter-webhook.labels" $root | nindent 2 }}
{{- end }}

{{- /* The Secret with certificate and key. */}}
{{- define "taximeter-webhook.secret" -}}
{{ .Values.certificate.existingSecret | default (printf "%s-tls" (include "taximeter-webhook.name" .)) }}
{{- end }}
