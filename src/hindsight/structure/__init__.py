"""Find the structure of a task in its steps: one small file per kind of structure."""

from .contact import Contact
from .infer import Finding, Structure, infer_structure
from .probing import ProbingController

__all__ = ["Contact", "Finding", "ProbingController", "Structure", "infer_structure"]
