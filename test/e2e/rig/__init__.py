"""The rig of `make e2e`: a real control plane and a real KEDA on loopback, with our agent on simulated GPUs."""
