{{/*
The parts of a pod that the API and the workers share. They take root, component (a label), and the values that each part names.
*/}}

{{- define "inference.podMetadata" -}}
labels:
  {{- include "inference.labels" .root | nindent 2 }}
  app.kubernetes.io/component: {{ .component }}
  {{- with .pool }}
  inference/pool: {{ . }}
  {{- end }}
  {{- with .root.Values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
annotations:
  # A changed ConfigMap causes the pods to be replaced.
  checksum/config: {{ toJson .root.Values.config | sha256sum }}
  {{- with .root.Values.podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* Also takes selector (labels) and seconds (of the grace period). */}}
{{- define "inference.podSpec" -}}
serviceAccountName: {{ include "inference.serviceAccount" .root }}
automountServiceAccountToken: false
enableServiceLinks: false
terminationGracePeriodSeconds: {{ .seconds }}
securityContext:
  runAsNonRoot: true
  # The user `node` of the image.
  runAsUser: 1000
  runAsGroup: 1000
  fsGroup: 1000
  seccompProfile: { type: RuntimeDefault }
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.topologyKeys }}
topologySpreadConstraints:
  {{- range . }}
  - topologyKey: {{ . }}
    maxSkew: 1
    whenUnsatisfiable: ScheduleAnyway
    matchLabelKeys: [pod-template-hash]
    labelSelector:
      matchLabels:
        {{- $.selector | nindent 8 }}
  {{- end }}
{{- end }}
volumes:
  - name: tmp
    emptyDir: { sizeLimit: {{ .tmpSize | quote }} }
  {{- with .root.Values.catalog.configMap }}
  - name: catalog
    configMap: { name: {{ . | quote }} }
  {{- end }}
{{- end }}

{{- define "inference.container" -}}
image: {{ include "inference.image" .root | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
volumeMounts:
  - { name: tmp, mountPath: /tmp }
  {{- if .root.Values.catalog.configMap }}
  - { name: catalog, mountPath: /etc/inference/catalog, readOnly: true }
  {{- end }}
envFrom:
  - configMapRef: { name: {{ include "inference.name" .root }} }
{{- end }}

{{- define "inference.env" -}}
- { name: METRICS_PORT, value: "9464" }
- { name: METRICS_HOST, value: "0.0.0.0" }
{{- if .root.Values.catalog.file }}
- { name: CATALOG_FILE, value: {{ printf "/etc/inference/catalog/%s" .root.Values.catalog.file | quote }} }
{{- end }}
{{- if .root.Values.catalog.overlay }}
- { name: CATALOG_OVERLAY, value: {{ printf "/etc/inference/catalog/%s" .root.Values.catalog.overlay | quote }} }
{{- end }}
{{- include "inference.secrets" .root.Values.secrets.all }}
{{- with .root.Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}
