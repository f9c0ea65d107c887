{{/* What will not work as somebody may expect, seen from values and, where there is one, the cluster. A YAML list. */}}

{{- define "keda-gpu-scaler.warnings" -}}
{{- $namespace := include "keda-gpu-scaler.namespace" . -}}
{{- $all := list -}}
{{- $isMock := .Values.mockMode.enabled -}}
{{- $hasTls := include "keda-gpu-scaler.hasTls" . -}}
{{- $hasCluster := and .Values.clusterLookups (lookup "v1" "Namespace" "" "kube-system") -}}
{{- if $isMock -}}
{{- $all = append $all "mockMode: every GPU is simulated. KEDA scales on made-up numbers." -}}
{{- else -}}
{{- if not .Values.agent.owners.enabled -}}
{{- $all = append $all "agent.owners.enabled=false: nobody knows which pods hold which GPUs, so triggers that measure a workload's own GPUs have no data." -}}
{{- end -}}
{{- end -}}
{{- if .Values.nvmlHostMounts.enabled -}}
{{- $all = append $all "nvmlHostMounts: agents are privileged. With the NVIDIA container toolkit they need not be." -}}
{{- end -}}
{{- if not .Values.hub.enabled -}}
{{- $all = append $all "hub.enabled=false: the Service leads to any one agent, which knows its own node only. On more than one GPU node that is not the load of a workload." -}}
{{- else if lt (.Values.hub.replicas | int) 2 -}}
{{- $all = append $all "hub.replicas=1: while it restarts, KEDA gets no values, and a ScaledObject that is created then gets no HPA at first." -}}
{{- end -}}
{{- if and $hasTls .Values.tls.clientCA.secretName (include "keda-gpu-scaler.metricsPort" . | int) (not .Values.tls.metrics) -}}
{{- $all = append $all "tls.clientCA: the metrics port answers KEDA's calls too, without TLS. Set tls.metrics=true or a networkPolicy." -}}
{{- end -}}
{{- if and $hasTls .Values.tls.clusterTriggerAuthentication (ne $namespace "keda") -}}
{{- $all = append $all (printf "tls.clusterTriggerAuthentication: KEDA looks for its Secret in KEDA's own namespace, and it is in %s." $namespace) -}}
{{- end -}}
{{- if .Values.engine.tls.insecure -}}
{{- $all = append $all "engine.tls.insecure: https pages of engines are believed whoever answers." -}}
{{- end -}}
{{- if and .Values.engine.token.enabled .Values.engine.token.plain -}}
{{- $all = append $all "engine.token.plain: the hub's token goes over the network as plain text." -}}
{{- end -}}
{{- if and .Values.networkPolicy.enabled .Values.networkPolicy.egress.enabled .Values.hub.enabled (not .Values.networkPolicy.egress.engines.ports) -}}
{{- $all = append $all "networkPolicy.egress.engines.ports is empty: hubs cannot read pages of inference engines, so triggers that use them have no data." -}}
{{- end -}}
{{- if and .Values.podMonitor.enabled .Values.serviceMonitor.enabled -}}
{{- $all = append $all "podMonitor and serviceMonitor find the same pods: every series is stored twice." -}}
{{- end -}}
{{- if and $hasCluster (not (.Capabilities.APIVersions.Has "monitoring.coreos.com/v1")) -}}
{{- range $kind := list "podMonitor" "serviceMonitor" "prometheusRule" -}}
{{- $values := get $.Values $kind -}}
{{- if and $values.enabled (not $values.force) -}}
{{- $all = append $all (printf "%s was left out: the cluster does not have monitoring.coreos.com/v1." $kind) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if $hasCluster -}}
{{- $all = concat $all (include "keda-gpu-scaler.clusterWarnings" . | fromYamlArray) -}}
{{- end -}}
{{- toYaml $all -}}
{{- end -}}

{{/* Those that only a cluster can tell. */}}
{{- define "keda-gpu-scaler.clusterWarnings" -}}
{{- $namespace := include "keda-gpu-scaler.namespace" . -}}
{{- $all := list -}}
{{- if not (.Capabilities.APIVersions.Has "keda.sh/v1alpha1") -}}
{{- $all = append $all "KEDA is not installed: there is no keda.sh/v1alpha1." -}}
{{- end -}}
{{- $isPlaced := or .Values.mockMode.enabled .Values.nodeSelector .Values.affinity -}}
{{- if not $isPlaced -}}
{{- $found := 0 -}}
{{- range (lookup "v1" "Node" "" "").items -}}
{{- $labels := .metadata.labels | default dict -}}
{{- range include "keda-gpu-scaler.gpuLabels" $ | fromYamlArray -}}
{{- if and (hasKey $labels .key) (or (eq .operator "Exists") (has (get $labels .key) (.values | default list))) -}}{{- $found = 1 -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- if not $found -}}
{{- $all = append $all "no node carries a label of an NVIDIA GPU, so no agent runs yet: install Node Feature Discovery or the GPU Operator, label nodes nvidia.com/gpu.present=true, or set nodeSelector." -}}
{{- end -}}
{{- end -}}
{{- if not (or .Values.mockMode.enabled .Values.nvmlHostMounts.enabled) -}}
{{- $class := .Values.runtimeClassName | default "" -}}
{{- $name := ternary "nvidia" $class (eq $class "auto") -}}
{{- if and $name (not (lookup "node.k8s.io/v1" "RuntimeClass" "" $name)) -}}
{{- if eq $class "auto" -}}
{{- $all = append $all "there is no RuntimeClass nvidia, so agents use the nodes' default runtime. If that is not NVIDIA's, they find no driver: /readyz?verbose of an agent says so. Upgrade the release once the class is there." -}}
{{- else -}}
{{- $all = append $all (printf "there is no RuntimeClass %s: no agent will start until it exists." $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with lookup "v1" "Namespace" "" $namespace -}}
{{- $level := get (.metadata.labels | default dict) "pod-security.kubernetes.io/enforce" -}}
{{- $isRestrictedAgent := not (include "keda-gpu-scaler.isRoot" $) -}}
{{- if and (has $level (list "restricted" "baseline")) (not $isRestrictedAgent) -}}
{{- $all = append $all (printf "namespace %s enforces Pod Security level %s, which agents with a hostPath do not pass: label it pod-security.kubernetes.io/enforce=privileged, or set agent.owners.enabled=false." $namespace $level) -}}
{{- end -}}
{{- end -}}
{{- toYaml $all -}}
{{- end -}}
