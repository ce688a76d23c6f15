"""The words the rest is written in: tensors with named shapes, samples, states, seeds, components, errors."""
