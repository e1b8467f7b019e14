{{- /* The configuration file: the chart's own keys, and under them what the values say. */}}
{{- define "taximeter.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- if .Values.upstream -}}
{{- $_ := set $config "upstreams" (list (dict "name" "upstream" "url" .Values.upstream)) -}}
{{- else if not $config.upstreams -}}
{{- fail "upstream: what does the gateway stand before? Give the URL of an engine, such as http://vllm.models.svc:8000, or config.upstreams" -}}
{{- end -}}
{{- $ours := dict
  "listen" (printf "%s:8080" .Values.address)
  "admin" (printf "%s:9464" .Values.address)
  "admin_token" "${file:/run/secrets/taximeter/token}"
  "data_dir" "/var/lib/taximeter"
  "ledger" (dict "dir_bytes_max" (include "taximeter.pod.room" .Values.persistence.size | int64))
  "resource" (include "taximeter.pod.resource" . | fromYaml)
  "limits" (dict "drain_grace_seconds" (int .Values.drainGraceSeconds) "drain_seconds" (int .Values.drainSeconds) "bodies_total_bytes_max" (include "taximeter.pod.bodies" .Values.resources | int64))
-}}
{{- if and .Values.config.tenants .Values.requestsPerTenantMax -}}
{{- $_ := set $ours.limits "requests_per_tenant_max" (int .Values.requestsPerTenantMax) -}}
{{- end -}}
{{- if .Values.admin.tls.secret -}}
{{- $_ := set $ours "admin_tls" (include "taximeter.pod.adminTls" .Values.admin.tls | fromYaml) -}}
{{- end -}}
{{- toYaml (mergeOverwrite $ours $config) -}}
{{- end }}
