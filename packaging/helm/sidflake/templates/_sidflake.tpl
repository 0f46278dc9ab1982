{{/*
For the pods of charts that have this one among their dependencies. Each of these takes the context of
this chart, which is `.Subcharts.sidflake` there:

      annotations:
        {{- include "sidflake.annotations" .Subcharts.sidflake | nindent 8 }}
    spec:
      initContainers:
        - {{- include "sidflake.container" .Subcharts.sidflake | nindent 10 }}
      volumes:
        {{- include "sidflake.volumes" .Subcharts.sidflake | nindent 8 }}

deployment.yaml beside this file shows what else the pod needs: the securityContext with its fsGroup,
and sidflake-run among the volumeMounts of the application.
*/}}

{{/* The native sidecar, an item of initContainers. */}}
{{- define "sidflake.container" -}}
{{- $socket := first (concat .Values.config.listen.memcached .Values.config.listen.redis) | required "config.listen: memcached or redis needs an address" -}}
name: sidflake
{{- if .Values.image.digest }}
image: {{ printf "%s@%s" .Values.image.repository .Values.image.digest | quote }}
{{- else }}
image: {{ printf "%s:%v" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) | quote }}
{{- end }}
{{- with .Values.image.pullPolicy }}
imagePullPolicy: {{ . }}
{{- end }}
restartPolicy: Always
args: ["-c", "/etc/sidflake/sidflake.yaml"]
env:
  - name: POD_NAME
    valueFrom: {fieldRef: {fieldPath: metadata.name}}
ports:
  - {name: sidflake, containerPort: {{ include "sidflake.port" . }}}
# The application is started when an ID can be had.
startupProbe:
  exec:
    command: [/usr/bin/sidflakectl, ping, --connect, {{ regexReplaceAll "[?].*$" $socket "" | quote }}]
  periodSeconds: 1
  timeoutSeconds: 3
  failureThreshold: 120
# Only whether the loop turns: a restart does not bring a coordinator back.
livenessProbe:
  httpGet: {path: /livez, port: sidflake}
  periodSeconds: 10
  timeoutSeconds: 3
  failureThreshold: 6
{{- if .Values.readiness }}
readinessProbe:
  httpGet: {path: /readyz, port: sidflake}
  periodSeconds: 5
  timeoutSeconds: 2
{{- end }}
resources:
  {{- toYaml .Values.resources | nindent 2 }}
securityContext:
  {{- include "sidflake.confined" . | nindent 2 }}
volumeMounts:
  - {name: sidflake-run, mountPath: /run/sidflake}
  - {name: sidflake-config, mountPath: /etc/sidflake, readOnly: true}
  {{- if .Values.secret }}
  - {name: sidflake-secret, mountPath: /run/secrets/sidflake, readOnly: true}
  {{- end }}
{{- end }}

{{/* The volumes of the pod. */}}
{{- define "sidflake.volumes" -}}
- name: sidflake-run
  {{- toYaml .Values.runVolume | nindent 2 }}
- name: sidflake-config
  configMap: {name: {{ include "sidflake.name" . }}}
{{- with .Values.secret }}
- name: sidflake-secret
  secret: {secretName: {{ . }}, defaultMode: 0440}
{{- end }}
{{- end }}

{{/* For metadata.annotations of the pod: a change of the configuration rolls the pods. */}}
{{- define "sidflake.annotations" -}}
checksum/sidflake: {{ toYaml .Values.config | sha256sum }}
{{- end }}

{{- define "sidflake.name" -}}
{{ contains .Chart.Name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name .Chart.Name) | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "sidflake.confined" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "sidflake.port" -}}
{{- $http := first .Values.config.listen.http | required "config.listen.http: the probes need an address" -}}
{{ regexReplaceAll "[?].*$" $http "" | regexFind "[0-9]+$" }}
{{- end }}
