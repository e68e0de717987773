"""Pages from templates: every value is escaped, and a missing value is an error."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

_SHARED = Path(__file__).parent  # base.html, parts.html, style.css


def render(template: Path, **values: object) -> str:
    """One HTML page. template: extends `base.html`, and may import `parts.html`."""
    environment = Environment(
        loader=FileSystemLoader([template.parent, _SHARED]),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template.name).render(values)
