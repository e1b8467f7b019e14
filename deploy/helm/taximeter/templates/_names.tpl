{{- /* The name of all that the chart makes. */}}
{{- define "taximeter.name" -}}
{{- $name := .Release.Name -}}
{{- if not (contains "taximeter" $name) }}{{ $name = printf "%s-taximeter" $name }}{{ end -}}
{{ .Values.fullnameOverride | default $name | trunc 52 | trimSuffix "-" }}
{{- end }}

{{- /* By what pods are found; these never change. */}}
{{- define "taximeter.selector" -}}
app.kubernetes.io/name: taximeter
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "taximeter.labels" -}}
{{ include "taximeter.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: gateway
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- with .Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* The head of an object: `include "taximeter.metadata" (list . suffix)`. */}}
{{- define "taximeter.metadata" -}}
{{- $root := index . 0 -}}
name: {{ include "taximeter.name" $root }}{{ index . 1 }}
namespace: {{ $root.Release.Namespace }}
labels:
  {{- include "taximeter.labels" $root | nindent 2 }}
{{- end }}

{{- /* The Secret with the admin token. */}}
{{- define "taximeter.adminSecret" -}}
{{ .Values.admin.existingSecret | default (printf "%s-admin" (include "taximeter.name" .)) }}
{{- end }}

{{- /* Whether bills outlive pods in PostgreSQL. */}}
{{- define "taximeter.hasPostgres" -}}
{{- if ne "sqlite" (dig "ledger" "store" "sqlite" .Values.config) }}yes{{ end -}}
{{- end }}
