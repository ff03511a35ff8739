{{- define "inference.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}
{{- end -}}
{{- end }}

{{- define "inference.instance" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "inference.labels" -}}
{{ include "inference.instance" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "inference.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (include "inference.name" .) }}
{{- end }}

{{- define "inference.image" -}}
{{- $repository := required "image.repository is required: your build of the image" .Values.image.repository -}}
{{- if .Values.image.digest -}}
{{ $repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ $repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{/* Helm reads large numbers as floating point, and would write 2147483648 as 2.147483648e+09. */}}
{{- define "inference.text" -}}
{{- if and (kindIs "float64" .) (eq (float64 (int64 .)) .) -}}
{{ int64 . }}
{{- else -}}
{{ . }}
{{- end -}}
{{- end }}

{{/*
The margin of 30 seconds covers a worker, which takes 2 seconds to stop taking jobs and twice 10 to settle (the API: 11), and
starting and closing.
*/}}
{{- define "inference.shutdownSeconds" -}}
{{- add 30 (float64 .Values.config.DRAIN_GRACE | ceil | int64) -}}
{{- end }}

{{/* The settings of one pool, merged over those of `worker`. Takes root and pool. */}}
{{- define "inference.pool" -}}
{{- mergeOverwrite (deepCopy .root.Values.worker) (deepCopy (index .root.Values.pools .pool)) | toYaml -}}
{{- end }}

{{/* Takes a map of variable names to references of Secrets. */}}
{{- define "inference.secrets" -}}
{{- range $variable, $from := . }}
- name: {{ $variable }}
  valueFrom: { secretKeyRef: { name: {{ $from.name | quote }}, key: {{ $from.key | quote }} } }
{{- end }}
{{- end }}
