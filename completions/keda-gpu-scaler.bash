# bash completion for keda-gpu-scaler
_keda_gpu_scaler()
{
    local current="${COMP_WORDS[COMP_CWORD]}" at=$((COMP_CWORD - 1)) has_equals="" command="" words="" word
    COMPREPLY=()
    if [ "$current" = = ]; then
        current="" has_equals=1
    elif [ "${COMP_WORDS[at]}" = = ]; then
        at=$((at - 1)) has_equals=1
    fi
    local name="${COMP_WORDS[at]}" before="" is_first=""
    [ "$at" -gt 1 ] && before="${COMP_WORDS[at - 1]}"
    [ "$COMP_CWORD" -eq 2 ] && is_first=1
    [ "$COMP_CWORD" -gt 1 ] && command="${COMP_WORDS[1]}"
    if [ -n "$has_equals" ] && { [ "$before" = -m ] || [ "$before" = --metadata ]; }; then
        case "$name" in
        profile) words="batch distributed-training ollama tgi-inference training triton-inference triton-queue-wait triton-request-rate vllm-inference vllm-queue-depth" ;;
        metricType) words="gpu_utilization memory_utilization memory_used_mib memory_used_percent memory_used temperature power_draw pcie_tx_kbps pcie_rx_kbps nvlink_tx_mbps nvlink_rx_mbps sm_activity sm_occupancy tensor_activity dram_activity encoder_utilization decoder_utilization requests_waiting requests_running requests_in_flight kv_cache_usage tokens_waiting tokens_per_second queue_wait_ms time_to_first_token_ms inter_token_latency_ms request_rate engine_metric vllm_queue_depth vllm_kv_cache_usage triton_queue_wait_ms triton_request_rate" ;;
        aggregation) words="max min avg sum p95 p99" ;;
        scope) words="node workload cluster" ;;
        onMissing) words="conservative error ignore" ;;
        hpaMetricType) words="AverageValue Value" ;;
        engineScheme) words="http https" ;;
        esac
    elif [ -z "$command" ]; then
        words="agent hub explain get check top demo call probe cert gpu-metrics version completion help --help --version"
    else
    case "$command $name" in
    "agent --port") ;;
    "agent --listen") ;;
    "agent --metrics-port") ;;
    "agent --metrics-listen") ;;
    "agent --probe-port") ;;
    "agent --probe-listen") ;;
    "agent --health-check-interval") ;;
    "agent --sample-interval") ;;
    "agent --slow-interval") ;;
    "agent --restart-after") ;;
    "agent --nvml-library") _keda_gpu_scaler_files "$current" ;;
    "agent --pod-resources") _keda_gpu_scaler_files "$current" ;;
    "agent --procfs") _keda_gpu_scaler_files "$current" ;;
    "agent --pod-logs") _keda_gpu_scaler_files "$current" ;;
    "agent --container-logs") _keda_gpu_scaler_files "$current" ;;
    "agent --engine-timeout") ;;
    "agent --engine-ca-file") _keda_gpu_scaler_files "$current" ;;
    "agent --endpoint-allow") ;;
    "agent --endpoint-deny") ;;
    "agent --node-name") ;;
    "agent --tls-cert") _keda_gpu_scaler_files "$current" ;;
    "agent --tls-key") _keda_gpu_scaler_files "$current" ;;
    "agent --tls-client-ca") _keda_gpu_scaler_files "$current" ;;
    "agent --limit") ;;
    "agent --drain-timeout") ;;
    "agent --shutdown-delay") ;;
    "agent --log-level") words="debug info warn error" ;;
    "agent --log-format") words="text json" ;;
    "agent --config") _keda_gpu_scaler_files "$current" ;;
    "hub --port") ;;
    "hub --listen") ;;
    "hub --metrics-port") ;;
    "hub --metrics-listen") ;;
    "hub --probe-port") ;;
    "hub --probe-listen") ;;
    "hub --health-check-interval") ;;
    "hub --agents") ;;
    "hub --agents-tls-ca") _keda_gpu_scaler_files "$current" ;;
    "hub --agents-tls-cert") _keda_gpu_scaler_files "$current" ;;
    "hub --agents-tls-key") _keda_gpu_scaler_files "$current" ;;
    "hub --agents-tls-server-name") ;;
    "hub --kubeconfig") _keda_gpu_scaler_files "$current" ;;
    "hub --service-name") ;;
    "hub --service-namespace") ;;
    "hub --hub-name") ;;
    "hub --hpa-tolerance") ;;
    "hub --simulated-gpus") ;;
    "hub --shown-gpus") ;;
    "hub --engine-timeout") ;;
    "hub --engine-ca-file") _keda_gpu_scaler_files "$current" ;;
    "hub --endpoint-allow") ;;
    "hub --endpoint-deny") ;;
    "hub --engine-cert-file") _keda_gpu_scaler_files "$current" ;;
    "hub --engine-key-file") _keda_gpu_scaler_files "$current" ;;
    "hub --engine-token-file") _keda_gpu_scaler_files "$current" ;;
    "hub --node-name") ;;
    "hub --tls-cert") _keda_gpu_scaler_files "$current" ;;
    "hub --tls-key") _keda_gpu_scaler_files "$current" ;;
    "hub --tls-client-ca") _keda_gpu_scaler_files "$current" ;;
    "hub --limit") ;;
    "hub --drain-timeout") ;;
    "hub --shutdown-delay") ;;
    "hub --log-level") words="debug info warn error" ;;
    "hub --log-format") words="text json" ;;
    "hub --config") _keda_gpu_scaler_files "$current" ;;
    "explain --hub") ;;
    "explain --timeout") ;;
    "explain --output" | "explain -o") words="text json" ;;
    "get --hub") ;;
    "get --timeout") ;;
    "get --output" | "get -o") words="text json" ;;
    "check --output" | "check -o") words="text json" ;;
    "check --nvml-library") _keda_gpu_scaler_files "$current" ;;
    "check --pod-resources") _keda_gpu_scaler_files "$current" ;;
    "check --procfs") _keda_gpu_scaler_files "$current" ;;
    "check --port") ;;
    "check --metrics-port") ;;
    "check --probe-port") ;;
    "check --root") ;;
    "check --timeout") ;;
    "top --output" | "top -o") words="table wide json jsonl csv prom" ;;
    "top --interval") ;;
    "top --count") ;;
    "top --nvml-library") _keda_gpu_scaler_files "$current" ;;
    "top --timeout") ;;
    "top --env") words="auto k8s kubernetes slurm flux standalone" ;;
    "top --pod-resources") _keda_gpu_scaler_files "$current" ;;
    "top --procfs") _keda_gpu_scaler_files "$current" ;;
    "top --pod-logs") _keda_gpu_scaler_files "$current" ;;
    "top --container-logs") _keda_gpu_scaler_files "$current" ;;
    "demo --engine") words="none vllm sglang tgi triton" ;;
    "demo --step") ;;
    "demo --listen") ;;
    "demo --metadata" | "demo -m") words="profile= metricName= metricType= targetValue= targetGpuUtilization= targetMemoryUtilization= activationThreshold= gpuIndex= aggregation= pollIntervalSeconds= scope= window= activationWindow= onMissing= warmupSeconds= gpuUUID= gpuProduct= vllmEndpoint= tritonEndpoint= enginePort= enginePath= engineScheme= engineMetric= wakeEndpoint= wakeMetric= podSelector= hpaMetricType=" ;;
    "demo --nvml-library") _keda_gpu_scaler_files "$current" ;;
    "demo --log-level") words="debug info warn error" ;;
    "call --metadata" | "call -m") words="profile= metricName= metricType= targetValue= targetGpuUtilization= targetMemoryUtilization= activationThreshold= gpuIndex= aggregation= pollIntervalSeconds= scope= window= activationWindow= onMissing= warmupSeconds= gpuUUID= gpuProduct= vllmEndpoint= tritonEndpoint= enginePort= enginePath= engineScheme= engineMetric= wakeEndpoint= wakeMetric= podSelector= hpaMetricType=" ;;
    "call --name") ;;
    "call --namespace" | "call -n") ;;
    "call --metric-name") ;;
    "call --service") ;;
    "call --for") ;;
    "call --output" | "call -o") words="text json" ;;
    "call --timeout") ;;
    "call --tls-ca") _keda_gpu_scaler_files "$current" ;;
    "call --tls-cert") _keda_gpu_scaler_files "$current" ;;
    "call --tls-key") _keda_gpu_scaler_files "$current" ;;
    "call --tls-server-name") ;;
    "probe --service") ;;
    "probe --http") ;;
    "probe --timeout") ;;
    "probe --tls-ca") _keda_gpu_scaler_files "$current" ;;
    "probe --tls-cert") _keda_gpu_scaler_files "$current" ;;
    "probe --tls-key") _keda_gpu_scaler_files "$current" ;;
    "probe --tls-server-name") ;;
    "cert --name") ;;
    "cert --common-name") ;;
    "cert --out-dir") _keda_gpu_scaler_files "$current" ;;
    "cert --secret") ;;
    "cert --ca-secret") ;;
    "cert --namespace") ;;
    "cert --kubeconfig") _keda_gpu_scaler_files "$current" ;;
    "cert --validity") ;;
    "cert --ca-validity") ;;
    "cert --renew-before") ;;
    "cert --timeout") ;;
    "gpu-metrics --format") words="table json csv" ;;
    "gpu-metrics --interval") ;;
    "gpu-metrics --device") ;;
    "gpu-metrics --env") words="auto k8s kubernetes slurm flux standalone" ;;
    "gpu-metrics --nvml-library") _keda_gpu_scaler_files "$current" ;;
    "gpu-metrics --timeout") ;;
    "version --output" | "version -o") words="text json" ;;
    *)
        case "$command" in
        agent)
            [ "${current:0:1}" = - ] || [ -z "$current" ] && words="--help --port --listen --metrics-port --metrics-listen --probe-port --probe-listen --health-check-interval --sample-interval --slow-interval --restart-after --nvml-library --pod-resources --procfs --pod-logs --container-logs --engine-timeout --engine-ca-file --engine-insecure --endpoint-allow --endpoint-deny --node-name --tls-cert --tls-key --tls-client-ca --metrics-tls --dcgm-metrics --grpc-reflection --limit --drain-timeout --shutdown-delay --log-level --log-format --config --print-config"
            ;;
        hub)
            [ "${current:0:1}" = - ] || [ -z "$current" ] && words="--help --port --listen --metrics-port --metrics-listen --probe-port --probe-listen --health-check-interval --agents --agents-tls --agents-tls-ca --agents-tls-cert --agents-tls-key --agents-tls-server-name --kubeconfig --service-name --service-namespace --hub-name --hpa-tolerance --simulated-gpus --shown-gpus --engine-timeout --engine-ca-file --engine-insecure --endpoint-allow --endpoint-deny --engine-cert-file --engine-key-file --engine-token-file --engine-token-plain --node-name --tls-cert --tls-key --tls-client-ca --metrics-tls --grpc-reflection --limit --drain-timeout --shutdown-delay --log-level --log-format --config --print-config"
            ;;
        explain)
            [ "${current:0:1}" = - ] || [ -z "$current" ] && words="--help --hub --timeout --output"
            ;;
        get)
            [ -n "$is_first" ] && words="nodes gpus workloads"
            [ "${current:0:1}" = - ] && words="--help --hub --timeout --output"
            ;;
        check)
            [ "${current:0:1}" = - ] || [ -z "$current" ] && words="--help --output --strict --nvml-library --pod-resources --procfs --port --metrics-port --probe-port --root --timeout"
            ;;
        top)
            [ "${current:0:1}" = - ] || [ -z "$current" ] && words="--help --output --watch --interval --count --nvml-library --timeout --job --env --pod-resources --procfs --pod-logs --container-logs"
            ;;
        demo)
            [ "${current:0:1}" = - ] || [ -z "$current" ] && words="--help --real --engine --forever --step --listen --metadata --nvml-library --log-level"
            ;;
        call)
            [ -n "$is_first" ] && words="all spec metrics active explain health stream-active stream-spec"
            [ "${current:0:1}" = - ] && words="--help --metadata --name --namespace --metric-name --service --explain --for --output --timeout --tls --tls-ca --tls-cert --tls-key --tls-server-name --insecure"
            ;;
        probe)
            [ "${current:0:1}" = - ] || [ -z "$current" ] && words="--help --service --http --timeout --tls --tls-ca --tls-cert --tls-key --tls-server-name --insecure"
            ;;
        cert)
            [ "${current:0:1}" = - ] || [ -z "$current" ] && words="--help --name --common-name --out-dir --secret --ca-secret --namespace --kubeconfig --validity --ca-validity --renew-before --timeout"
            ;;
        gpu-metrics)
            [ "${current:0:1}" = - ] || [ -z "$current" ] && words="--help --format --interval --device --env --quiet --dry-run --nvml-library --timeout"
            ;;
        version)
            [ "${current:0:1}" = - ] || [ -z "$current" ] && words="--help --output"
            ;;
        completion)
            [ -n "$is_first" ] && words="bash zsh fish"
            [ "${current:0:1}" = - ] && words="--help"
            ;;
        help)
            [ -n "$is_first" ] && words="agent hub explain get check top demo call probe cert gpu-metrics version completion help"
            [ "${current:0:1}" = - ] && words="--help"
            ;;
        esac
        ;;
    esac
    fi
    if [ -n "$words" ]; then
        while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W "$words" -- "$current")
    fi
    if [ "${#COMPREPLY[@]}" -eq 1 ] && [ "${COMPREPLY[0]: -1}" = = ]; then
        compopt -o nospace
    fi
}
_keda_gpu_scaler_files()
{
    local word
    compopt -o filenames
    while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$1")
}
complete -F _keda_gpu_scaler keda-gpu-scaler
