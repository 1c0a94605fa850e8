# SPDX-License-Identifier: BSD-3-Clause
"""What PyTorch itself does with torch.cuda after transfer_to_npu."""
import pytest

torch = pytest.importorskip("torch", reason="no PyTorch (Debian: python3-torch)")
import npuquant.torch_npu  # noqa: E402


@pytest.fixture(autouse=True)
def transferred():
    npuquant.torch_npu.install()
    import torch_npu.contrib.transfer_to_npu  # noqa: F401
    yield
    npuquant.torch_npu.uninstall()


def test_seeds():
    """torch.manual_seed() and torch.seed() call torch.cuda's functions, too."""
    torch.manual_seed(3)
    first = torch.rand(4)
    torch.npu.manual_seed(3)
    assert torch.equal(torch.rand(4), first)
    torch.seed()
    assert not torch.equal(torch.rand(4), first)


@pytest.mark.skipif(not hasattr(torch, "compile"), reason="torch.compile: PyTorch 2")
def test_compile():
    """The compiler looks into torch.cuda, for what is a class there."""
    torch._dynamo.reset()
    x = torch.arange(8.0).reshape(2, 4)
    compiled = torch.compile(lambda x: npuquant.torch_npu.npu_dynamic_quant(x)[0], backend="npu", fullgraph=True)
    assert torch.equal(compiled(x), npuquant.torch_npu.npu_dynamic_quant(x)[0])
