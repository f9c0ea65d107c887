{{/* What agents' and hubs' pods have in common, and what follows from the values. "true" or "" stand for a condition. */}}

{{- define "keda-gpu-scaler.isMetricsMap" -}}
{{- if kindIs "map" .Values.metrics -}}true{{- end -}}
{{- end -}}

{{- define "keda-gpu-scaler.metricsPort" -}}
{{- $port := .Values.exporter.port -}}
{{- $enabled := .Values.exporter.enabled -}}
{{- if include "keda-gpu-scaler.isMetricsMap" . -}}
{{- if hasKey .Values.metrics "port" -}}{{- $port = .Values.metrics.port -}}{{- end -}}
{{- if hasKey .Values.metrics "enabled" -}}{{- $enabled = .Values.metrics.enabled -}}{{- end -}}
{{- end -}}
{{- ternary ($port | int) 0 (and $enabled (gt ($port | int) 0)) -}}
{{- end -}}

{{- define "keda-gpu-scaler.builtInMetrics" -}}
- {name: gpu_memory_used, type: Utilization, targetValue: 80, aggregation: max, gpuIndex: -1}
- {name: gpu_utilization, type: Utilization, targetValue: 70, aggregation: avg, gpuIndex: -1}
{{- end -}}

{{/* `metrics:` of the configuration file: the user's entries laid by index over the built-in ones. Where the user has none,
     Helm may have put null: `--set metrics[1].targetValue=85` makes a list whose first entry is null. */}}
{{- define "keda-gpu-scaler.metrics" -}}
{{- $given := list -}}
{{- if kindIs "slice" .Values.metrics -}}{{- $given = .Values.metrics -}}{{- end -}}
{{- $builtIn := include "keda-gpu-scaler.builtInMetrics" . | fromYamlArray -}}
{{- $names := dict -}}
{{- range $given -}}
{{- if and . .name -}}{{- $_ := set $names (lower .name) true -}}{{- end -}}
{{- end -}}
{{- $all := list -}}
{{- range $i := until (max (len $given) (len $builtIn) | int) -}}
{{- $entry := dict -}}
{{- $default := dict -}}
{{- if lt $i (len $given) -}}{{- $entry = index $given $i | default dict -}}{{- end -}}
{{- if lt $i (len $builtIn) -}}{{- $default = index $builtIn $i -}}{{- end -}}
{{- if and $default.name (ne (lower (default $default.name $entry.name)) $default.name) -}}{{- $default = dict -}}{{- end -}}
{{- $isTaken := and (not $entry.name) $default.name (hasKey $names $default.name) -}}
{{- $isOff := eq (get $entry "enabled" | toString) "false" -}}
{{- $whole := omit (mergeOverwrite (deepCopy $default) $entry) "enabled" -}}
{{- if not (or $isOff $isTaken) -}}
{{- if not $whole.name -}}{{- fail (printf "metrics[%d]: has no name, and there is no built-in entry at this place" $i) -}}{{- end -}}
{{- $all = append $all $whole -}}
{{- end -}}
{{- end -}}
{{- toYaml $all -}}
{{- end -}}

{{- define "keda-gpu-scaler.hasTls" -}}
{{- if not (has (.Values.tls.mode | toString) (list "off" "false")) -}}true{{- end -}}
{{- end -}}

{{- define "keda-gpu-scaler.tlsSecret" -}}
{{- if eq (.Values.tls.mode | toString) "secret" -}}
{{- required "tls.mode secret needs tls.secretName" .Values.tls.secretName -}}
{{- else -}}
{{- default (printf "%s-tls" (include "keda-gpu-scaler.fullname" .)) .Values.tls.secretName -}}
{{- end -}}
{{- end -}}

{{/* The name that the hub looks for in the agents' certificates, which the made certificates carry. */}}
{{- define "keda-gpu-scaler.tlsNames" -}}
{{- $ns := include "keda-gpu-scaler.namespace" . -}}
{{- range list (include "keda-gpu-scaler.serviceName" .) (include "keda-gpu-scaler.agentsName" .) }}
- {{ . }}
- {{ . }}.{{ $ns }}
- {{ . }}.{{ $ns }}.svc
- {{ . }}.{{ $ns }}.svc.cluster.local
{{- end }}
- localhost
{{- with .Values.tls.extraNames }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* (list $ component): flags that both programs have. */}}
{{- define "keda-gpu-scaler.commonArgs" -}}
{{- $ := index . 0 -}}
- --port={{ $.Values.grpc.port }}
- --metrics-port={{ include "keda-gpu-scaler.metricsPort" $ }}
- --probe-port={{ ternary $.Values.probes.port 0 $.Values.probes.enabled }}
- --log-level={{ $.Values.logLevel }}
- --log-format={{ $.Values.logFormat }}
{{- if not $.Values.grpc.reflection }}
- --grpc-reflection=false
{{- end }}
- --config=/etc/keda-gpu-scaler/config/{{ index . 1 }}.yaml
{{- if include "keda-gpu-scaler.hasTls" $ }}
- --tls-cert=/etc/keda-gpu-scaler/tls/tls.crt
- --tls-key=/etc/keda-gpu-scaler/tls/tls.key
{{- if $.Values.tls.clientCA.secretName }}
{{- if and (eq (index . 1) "agent") $.Values.hub.enabled }}
- --tls-client-ca=/etc/keda-gpu-scaler/tls/{{ $.Values.tls.caKey }}
{{- else }}
- --tls-client-ca=/etc/keda-gpu-scaler/client-ca/{{ $.Values.tls.clientCA.key }}
{{- end }}
{{- end }}
{{- if $.Values.tls.metrics }}
- --metrics-tls
{{- end }}
{{- end }}
{{ include "keda-gpu-scaler.engineArgs" . }}
{{- end -}}

