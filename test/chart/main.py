#!/usr/bin/env python3
"""The suite of the chart: `run` sets it up. The last line is `N passed, N failed`."""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "integration/lib"), str(HERE.parent / "e2e")]

import suite  # noqa: E402  pylint: disable=wrong-import-position
import values  # noqa: E402,F401  pylint: disable=wrong-import-position,unused-import
import pods  # noqa: E402,F401  pylint: disable=wrong-import-position,unused-import
import program  # noqa: E402,F401  pylint: disable=wrong-import-position,unused-import
import examples  # noqa: E402,F401  pylint: disable=wrong-import-position,unused-import
import cluster  # noqa: E402,F401  pylint: disable=wrong-import-position,unused-import
import engines  # noqa: E402,F401  pylint: disable=wrong-import-position,unused-import
import certificates  # noqa: E402,F401  pylint: disable=wrong-import-position,unused-import

status = suite.main()
cluster.stop()
sys.exit(status)
