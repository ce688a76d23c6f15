"""A control: rows that know nothing of the clients."""

from dataclasses import dataclass

from equfl.core.arrays import Updates
from equfl.core.errors import ConfigError
from equfl.core.protocol import Diagnostics, RoundContext
from equfl.core.samples import Samples
from equfl.synthesis._groups import balanced_cells
from equfl.synthesis._schema_rows import EXACT, SchemaRows
from equfl.synthesis.base import Synthesis


@dataclass(frozen=True)
class RandomRows(Synthesis, name="random_rows"):
    """A control, no method: random rows that the schema allows, with random labels, equally many in every cell.

    Numbers are ``N(0, 1)``, every code of a column is equally likely, nothing is optimised. A gain that a method also
    makes with these rows does not come from the synthesis.
    """

    samples: int = 1000
    """Rows to draw."""

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise ConfigError(
                f"method.synthesis.samples = {self.samples}", wanted="1 or more", remedy="The default is 1000"
            )

    def __call__(self, collected: Updates, context: RoundContext) -> tuple[Samples, Diagnostics]:
        schema, generator = context.schema, context.generator("synthesis")
        labels, groups = balanced_cells(self.samples, len(schema.classes), len(schema.groups), generator)
        inputs = SchemaRows.draw(groups, schema, EXACT, generator).inputs().contiguous()
        samples = Samples(inputs, labels, groups, classes=len(schema.classes), group_count=len(schema.groups))
        return samples.to(collected.device), {}
