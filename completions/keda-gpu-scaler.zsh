#compdef keda-gpu-scaler
_keda-gpu-scaler_metadata() {
  if compset -P 'profile='; then compadd -- batch distributed-training ollama tgi-inference training triton-inference triton-queue-wait triton-request-rate vllm-inference vllm-queue-depth
  elif compset -P 'metricType='; then compadd -- gpu_utilization memory_utilization memory_used_mib memory_used_percent memory_used temperature power_draw pcie_tx_kbps pcie_rx_kbps nvlink_tx_mbps nvlink_rx_mbps sm_activity sm_occupancy tensor_activity dram_activity encoder_utilization decoder_utilization requests_waiting requests_running requests_in_flight kv_cache_usage tokens_waiting tokens_per_second queue_wait_ms time_to_first_token_ms inter_token_latency_ms request_rate engine_metric vllm_queue_depth vllm_kv_cache_usage triton_queue_wait_ms triton_request_rate
  elif compset -P 'aggregation='; then compadd -- max min avg sum p95 p99
  elif compset -P 'scope='; then compadd -- node workload cluster
  elif compset -P 'onMissing='; then compadd -- conservative error ignore
  elif compset -P 'hpaMetricType='; then compadd -- AverageValue Value
  elif compset -P 'engineScheme='; then compadd -- http https
  elif ! compset -P '*='; then compadd -S '' -- profile= metricName= metricType= targetValue= targetGpuUtilization= targetMemoryUtilization= activationThreshold= gpuIndex= aggregation= pollIntervalSeconds= scope= window= activationWindow= onMissing= warmupSeconds= gpuUUID= gpuProduct= vllmEndpoint= tritonEndpoint= enginePort= enginePath= engineScheme= engineMetric= wakeEndpoint= wakeMetric= podSelector= hpaMetricType=
  fi
}
_keda-gpu-scaler() {
  if (( CURRENT == 2 )); then
    local -a commands=(
      'agent:Serve KEDA from this node'\''s GPUs'
      'hub:Serve KEDA from the GPUs of the whole cluster'
      'explain:Say why a workload gets the replicas that it gets'
      'get:List nodes, GPUs or workloads as a hub knows them'
      'check:Look at what a node needs for the agent, and say what to do about it'
      'top:Show the GPUs and MIG devices of a node, and the pods on them'
      'demo:Watch simulated GPUs being scaled\: agent, KEDA'\''s questions, HPA'\''s arithmetic'
      'call:Ask any external scaler what KEDA would ask'
      'probe:Ask a server whether it is healthy'
      'cert:Make and renew a certificate and its authority'
      'gpu-metrics:Show the GPUs of a Slurm or Flux job, as the program of that name does'
      'version:Print the version'
      'completion:Print a shell completion script'
      'help:Show help'
    )
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
  agent)
    _arguments -s '(-h --help)'{-h,--help}'[show help]' \
      '--port=[gRPC port, on all addresses; 0 = any free one]:PORT:' \
      '*--listen=[gRPC address instead of --port\: 127.0.0.1\:6000, \[\:\:1\]\:6000, unix\:/path; may be repeated]:ADDR:' \
      '--metrics-port=[port of /metrics; 0 = none]:PORT:' \
      '--metrics-listen=[address instead of --metrics-port]:ADDR:' \
      '--probe-port=[port of /livez and /readyz, always plaintext; 0 = none]:PORT:' \
      '--probe-listen=[address instead of --probe-port]:ADDR:' \
      '--health-check-interval=[accepted for compatibility\: health follows every sample]:D:' \
      '--sample-interval=[time between readings]:D:' \
      '--slow-interval=[time between readings that cost more]:D:' \
      '--restart-after=[how long to wait out a driver state that only a restart ends, before exiting]:D:' \
      '--nvml-library=[libnvidia-ml.so.1 to load instead of searching]:PATH:_files' \
      '--pod-resources=[kubelet socket that says which pods hold which GPUs; empty = do not ask]:PATH:_files' \
      '--procfs=[the host'\''s /proc, to tell processes on GPUs apart by pod; empty = do not look]:PATH:_files' \
      '--pod-logs=[with --procfs\: the kubelet'\''s folders of logs, which name pods by UID]:PATH:_files' \
      '--container-logs=[with --procfs\: the kubelet'\''s links to logs, which name pods by container]:PATH:_files' \
      '--engine-timeout=[longest time that one page of an inference engine may take]:D:' \
      '--engine-ca-file=[PEM certificates that those of https pages are signed by, instead of the system'\''s]:FILE:_files' \
      '--engine-insecure[do not verify the certificates of https pages]' \
      '*--endpoint-allow=[addresses that vllmEndpoint, tritonEndpoint and wakeEndpoint may have, and no others; may be repeated]:CIDR:' \
      '*--endpoint-deny=[addresses that they may not have; may be repeated]:CIDR:' \
      '--node-name=[name of this node (default $NODE_NAME, else the host name)]:NAME:' \
      '--tls-cert=[serve TLS with this PEM certificate chain; reloaded when it changes]:FILE:_files' \
      '--tls-key=[PEM key of --tls-cert]:FILE:_files' \
      '--tls-client-ca=[demand client certificates signed by this CA]:FILE:_files' \
      '--metrics-tls[TLS on the metrics port too]' \
      '--dcgm-metrics[names of dcgm-exporter on /metrics too; =false leaves them out]' \
      '--grpc-reflection[serve gRPC reflection; =false does not]' \
      '*--limit=[change one limit on peers (--print-config lists them); may be repeated]:NAME=N:' \
      '--drain-timeout=[longest time that open calls get to end after SIGTERM]:D:' \
      '--shutdown-delay=[keep serving this long after SIGTERM, as not ready]:D:' \
      '--log-level=[least level to log]:LEVEL:(debug info warn error)' \
      '--log-format=[form of log lines]:FORMAT:(text json)' \
      '--config=[YAML file\: the flags'\'' names as keys, and `metrics\:`; read again on SIGHUP]:FILE:_files' \
      '--print-config[print the configuration in force and where each value came from, then exit]' ;;
  hub)
    _arguments -s '(-h --help)'{-h,--help}'[show help]' \
      '--port=[gRPC port, on all addresses; 0 = any free one]:PORT:' \
      '*--listen=[gRPC address instead of --port\: 127.0.0.1\:6000, \[\:\:1\]\:6000, unix\:/path; may be repeated]:ADDR:' \
      '--metrics-port=[port of /metrics; 0 = none]:PORT:' \
      '--metrics-listen=[address instead of --metrics-port]:ADDR:' \
      '--probe-port=[port of /livez and /readyz, always plaintext; 0 = none]:PORT:' \
      '--probe-listen=[address instead of --probe-port]:ADDR:' \
      '--health-check-interval=[accepted for compatibility\: health follows every sample]:D:' \
      '*--agents=[where agents are\: service\:\[NAMESPACE/\]NAME\[\:PORT\], dns\:HOST\:PORT, HOST\:PORT; may be repeated (default service\:keda-gpu-scaler-agents)]:WHERE:' \
      '--agents-tls[speak TLS with agents]' \
      '--agents-tls-ca=[PEM certificates that agents'\'' are signed by, instead of the system'\''s]:FILE:_files' \
      '--agents-tls-cert=[own PEM certificate for agents that demand one]:FILE:_files' \
      '--agents-tls-key=[PEM key of that]:FILE:_files' \
      '--agents-tls-server-name=[name in the agents'\'' certificates (default\: the address)]:NAME:' \
      '--kubeconfig=[how the Kubernetes API is reached (default\: as a pod, by its service account)]:FILE:_files' \
      '--service-name=[Service that scalerAddress names\: ScaledObjects that ask there are followed before they ask]:NAME:' \
      '--service-namespace=[its namespace (default\: the hub'\''s)]:NS:' \
      '--hub-name=[name of this hub in answers (default $POD_NAME, else the host name)]:NAME:' \
      '--hpa-tolerance=[tolerance of the HPA controller, where an HPA names none\: 0 to 1]:N:' \
      '--simulated-gpus=[simulated GPUs that each pod gets on a node whose agent simulates; 0 = none]:N:' \
      '--shown-gpus=[GPUs of the fleet that /metrics shows at most; 0 = none]:N:' \
      '--engine-timeout=[longest time that one page of an inference engine may take]:D:' \
      '--engine-ca-file=[PEM certificates that those of https pages are signed by, instead of the system'\''s]:FILE:_files' \
      '--engine-insecure[do not verify the certificates of https pages]' \
      '*--endpoint-allow=[addresses that vllmEndpoint, tritonEndpoint and wakeEndpoint may have, and no others; may be repeated]:CIDR:' \
      '*--endpoint-deny=[addresses that they may not have; may be repeated]:CIDR:' \
      '--engine-cert-file=[own PEM certificate for https pages of pods that demand one]:FILE:_files' \
      '--engine-key-file=[PEM key of that]:FILE:_files' \
      '--engine-token-file=[bearer token for https pages of pods, read anew when it changes; never sent to endpoints]:FILE:_files' \
      '--engine-token-plain[send the token to http pages of pods too, where who listens on the way can read it]' \
      '--node-name=[name of this node (default $NODE_NAME, else the host name)]:NAME:' \
      '--tls-cert=[serve TLS with this PEM certificate chain; reloaded when it changes]:FILE:_files' \
      '--tls-key=[PEM key of --tls-cert]:FILE:_files' \
      '--tls-client-ca=[demand client certificates signed by this CA]:FILE:_files' \
      '--metrics-tls[TLS on the metrics port too]' \
      '--grpc-reflection[serve gRPC reflection; =false does not]' \
      '*--limit=[change one limit on peers (--print-config lists them); may be repeated]:NAME=N:' \
      '--drain-timeout=[longest time that open calls get to end after SIGTERM]:D:' \
      '--shutdown-delay=[keep serving this long after SIGTERM, as not ready]:D:' \
      '--log-level=[least level to log]:LEVEL:(debug info warn error)' \
      '--log-format=[form of log lines]:FORMAT:(text json)' \
      '--config=[YAML file\: the flags'\'' names as keys, and `metrics\:`; read again on SIGHUP]:FILE:_files' \
      '--print-config[print the configuration in force and where each value came from, then exit]' ;;
  explain)
    _arguments -s '(-h --help)'{-h,--help}'[show help]' \
      '--hub=[any port of a hub, for example through kubectl port-forward svc/keda-gpu-scaler 9090]:ADDRESS:' \
      '--timeout=[longest time for the answer]:D:' \
      '-o+[form of the output]:FORMAT:(text json)' \
      '--output=[form of the output]:FORMAT:(text json)' ;;
  get)
    _arguments -s '(-h --help)'{-h,--help}'[show help]' \
      '--hub=[any port of a hub, for example through kubectl port-forward svc/keda-gpu-scaler 9090]:ADDRESS:' \
      '--timeout=[longest time for the answer]:D:' \
      '-o+[form of the output]:FORMAT:(text json)' \
      '--output=[form of the output]:FORMAT:(text json)' \
      '1:operand:(nodes gpus workloads)' ;;
  check)
    _arguments -s '(-h --help)'{-h,--help}'[show help]' \
      '-o+[form of the output]:FORMAT:(text json)' \
      '--output=[form of the output]:FORMAT:(text json)' \
      '--strict[a warning is a problem too]' \
      '--nvml-library=[libnvidia-ml.so.1 to load (default\: search, NVML_LIB first)]:PATH:_files' \
      '--pod-resources=[the kubelet'\''s socket; empty = do not ask]:PATH:_files' \
      '--procfs=[the host'\''s /proc that the agent would tell processes apart by; empty = not asked for]:PATH:_files' \
      '--port=[the agent'\''s gRPC port; 0 or -1 = none]:PORT:' \
      '--metrics-port=[the agent'\''s port for /metrics; 0 or -1 = none]:PORT:' \
      '--probe-port=[the agent'\''s port for probes; 0 or -1 = none]:PORT:' \
      '--root=[look for /proc, /sys, /dev and the socket under this folder; NVML is asked all the same]:DIR:' \
      '--timeout=[longest wait for NVML, and again for the kubelet]:D:' ;;
  top)
    _arguments -s '(-h --help)'{-h,--help}'[show help]' \
      '-o+[form of the output]:FORMAT:(table wide json jsonl csv prom)' \
      '--output=[form of the output]:FORMAT:(table wide json jsonl csv prom)' \
      '-w[again and again, until it is interrupted]' \
      '--watch[again and again, until it is interrupted]' \
      '--interval=[time between samples (means --watch)]:D:' \
      '--count=[end after so many samples (means --watch); 0 = never]:N:' \
      '--nvml-library=[libnvidia-ml.so.1 to load (default\: search, NVML_LIB first)]:PATH:_files' \
      '--timeout=[longest wait for the driver'\''s first readings, or for the agent'\''s page]:D:' \
      '--job[only the devices of the Slurm or Flux job that this process is in]' \
      '--env=[where this process runs, for --job (means --job)]:KIND:(auto k8s kubernetes slurm flux standalone)' \
      '--pod-resources=[the kubelet'\''s socket on this machine, for pods; empty = do not ask]:PATH:_files' \
      '--procfs=[the host'\''s /proc, to measure what pods use; empty = do not; auto = where pods can be told]:PATH:_files' \
      '--pod-logs=[with --procfs\: the kubelet'\''s folders of logs, which name pods by UID]:PATH:_files' \
      '--container-logs=[with --procfs\: the kubelet'\''s links to logs, which name pods by container]:PATH:_files' ;;
  demo)
    _arguments -s '(-h --help)'{-h,--help}'[show help]' \
      '--real[read this machine'\''s GPUs and only watch\: no simulated load]' \
      '--engine=[scale simulated model servers by their page, not by GPU readings]:NAME:(none vllm sglang tgi triton)' \
      '--forever[go on until interrupted]' \
      '--step=[time between two questions]:D:' \
      '--listen=[address of the agent (port 0\: any free one)]:ADDR:' \
      '*-m+[trigger metadata instead of the demo'\''s own; may be repeated]:KEY=VALUE:_keda-gpu-scaler_metadata' \
      '*--metadata=[trigger metadata instead of the demo'\''s own; may be repeated]:KEY=VALUE:_keda-gpu-scaler_metadata' \
      '--nvml-library=[simulated (or, with --real, real) libnvidia-ml.so.1]:PATH:_files' \
      '--log-level=[least level of the agent'\''s log]:LEVEL:(debug info warn error)' ;;
  call)
    _arguments -s '(-h --help)'{-h,--help}'[show help]' \
      '*-m+[one entry of the trigger'\''s metadata; may be repeated]:KEY=VALUE:_keda-gpu-scaler_metadata' \
      '*--metadata=[one entry of the trigger'\''s metadata; may be repeated]:KEY=VALUE:_keda-gpu-scaler_metadata' \
      '--name=[name of the ScaledObject]:NAME:' \
      '-n+[its namespace]:NS:' \
      '--namespace=[its namespace]:NS:' \
      '--metric-name=[metricName of GetMetrics (default\: as the spec says)]:NAME:' \
      '--service=[service of `health`\: "" the process, nvml the driver]:NAME:' \
      '--explain[also say how the value came about (our agents and hubs only)]' \
      '--for=[end a stream after this time; 0 = never]:D:' \
      '-o+[form of the output]:FORMAT:(text json)' \
      '--output=[form of the output]:FORMAT:(text json)' \
      '--timeout=[longest time for one call]:D:' \
      '--tls[speak TLS]' \
      '--tls-ca=[PEM certificates to trust instead of the system'\''s (means --tls)]:FILE:_files' \
      '--tls-cert=[own PEM certificate (means --tls)]:FILE:_files' \
      '--tls-key=[PEM key of --tls-cert]:FILE:_files' \
      '--tls-server-name=[name that the server'\''s certificate must have (default\: the host part of the address)]:NAME:' \
      '--insecure[TLS without verifying the server (means --tls)]' \
      '1:operand:(all spec metrics active explain health stream-active stream-spec)' ;;
  probe)
    _arguments -s '(-h --help)'{-h,--help}'[show help]' \
      '--service=[gRPC service\: "" the process, nvml the driver]:NAME:' \
      '--http=[GET this page over plain HTTP instead, such as /readyz]:PATH:' \
      '--timeout=[longest time for one call]:D:' \
      '--tls[speak TLS]' \
      '--tls-ca=[PEM certificates to trust instead of the system'\''s (means --tls)]:FILE:_files' \
      '--tls-cert=[own PEM certificate (means --tls)]:FILE:_files' \
      '--tls-key=[PEM key of --tls-cert]:FILE:_files' \
      '--tls-server-name=[name that the server'\''s certificate must have (default\: the host part of the address)]:NAME:' \
      '--insecure[TLS without verifying the server (means --tls)]' ;;
  cert)
    _arguments -s '(-h --help)'{-h,--help}'[show help]' \
      '*--name=[DNS name or IP address of the certificate; may be repeated]:NAME:' \
      '--common-name=[subject of the certificate, for people]:NAME:' \
      '--out-dir=[keep ca.crt, ca.key, tls.crt and tls.key in this folder]:PATH:_files' \
      '--secret=[keep ca.crt, tls.crt and tls.key in this Secret of Kubernetes]:NAME:' \
      '--ca-secret=[keep the authority and its key in this one (default\: that of --secret with -ca)]:NAME:' \
      '--namespace=[namespace of the Secrets (default\: this pod'\''s, or the kubeconfig'\''s)]:NAME:' \
      '--kubeconfig=[kubeconfig file (default\: the service account of this pod)]:FILE:_files' \
      '--validity=[how long a new certificate lasts]:D:' \
      '--ca-validity=[how long a new authority lasts]:D:' \
      '--renew-before=[make a new certificate when the former one lasts no longer than this]:D:' \
      '--timeout=[longest time for each request to the API server]:D:' ;;
  gpu-metrics)
    _arguments -s '(-h --help)'{-h,--help}'[show help]' \
      '--format=[form of the output]:FORMAT:(table json csv)' \
      '--interval=[time between samples, until it is interrupted; 0 = one sample]:D:' \
      '--device=[this GPU alone, by its NVML index; -1 = the job'\''s, or all]:N:' \
      '--env=[where this process runs]:KIND:(auto k8s kubernetes slurm flux standalone)' \
      '--quiet[nothing on stderr]' \
      '--dry-run[print what would be read, and end]' \
      '--nvml-library=[libnvidia-ml.so.1 to load (default\: search, NVML_LIB first)]:PATH:_files' \
      '--timeout=[longest wait for the driver'\''s first readings]:D:' ;;
  version)
    _arguments -s '(-h --help)'{-h,--help}'[show help]' \
      '-o+[form of the output]:FORMAT:(text json)' \
      '--output=[form of the output]:FORMAT:(text json)' ;;
  completion)
    _arguments -s '(-h --help)'{-h,--help}'[show help]' \
      '1:operand:(bash zsh fish)' ;;
  help)
    _arguments -s '(-h --help)'{-h,--help}'[show help]' \
      '1:operand:(agent hub explain get check top demo call probe cert gpu-metrics version completion help)' ;;
  esac
}
if [[ $funcstack[1] == _keda-gpu-scaler ]]; then
  _keda-gpu-scaler "$@"
else
  compdef _keda-gpu-scaler keda-gpu-scaler
fi
