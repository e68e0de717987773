"""A kind of rule that import-linter does not bring; `[tool.importlinter]` in pyproject.toml names it."""

import sys
from typing import cast

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output
from importlinter.application.contract_utils import render_broken_contract_guidance


class StandardLibraryOnly(Contract):
    """A package imports the standard library and itself, and nothing else, whether directly or lazily.

    package: its full name. broken_contract_guidance: what to do, printed with each forbidden import.
    """

    type_name = "standard_library_only"

    package = fields.StringField()
    broken_contract_guidance = fields.TextField(required=False)

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        package = cast(str, self.package)
        violations = [
            f"{importer} imports {imported}"
            for importer in sorted(graph.find_descendants(package) | {package})
            for imported in sorted(graph.find_modules_directly_imported_by(importer))
            if not _is_allowed(imported, package)
        ]
        return ContractCheck(kept=not violations, metadata={"found": violations})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for line in check.metadata["found"]:
            output.print_error(f"- {line}", bold=False)
        output.new_line()
        render_broken_contract_guidance(cast(str, self.broken_contract_guidance))


def _is_allowed(imported: str, package: str) -> bool:
    return imported.partition(".")[0] in sys.stdlib_module_names or f"{imported}.".startswith(f"{package}.")
