# SPDX-License-Identifier: BSD-3-Clause
"""The cause of a difference: from a result to the mistake that explains it."""
