{{/* What follows from the values for agents alone. "true" or "" stand for a condition. */}}

{{- define "keda-gpu-scaler.isMock" -}}
{{- if .Values.mockMode.enabled -}}true{{- end -}}
{{- end -}}

{{- define "keda-gpu-scaler.hasOwners" -}}
{{- if and .Values.agent.owners.enabled (not .Values.mockMode.enabled) -}}true{{- end -}}
{{- end -}}

{{- define "keda-gpu-scaler.hasProcesses" -}}
{{- if and (or .Values.agent.hostPID .Values.agent.hostProc) (not .Values.mockMode.enabled) -}}true{{- end -}}
{{- end -}}

{{- define "keda-gpu-scaler.hasHostMounts" -}}
{{- if and .Values.nvmlHostMounts.enabled (not .Values.mockMode.enabled) -}}true{{- end -}}
{{- end -}}

{{- define "keda-gpu-scaler.isRoot" -}}
{{- if or (include "keda-gpu-scaler.hasOwners" .) (include "keda-gpu-scaler.hasProcesses" .) (include "keda-gpu-scaler.hasHostMounts" .) (and .Values.agent.migMonitor (not .Values.mockMode.enabled)) -}}true{{- end -}}
{{- end -}}

{{- define "keda-gpu-scaler.runtimeClass" -}}
{{- if not .Values.mockMode.enabled -}}
{{- if ne (.Values.runtimeClassName | default "" | toString) "auto" -}}
{{- .Values.runtimeClassName -}}
{{- else if and .Values.clusterLookups (not .Values.nvmlHostMounts.enabled) (lookup "node.k8s.io/v1" "RuntimeClass" "" "nvidia") -}}
nvidia
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Labels that say: this node has an NVIDIA GPU. Of NFD, GFD and the GPU Operator, then of clouds. */}}
{{- define "keda-gpu-scaler.gpuLabels" -}}
- {key: nvidia.com/gpu.present, operator: In, values: ["true"]}
- {key: nvidia.com/gpu.product, operator: Exists}
- {key: feature.node.kubernetes.io/pci-10de.present, operator: In, values: ["true"]}
- {key: feature.node.kubernetes.io/pci-0300_10de.present, operator: In, values: ["true"]}
- {key: feature.node.kubernetes.io/pci-0302_10de.present, operator: In, values: ["true"]}
- {key: feature.node.kubernetes.io/cpu-model.vendor_id, operator: In, values: [NVIDIA]}
- {key: cloud.google.com/gke-accelerator, operator: Exists}
- {key: k8s.amazonaws.com/accelerator, operator: Exists}
- {key: eks.amazonaws.com/instance-gpu-manufacturer, operator: In, values: [nvidia]}
- {key: karpenter.k8s.aws/instance-gpu-manufacturer, operator: In, values: [nvidia]}
- {key: kubernetes.azure.com/accelerator, operator: In, values: [nvidia]}
{{- end -}}

{{/* The user's own placement replaces ours: nodes that somebody labelled by hand need not carry any of these labels. */}}
{{- define "keda-gpu-scaler.affinity" -}}
{{- if .Values.affinity -}}
{{- toYaml .Values.affinity -}}
{{- else if not (or .Values.nodeSelector .Values.mockMode.enabled) -}}
nodeAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    nodeSelectorTerms:
{{- range include "keda-gpu-scaler.gpuLabels" . | fromYamlArray }}
      - matchExpressions: {{- toYaml (list .) | nindent 10 }}
{{- end }}
{{- end -}}
{{- end -}}

{{- define "keda-gpu-scaler.nvmlLibrary" -}}
{{- if .Values.mockMode.enabled -}}
{{- .Values.mockMode.library -}}
{{- else if .Values.agent.nvmlLibrary -}}
{{- .Values.agent.nvmlLibrary -}}
{{- else if include "keda-gpu-scaler.hasHostMounts" . -}}
{{- .Values.nvmlHostMounts.nvmlLib -}}
{{- end -}}
{{- end -}}

{{- define "keda-gpu-scaler.agentArgs" -}}
- agent
{{ include "keda-gpu-scaler.commonArgs" (list . "agent") }}
- --health-check-interval={{ .Values.healthCheckInterval }}
- --sample-interval={{ .Values.agent.sampleInterval }}
- --slow-interval={{ .Values.agent.slowInterval }}
- --pod-resources={{ if include "keda-gpu-scaler.hasOwners" . }}{{ trimSuffix "/" .Values.agent.kubeletDir }}/pod-resources/kubelet.sock{{ end }}
{{- if include "keda-gpu-scaler.hasProcesses" . }}
- --procfs={{ ternary "/proc" "/host/proc" .Values.agent.hostPID }}
{{- end }}
{{- with include "keda-gpu-scaler.nvmlLibrary" . }}
- --nvml-library={{ . }}
{{- end }}
{{- if not .Values.exporter.dcgmNames }}
- --dcgm-metrics=false
{{- end }}
{{- with .Values.agent.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "keda-gpu-scaler.agentEnv" -}}
{{ include "keda-gpu-scaler.commonEnv" . }}
{{- if .Values.mockMode.enabled }}
- {name: NVIDIA_VISIBLE_DEVICES, value: void}
- {name: NVMLSIM_SCENARIO, value: /etc/keda-gpu-scaler/scenario/scenario.yaml}
{{- else }}
- {name: NVIDIA_VISIBLE_DEVICES, value: all}
- {name: NVIDIA_DRIVER_CAPABILITIES, value: utility}
{{- if .Values.agent.migMonitor }}
- {name: NVIDIA_MIG_MONITOR_DEVICES, value: all}
{{- end }}
{{- end }}
{{- with .Values.agent.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Pairs of a mount and its volume, so that neither is forgotten. */}}
{{- define "keda-gpu-scaler.agentHostPaths" -}}
{{- $v := .Values -}}
{{- if include "keda-gpu-scaler.hasOwners" . }}
- {name: pod-resources, host: {{ trimSuffix "/" $v.agent.kubeletDir }}/pod-resources, type: Directory}
{{- end }}
{{- if include "keda-gpu-scaler.hasProcesses" . }}
- {name: pod-logs, host: /var/log/pods, type: Directory}
- {name: container-logs, host: /var/log/containers, type: DirectoryOrCreate}
{{- if not $v.agent.hostPID }}
- {name: host-proc, host: /proc, mount: /host/proc, type: Directory}
{{- end }}
{{- end }}
{{- if include "keda-gpu-scaler.hasHostMounts" . }}
{{- with $v.nvmlHostMounts.nvidiactl }}
- {name: nvidiactl, host: {{ . }}, type: CharDevice, writable: true}
{{- end }}
{{- with $v.nvmlHostMounts.nvidiaUvm }}
- {name: nvidia-uvm, host: {{ . }}, type: CharDevice, writable: true}
{{- end }}
{{- with $v.nvmlHostMounts.driverDir }}
- {name: driver, host: {{ . }}, mount: {{ ternary "/run/nvidia/driver" "/usr/local/nvidia" (hasPrefix "/run/nvidia/driver" .) }}, type: Directory}
{{- end }}
{{- if $v.nvmlHostMounts.nvmlLib }}
- {name: nvml, host: {{ $v.nvmlHostMounts.nvmlLib }}, type: File}
{{- else if not (hasPrefix "/run/nvidia/driver" $v.nvmlHostMounts.driverDir) }}
- {name: host-usr, host: /usr, mount: /run/nvidia/driver/usr, type: Directory}
{{- end }}
{{- end }}
{{- end -}}
