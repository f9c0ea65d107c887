{{/* Metrics pages of inference engines: flags, mounts and volumes. */}}

{{/* (list $ component) */}}
{{- define "keda-gpu-scaler.engineArgs" -}}
{{- $ := index . 0 -}}
{{- $engine := $.Values.engine -}}
- --engine-timeout={{ $engine.timeout }}
{{- if $engine.tls.insecure }}
- --engine-insecure
{{- else if and $engine.tls.secretName $engine.tls.caKey }}
- --engine-ca-file=/etc/keda-gpu-scaler/engine-tls/{{ $engine.tls.caKey }}
{{- end }}
{{- if eq (index . 1) "hub" }}
{{- if and $engine.tls.secretName $engine.tls.clientPair }}
- --engine-cert-file=/etc/keda-gpu-scaler/engine-tls/tls.crt
- --engine-key-file=/etc/keda-gpu-scaler/engine-tls/tls.key
{{- end }}
{{- if $engine.token.enabled }}
- --engine-token-file=/etc/keda-gpu-scaler/engine-token/token
{{- if $engine.token.plain }}
- --engine-token-plain
{{- end }}
{{- end }}
{{- end }}
{{- range $engine.endpoints.allow }}
- --endpoint-allow={{ . }}
{{- end }}
{{- range $engine.endpoints.deny }}
- --endpoint-deny={{ . }}
{{- end }}
{{- end -}}

{{/* (list $ component): keys of the Secret that the component reads. */}}
{{- define "keda-gpu-scaler.engineKeys" -}}
{{- $tls := (index . 0).Values.engine.tls -}}
{{- $keys := list -}}
{{- if and $tls.secretName $tls.caKey (not $tls.insecure) -}}{{- $keys = append $keys $tls.caKey -}}{{- end -}}
{{- if and $tls.secretName $tls.clientPair (eq (index . 1) "hub") -}}{{- $keys = concat $keys (list "tls.crt" "tls.key") -}}{{- end -}}
{{- toYaml $keys -}}
{{- end -}}

{{- define "keda-gpu-scaler.engineMounts" -}}
{{- if include "keda-gpu-scaler.engineKeys" . | fromYamlArray }}
- {name: engine-tls, mountPath: /etc/keda-gpu-scaler/engine-tls, readOnly: true}
{{- end }}
{{- if and (eq (index . 1) "hub") (index . 0).Values.engine.token.enabled }}
- {name: engine-token, mountPath: /etc/keda-gpu-scaler/engine-token, readOnly: true}
{{- end }}
{{- end -}}

{{- define "keda-gpu-scaler.engineVolumes" -}}
{{- $engine := (index . 0).Values.engine -}}
{{- with include "keda-gpu-scaler.engineKeys" . | fromYamlArray }}
- name: engine-tls
  secret:
    secretName: {{ $engine.tls.secretName }}
    defaultMode: 288
    items:
{{- range . }}
      - {key: {{ . }}, path: {{ . }}}
{{- end }}
{{- end }}
{{- if and (eq (index . 1) "hub") $engine.token.enabled }}
- name: engine-token
  projected:
    defaultMode: 288
    sources:
      - serviceAccountToken: {path: token, audience: {{ $engine.token.audience | quote }}, expirationSeconds: {{ $engine.token.expirationSeconds }}}
{{- end }}
{{- end -}}
