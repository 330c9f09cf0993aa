"""Find the structure of a task in its steps: one small file per kind of structure."""

from .contact import Contact
from .effort import measure_effort, split_by_scale
from .explain import explain_findings
from .findings import Structure
from .infer import infer_structure, is_flat
from .missing import explain_missing
from .probing import plan_guesses, plan_probing
from .rewards import Endings

__all__ = [
    "Contact",
    "Endings",
    "Structure",
    "explain_findings",
    "explain_missing",
    "infer_structure",
    "is_flat",
    "measure_effort",
    "plan_guesses",
    "plan_probing",
    "split_by_scale",
]