{{- define "keda-gpu-scaler.commonEnv" -}}
- name: NODE_NAME
  valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: POD_NAMESPACE
  valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
{{- end -}}

{{- define "keda-gpu-scaler.ports" -}}
- {name: grpc, containerPort: {{ .Values.grpc.port }}}
{{- with include "keda-gpu-scaler.metricsPort" . | int }}
- {name: metrics, containerPort: {{ . }}}
{{- end }}
{{- if .Values.probes.enabled }}
- {name: health, containerPort: {{ .Values.probes.port }}}
{{- end }}
{{- end -}}

{{/* The probe port is plaintext whatever tls.mode says, and speaks gRPC as the others do. */}}
{{- define "keda-gpu-scaler.probes" -}}
{{- $probes := .Values.probes -}}
{{- if $probes.enabled -}}
{{- range $kind, $path := dict "liveness" "/livez" "readiness" "/readyz" }}
{{ $kind }}Probe:
{{- if eq $probes.type "grpc" }}
  grpc: {port: {{ $probes.port }}}
{{- else }}
  httpGet: {path: {{ $path }}, port: health}
{{- end }}
{{- toYaml (get $probes $kind) | nindent 2 }}
{{- end }}
{{- end }}
{{- end -}}

{{/* (list $ component) */}}
{{- define "keda-gpu-scaler.commonMounts" -}}
{{- $ := index . 0 -}}
- {name: config, mountPath: /etc/keda-gpu-scaler/config, readOnly: true}
{{- if include "keda-gpu-scaler.hasTls" $ }}
- {name: tls, mountPath: /etc/keda-gpu-scaler/tls, readOnly: true}
{{- if $.Values.tls.clientCA.secretName }}
- {name: client-ca, mountPath: /etc/keda-gpu-scaler/client-ca, readOnly: true}
{{- end }}
{{- end }}
{{- include "keda-gpu-scaler.engineMounts" . }}
{{- end -}}

{{/* (list $ component) */}}
{{- define "keda-gpu-scaler.commonVolumes" -}}
{{- $ := index . 0 -}}
- name: config
  configMap:
    name: {{ include "keda-gpu-scaler.fullname" $ }}
    items:
      - {key: {{ index . 1 }}.yaml, path: {{ index . 1 }}.yaml}
{{- if include "keda-gpu-scaler.hasTls" $ }}
- name: tls
  secret: {secretName: {{ include "keda-gpu-scaler.tlsSecret" $ }}, defaultMode: 288}
{{- with $.Values.tls.clientCA.secretName }}
- name: client-ca
  secret: {secretName: {{ . }}, defaultMode: 288}
{{- end }}
{{- end }}
{{- include "keda-gpu-scaler.engineVolumes" . }}
{{- end -}}

{{/* (list isRoot overrides): a pod's securityContext. */}}
{{- define "keda-gpu-scaler.podSecurity" -}}
{{- $context := dict "runAsNonRoot" true "runAsUser" 65532 "runAsGroup" 65532 -}}
{{- if index . 0 -}}{{- $context = dict "runAsNonRoot" false "runAsUser" 0 "runAsGroup" 0 -}}{{- end -}}
{{- $_ := set $context "fsGroup" 65532 -}}
{{- $_ := set $context "seccompProfile" (dict "type" "RuntimeDefault") -}}
{{- toYaml (mergeOverwrite $context (deepCopy (index . 1))) -}}
{{- end -}}

{{/* (list isPrivileged addedCapabilities overrides): a container's. The API refuses privileged beside
     allowPrivilegeEscalation: false, also where the values made it privileged. */}}
{{- define "keda-gpu-scaler.containerSecurity" -}}
{{- $context := dict "allowPrivilegeEscalation" false "readOnlyRootFilesystem" true "capabilities" (dict "drop" (list "ALL")) -}}
{{- if index . 1 -}}{{- $_ := set $context.capabilities "add" (index . 1) -}}{{- end -}}
{{- if index . 0 -}}{{- $_ := set $context "privileged" true -}}{{- end -}}
{{- $context = mergeOverwrite $context (deepCopy (index . 2)) -}}
{{- if $context.privileged -}}
{{- $context = omit $context "allowPrivilegeEscalation" "capabilities" -}}
{{- end -}}
{{- toYaml $context -}}
{{- end -}}
