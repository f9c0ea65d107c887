{{/* Names, labels and the image. */}}

{{- define "keda-gpu-scaler.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* Not of the release's name: documents and dashboards name the DaemonSet. */}}
{{- define "keda-gpu-scaler.fullname" -}}
{{- coalesce .Values.fullnameOverride .Values.nameOverride .Chart.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "keda-gpu-scaler.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride -}}
{{- end -}}

{{/* Of cluster-wide objects. */}}
{{- define "keda-gpu-scaler.clusterName" -}}
{{- printf "%s-%s-%s" (include "keda-gpu-scaler.fullname" .) (include "keda-gpu-scaler.namespace" .) .Release.Name -}}
{{- end -}}

{{- define "keda-gpu-scaler.serviceName" -}}
{{- default .Chart.Name .Values.service.name -}}
{{- end -}}

{{- define "keda-gpu-scaler.hubName" -}}
{{- include "keda-gpu-scaler.fullname" . }}-hub
{{- end -}}

{{/* The headless Service of the agents. */}}
{{- define "keda-gpu-scaler.agentsName" -}}
{{- include "keda-gpu-scaler.fullname" . }}-agents
{{- end -}}

{{- define "keda-gpu-scaler.agentAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "keda-gpu-scaler.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "keda-gpu-scaler.hubAccount" -}}
{{- if .Values.hub.serviceAccount.create -}}
{{- default (include "keda-gpu-scaler.hubName" .) .Values.hub.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.hub.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* Which pods KEDA's Service selects. */}}
{{- define "keda-gpu-scaler.answers" -}}
{{- ternary "hub" "agent" .Values.hub.enabled -}}
{{- end -}}

{{/* (list $ component): of selectors, and so never to be changed. */}}
{{- define "keda-gpu-scaler.selector" -}}
{{- $ := index . 0 -}}
app.kubernetes.io/name: {{ include "keda-gpu-scaler.name" $ }}
app.kubernetes.io/instance: {{ $.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{/* (list $ component): metadata's labels; the component may be "". */}}
{{- define "keda-gpu-scaler.labels" -}}
{{- $ := index . 0 -}}
helm.sh/chart: {{ printf "%s-%s" $.Chart.Name $.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/name: {{ include "keda-gpu-scaler.name" $ }}
app.kubernetes.io/instance: {{ $.Release.Name }}
{{- with index . 1 }}
app.kubernetes.io/component: {{ . }}
{{- end }}
app.kubernetes.io/part-of: keda-gpu-scaler
app.kubernetes.io/version: {{ $.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $.Release.Service }}
{{- with $.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* (list $ component): of pods. No chart version: a new one alone is no reason to restart them. */}}
{{- define "keda-gpu-scaler.podLabels" -}}
{{- $ := index . 0 -}}
{{ include "keda-gpu-scaler.selector" . }}
app.kubernetes.io/part-of: keda-gpu-scaler
{{- with $.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* (list $ name component [labels] [annotations]): metadata of a namespaced object. */}}
{{- define "keda-gpu-scaler.metadata" -}}
{{- $ := index . 0 -}}
{{- $labels := include "keda-gpu-scaler.labels" (list $ (index . 2)) | fromYaml -}}
{{- $annotations := deepCopy $.Values.commonAnnotations -}}
{{- if gt (len .) 3 -}}{{- $labels = mergeOverwrite $labels (index . 3) -}}{{- end -}}
{{- if gt (len .) 4 -}}{{- $annotations = mergeOverwrite $annotations (index . 4) -}}{{- end -}}
name: {{ index . 1 }}
namespace: {{ include "keda-gpu-scaler.namespace" $ }}
labels: {{- toYaml $labels | nindent 2 }}
{{- with $annotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "keda-gpu-scaler.image" -}}
{{- $parts := splitList "/" .Values.image.repository -}}
{{- $host := index $parts 0 -}}
{{- $repository := .Values.image.repository -}}
{{- $hasHost := and (gt (len $parts) 1) (or (contains "." $host) (contains ":" $host) (eq $host "localhost")) -}}
{{- $registry := default .Values.image.registry .Values.global.imageRegistry -}}
{{- if and $registry (not $hasHost) -}}{{- $repository = printf "%s/%s" $registry $repository -}}{{- end -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" $repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" $repository (default .Chart.AppVersion .Values.image.tag | toString) -}}
{{- end -}}
{{- end -}}

{{- define "keda-gpu-scaler.pullSecrets" -}}
{{- with concat .Values.global.imagePullSecrets .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
