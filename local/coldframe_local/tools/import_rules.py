"""A kind of rule that import-linter does not bring; `[tool.importlinter]` in pyproject.toml names it."""

import sys
from typing import cast

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output
from importlinter.application.contract_utils import render_broken_contract_guidance


class StandardLibraryOnly(Contract):
    """Modules import the standard library and each other, and nothing else, whether directly or lazily.

    modules: full names of packages, with all of their modules, or of single modules.
    broken_contract_guidance: what to do, printed with each forbidden import.
    """

    type_name = "standard_library_only"

    modules = fields.ListField(fields.StringField())
    broken_contract_guidance = fields.TextField(required=False)

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        modules = cast(list[str], self.modules)
        importers = {name for module in modules for name in (module, *graph.find_descendants(module))}
        violations = [
            f"{importer} imports {imported}"
            for importer in sorted(importers)
            for imported in sorted(graph.find_modules_directly_imported_by(importer))
            if imported not in importers and imported.partition(".")[0] not in sys.stdlib_module_names
        ]
        return ContractCheck(kept=not violations, metadata={"found": violations})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for line in check.metadata["found"]:
            output.print_error(f"- {line}", bold=False)
        output.new_line()
        render_broken_contract_guidance(cast(str, self.broken_contract_guidance))
