"""Being at work, from the census' person files (the paper's Employment; ACSEmployment of Ding et al., 2021)."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from equfl.data._census import Census
from equfl.data._census_codebook import if_applicable
from equfl.data.encoding import Feature


@dataclass(frozen=True)
class Employment(Census, name="employment"):
    """Who among all people, children included, has a job and was at work last week? 109 inputs.

    A question that a person was not asked (a child about military service, say) is a code of its own.
    """

    features = (
        Feature("AGEP"),
        *map(if_applicable, ("SCHL", "MAR", "RELP", "DIS", "ESP", "CIT", "MIG", "MIL", "ANC", "NATIVITY")),
        *map(if_applicable, ("DEAR", "DEYE", "DREM", "SEX", "RAC1P")),
    )
    label = "ESR"
    classes = ("not at work", "at work")

    @staticmethod
    def select(persons: pa.Table) -> pa.Table:
        return persons

    @staticmethod
    def positive(label: pa.ChunkedArray) -> pa.ChunkedArray:
        return pc.equal(label, 1)
