import subprocess
import sys

import torch

from equfl.core.random import Seed
from equfl.synthesis._adam import Adam

RATES = (0.1, 0.01, 1e-4)


def leaves() -> list[torch.Tensor]:
    draws = Seed(0).generator("leaves")
    shapes = ((50, 7), (50, 2), ())
    return [torch.randn(shape, generator=draws).requires_grad_() for shape in shapes]


def loss(tensors: list[torch.Tensor]) -> torch.Tensor:
    rows, labels, scale = tensors
    return (scale.exp() * rows @ rows.T).square().mean() + (rows.T @ labels).sin().sum()


def test_it_moves_as_torchs_own_to_the_last_bit():
    ours, theirs = leaves(), leaves()
    adam = Adam(dict(zip(ours, RATES, strict=True)))
    groups = [{"params": [leaf], "lr": rate} for leaf, rate in zip(theirs, RATES, strict=True)]
    reference = torch.optim.Adam(groups, fused=True)
    for _ in range(30):
        adam.forget_gradients()
        loss(ours).backward()
        adam.step()
        reference.zero_grad()
        loss(theirs).backward()
        reference.step()
    assert all(torch.equal(mine, other) for mine, other in zip(ours, theirs, strict=True))
    assert not torch.equal(ours[0], leaves()[0])


def test_a_run_does_without_torchs_compiler():
    run = 'equfl.run("quickstart", data="toy", rounds=12, **{"method.synthesis.iterations": 3})'
    code = f'import sys, equfl; {run}; print({{"torch._dynamo", "sympy"}} & {{*sys.modules}})'
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"
