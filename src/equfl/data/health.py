"""Public health coverage, from the person files (the paper's Health; ACSPublicCoverage of Ding et al., 2021)."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from equfl.data._census import Census
from equfl.data._census_codebook import if_applicable
from equfl.data.encoding import Feature


@dataclass(frozen=True)
class Health(Census, name="health"):
    """Who among people under 65 with at most 30 000 dollars a year has public health coverage? 154 inputs.

    A question that a person was not asked is a code of its own. The state is an input too (one of 52, as the source
    counts the District of Columbia): the same in all rows of a party, and so 0 throughout where scaling is 'paper'.
    """

    features = (
        *map(Feature, ("AGEP", "PINCP")),
        *map(if_applicable, ("SCHL", "MAR", "SEX", "DIS", "ESP", "CIT", "MIG", "MIL", "ANC", "NATIVITY")),
        *map(if_applicable, ("DEAR", "DEYE", "DREM", "ESR", "ST", "FER", "RAC1P")),
    )
    label = "PUBCOV"
    classes = ("without public coverage", "with public coverage")

    @staticmethod
    def select(persons: pa.Table) -> pa.Table:
        # An income that is missing (children's) is not below the bound, so these people are not meant.
        return persons.filter((pc.field("AGEP") < 65) & (pc.field("PINCP") <= 30_000))

    @staticmethod
    def positive(label: pa.ChunkedArray) -> pa.ChunkedArray:
        return pc.equal(label, 1)
