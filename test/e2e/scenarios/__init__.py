"""The scenarios, grouped by what they are about. Importing this package registers all of them, in this order."""

from . import reading, push, faults, tls, configuration, hub, hub_faults, hub_pods, hub_setups, engines, whole, chart, examples  # noqa: F401
