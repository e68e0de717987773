"""Texts of our own, in several languages, short and long: what an encoder's ranges are measured on."""

from coldframe_training.files.paths import OWN_TEXTS


def own_texts() -> list[str]:
    """Each line of the file, each of its paragraphs as one text, and all of them as one."""
    content = OWN_TEXTS.read_text(encoding="utf-8")
    paragraphs = [" ".join(part.split("\n")) for part in content.split("\n\n")]
    return [*content.splitlines(), *paragraphs, " ".join(paragraphs), " ".join(reversed(paragraphs))]
