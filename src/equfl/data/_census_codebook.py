"""The census' columns and what their codes mean, out of the data dictionary of the 2018 person file."""

from collections.abc import Mapping
from dataclasses import replace

from equfl.data.encoding import Feature

PARTIES = {
    "AL": 1, "AK": 2, "AZ": 4, "AR": 5, "CA": 6, "CO": 8, "CT": 9, "DE": 10, "FL": 12, "GA": 13, "HI": 15, "ID": 16,
    "IL": 17, "IN": 18, "IA": 19, "KS": 20, "KY": 21, "LA": 22, "ME": 23, "MD": 24, "MA": 25, "MI": 26, "MN": 27,
    "MS": 28, "MO": 29, "MT": 30, "NE": 31, "NV": 32, "NH": 33, "NJ": 34, "NM": 35, "NY": 36, "NC": 37, "ND": 38,
    "OH": 39, "OK": 40, "OR": 41, "PA": 42, "PR": 72, "RI": 44, "SC": 45, "SD": 46, "TN": 47, "TX": 48, "UT": 49,
    "VT": 50, "VA": 51, "WA": 53, "WV": 54, "WI": 55, "WY": 56,
}  # fmt: skip
"""The 50 states and Puerto Rico, without the District of Columbia: postal code -> number of the person file."""

NOT_APPLICABLE = "N/A"

MEANINGS: Mapping[str, Mapping[int, str]] = {
    "ANC": {
        1: "single ancestry",
        2: "several ancestries",
        3: "unclassified ancestry",
        4: "ancestry not reported",
        8: "ancestry suppressed",
    },
    "CIT": {
        1: "born in the United States",
        2: "born in Puerto Rico or an island area",
        3: "born abroad of American parents",
        4: "citizen by naturalization",
        5: "not a citizen",
    },
    "COW": {
        1: "employee of a company",
        2: "employee of a non-profit organization",
        3: "local government employee",
        4: "state government employee",
        5: "federal government employee",
        6: "self-employed, not incorporated",
        7: "self-employed, incorporated",
        8: "working without pay in a family business",
        9: "unemployed for five years or never worked",
    },
    "DEAR": {1: "hearing difficulty", 2: "no hearing difficulty"},
    "DEYE": {1: "vision difficulty", 2: "no vision difficulty"},
    "DIS": {1: "with a disability", 2: "without a disability"},
    "DREM": {1: "cognitive difficulty", 2: "no cognitive difficulty"},
    "ESP": {
        1: "with both parents, both in the labor force",
        2: "with both parents, father in the labor force",
        3: "with both parents, mother in the labor force",
        4: "with both parents, neither in the labor force",
        5: "with father, in the labor force",
        6: "with father, not in the labor force",
        7: "with mother, in the labor force",
        8: "with mother, not in the labor force",
    },
    "ESR": {
        1: "employed, at work",
        2: "employed, not at work",
        3: "unemployed",
        4: "armed forces, at work",
        5: "armed forces, not at work",
        6: "not in the labor force",
    },
    "FER": {1: "gave birth in the past 12 months", 2: "did not give birth in the past 12 months"},
    "MAR": {1: "married", 2: "widowed", 3: "divorced", 4: "separated", 5: "never married"},
    "MIG": {1: "same house a year ago", 2: "abroad a year ago", 3: "another house a year ago"},
    "MIL": {
        1: "on active duty",
        2: "on active duty in the past",
        3: "on active duty for training only",
        4: "never served in the military",
    },
    "NATIVITY": {1: "native", 2: "foreign born"},
    "RAC1P": {
        1: "White",
        2: "Black",
        3: "American Indian",
        4: "Alaska Native",
        5: "American Indian or Alaska Native, other or unspecified tribe",
        6: "Asian",
        7: "Native Hawaiian or Pacific Islander",
        8: "another race",
        9: "two or more races",
    },
    "RELP": {
        0: "reference person",
        1: "husband or wife",
        2: "biological child",
        3: "adopted child",
        4: "stepchild",
        5: "brother or sister",
        6: "father or mother",
        7: "grandchild",
        8: "parent-in-law",
        9: "child-in-law",
        10: "other relative",
        11: "roomer or boarder",
        12: "housemate or roommate",
        13: "unmarried partner",
        14: "foster child",
        15: "other nonrelative",
        16: "in institutional group quarters",
        17: "in other group quarters",
    },
    "SCHL": {
        1: "no schooling",
        2: "preschool",
        3: "kindergarten",
        4: "grade 1",
        5: "grade 2",
        6: "grade 3",
        7: "grade 4",
        8: "grade 5",
        9: "grade 6",
        10: "grade 7",
        11: "grade 8",
        12: "grade 9",
        13: "grade 10",
        14: "grade 11",
        15: "grade 12, no diploma",
        16: "high school diploma",
        17: "alternative credential",
        18: "less than a year of college",
        19: "college, no degree",
        20: "associate's degree",
        21: "bachelor's degree",
        22: "master's degree",
        23: "professional degree",
        24: "doctorate",
    },
    "SEX": {1: "male", 2: "female"},
    # The dictionary also knows the District of Columbia, which is no party.
    "ST": {number: postal for postal, number in sorted({**PARTIES, "DC": 11}.items(), key=lambda pair: pair[1])},
}


def coded(name: str) -> Feature:
    """A categorical column with all codes of the dictionary, whether they occur or not."""
    return Feature(name, tuple(MEANINGS[name]), tuple(MEANINGS[name].values()))


def if_applicable(name: str) -> Feature:
    """The same, and one code more for people whom the question does not apply to."""
    return replace(coded(name), missing=NOT_APPLICABLE)
