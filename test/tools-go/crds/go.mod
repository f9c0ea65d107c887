module keda-gpu-scaler/tools/crds

go 1.26.0

require (
	github.com/cert-manager/cert-manager v1.19.1
	github.com/kedacore/keda/v2 v2.21.0
	github.com/prometheus-operator/prometheus-operator v0.85.0
)
