{{/* What makes and renews the certificates of tls.mode selfSigned. */}}

{{/* (list $ account): a Job's spec. */}}
{{- define "keda-gpu-scaler.certJob" -}}
{{- $ := index . 0 -}}
{{- $account := $.Values.tls.selfSigned.serviceAccount -}}
backoffLimit: 4
activeDeadlineSeconds: 280   # Helm waits for five minutes
template:
  metadata:
    labels: {{- include "keda-gpu-scaler.podLabels" (list $ "cert") | nindent 6 }}
  spec:
    serviceAccountName: {{ ternary (index . 1) (default "default" $account.name) $account.create }}
    automountServiceAccountToken: true
    enableServiceLinks: false
    restartPolicy: Never
{{- with include "keda-gpu-scaler.pullSecrets" $ | trim }}{{ . | nindent 4 }}{{- end }}
{{- with $.Values.hub.priorityClassName }}
    priorityClassName: {{ . }}
{{- end }}
    securityContext: {{- include "keda-gpu-scaler.podSecurity" (list "" dict) | nindent 6 }}
{{- with $.Values.hub.nodeSelector }}
    nodeSelector: {{- toYaml . | nindent 6 }}
{{- end }}
{{- with $.Values.hub.tolerations }}
    tolerations: {{- toYaml . | nindent 6 }}
{{- end }}
    containers:
      - name: cert
        image: {{ include "keda-gpu-scaler.image" $ }}
        imagePullPolicy: {{ $.Values.image.pullPolicy }}
        args: {{- include "keda-gpu-scaler.certArgs" $ | nindent 10 }}
        env:
          - {name: NVIDIA_VISIBLE_DEVICES, value: void}
        resources:
          requests: {cpu: 10m, memory: 16Mi}
          limits: {memory: 64Mi}
        securityContext: {{- include "keda-gpu-scaler.containerSecurity" (list "" nil dict) | nindent 10 }}
{{- end -}}

{{/* No certificate outlasts its authority, and the last third of its time is for renewal at least. */}}
{{- define "keda-gpu-scaler.certArgs" -}}
{{- $own := .Values.tls.selfSigned -}}
{{- $days := min ($own.certificateDays | int) (.Values.tls.validityDays | int) -}}
{{- $before := min (mul ($own.renewBeforeDays | int) 24) (div (mul $days 24) 3) -}}
- cert
- --namespace={{ include "keda-gpu-scaler.namespace" . }}
- --secret={{ include "keda-gpu-scaler.tlsSecret" . }}
- --ca-secret={{ include "keda-gpu-scaler.tlsSecret" . }}-ca
- --common-name={{ printf "%s.%s" (include "keda-gpu-scaler.fullname" .) (include "keda-gpu-scaler.namespace" .) | trunc 54 | trimSuffix "." }}
{{- range include "keda-gpu-scaler.tlsNames" . | fromYamlArray }}
- --name={{ . }}
{{- end }}
- --name=127.0.0.1
- --validity={{ mul $days 24 }}h
- --ca-validity={{ mul (.Values.tls.validityDays | int) 24 }}h
- --renew-before={{ $before }}h
{{- end -}}
