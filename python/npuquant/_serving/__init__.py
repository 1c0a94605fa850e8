# SPDX-License-Identifier: BSD-3-Clause
"""Operators of serving code, which call the others: mixtures of experts."""
