"""Find the structure of a task in its steps: one small file per kind of structure."""

from .contact import Contact
from .explain import explain_findings, explain_missing
from .findings import Structure, plan_guesses, plan_probing
from .infer import infer_structure, is_flat
from .object_sequence import ObjectSequence
from .random_actions import compare_ranges, split_by_scale
from .success import Endings

__all__ = [
    "Contact",
    "Endings",
    "ObjectSequence",
    "Structure",
    "compare_ranges",
    "explain_findings",
    "explain_missing",
    "infer_structure",
    "is_flat",
    "plan_guesses",
    "plan_probing",
    "split_by_scale",
]
