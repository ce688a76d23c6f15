"""The weights of the sensitive columns alone."""

from dataclasses import dataclass

import torch

from equfl.calibration.base import Directions, Place, Scope, entries_of, last_layer, sensitive_weights


@dataclass(frozen=True)
class SensitiveInputs(Scope, name="sensitive_inputs"):
    """First-layer weights of the sensitive columns; there are none if the model does not see the attribute."""

    last_layer: bool = False
    """Whether the last layer may move too."""

    def directions(self, place: Place) -> Directions | None:
        entries = sensitive_weights(place.network.layout, place.schema)
        if len(entries) == 0:
            return None
        if self.last_layer:
            entries = torch.cat([entries, last_layer(place.network.layout)])
        return entries_of(place.network.layout, entries)
