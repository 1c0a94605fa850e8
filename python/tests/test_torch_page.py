# SPDX-License-Identifier: BSD-3-Clause
"""docs/torch.md: its scripts, commands and examples give what is printed there."""
import os

import pytest
import test_docs

pytest.importorskip("torch", reason="no PyTorch (Debian: python3-torch)")


def test_page(monkeypatch):
    monkeypatch.setenv("PATH", os.environ["PATH"])  # which run_page() changes
    text, problems, counts = test_docs.run_page(test_docs.TORCH_PAGE)
    assert problems == []
    assert text == test_docs.read(test_docs.DOCS, test_docs.TORCH_PAGE)
    assert min(counts[language] for language in ("pycon", "console", "python")) > 3
