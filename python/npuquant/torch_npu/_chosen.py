# SPDX-License-Identifier: BSD-3-Clause
"""What install() has chosen."""
from types import SimpleNamespace

#: values: "exact", or "zeros" for what is not computed. strict: what the device refuses is refused.
chosen = SimpleNamespace(values="exact", strict=False)
