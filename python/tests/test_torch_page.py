# SPDX-License-Identifier: BSD-3-Clause
"""docs/torch.md and docs/mixture-of-experts.md: their scripts, commands and examples give what is printed there."""
import os

import pytest
import test_docs

pytest.importorskip("torch", reason="no PyTorch (Debian: python3-torch)")


@pytest.mark.parametrize("page, least", zip(test_docs.TORCH_PAGES, [4, 1]))
def test_page(page, least, monkeypatch):
    monkeypatch.setenv("PATH", os.environ["PATH"])  # which run_page() changes
    text, problems, counts = test_docs.run_page(page)
    assert problems == []
    assert text == test_docs.read(test_docs.DOCS, page)
    assert min(counts[language] for language in ("pycon", "console", "python")) >= least
