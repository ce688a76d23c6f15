import pytest
import torch

from equfl.core.errors import CalibrationError
from equfl.synthesis.faithful_matching import FaithfulMatching


def test_more_gap_than_collected_models_is_refused_with_what_to_do(context):
    collected = torch.randn(5, context.network.layout.size)
    with pytest.raises(CalibrationError, match="5 collected models; wanted more than the longest"):
        FaithfulMatching(gaps=(2, 5))(collected, context)
